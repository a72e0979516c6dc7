// The rows of a batch. A block is one row: consecutive entries of one tree. All entries that one input caused are in
// one block, so that a step is one row and not nine. All marks of a batch are one row too.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { isUtf8 } from 'node:buffer';
import { parseOwnJson } from '../../core/contract/json.js';
import type {
  StoredEntry,
  TreeAppend,
  Batch,
  InputKey,
  InputMark,
  ProposalKey,
  ProposalMark,
} from '../../engine/ports/ledger/ledger-store.js';
import { tamperedError, duplicateMarkError } from '../ledger/store-errors.js';
import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';

/** Limits of a block, unless a single entry exceeds them: readers load a block as a whole. */
export const BLOCK_ENTRIES_MAX = 256;
export const BLOCK_CHARS_MAX = 256 * 1_024;

const HASH_BYTES = 32;
const NEWLINE = 0x0a;

/** The numbers of the artifacts attached to entries, by the position of the entry. */
export type AttachedArtifactNumbers = ReadonlyMap<number, readonly number[]>;
const NO_NUMBERS: AttachedArtifactNumbers = new Map();

/** The position of a block, and its attached artifacts. */
export interface BlockContent {
  /** Of the first entry, like `seq`. */
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  /** JSON: the numbers of the attached artifacts, by the position of their entry in the block. Null for none. */
  readonly artifacts: string | null;
}

/** A block to be written. */
export interface Block extends BlockContent {
  /** The entry types, separated by blanks. */
  readonly types: string;
  readonly leaf_hashes: Buffer;
  readonly texts: readonly string[];
  /** UTF-16 length of all texts with their separating newlines. Canonical JSON has no newline (`checkBatch`). */
  readonly chars: number;
}

/** A block as read from the database; untrusted. */
export interface BlockRow extends BlockContent {
  readonly types: string;
  readonly leaf_hashes: Buffer;
  /** Not decoded yet: see `textsOf`. */
  readonly texts: Buffer;
}

/** What a block contains of a sealed entry. */
interface TypedText {
  readonly text: string;
  readonly leaf_hash: string;
  readonly entry: { readonly type: string };
}

/**
 * Splits an append, which begins at `log_index` of the log, into blocks.
 * @param attached the numbers of the artifacts, by the position of their entry
 */
export function blocksOf(
  { tree_id, from, entries }: Pick<TreeAppend, 'tree_id' | 'from'> & { readonly entries: readonly TypedText[] },
  log_index: number,
  attached: AttachedArtifactNumbers = NO_NUMBERS,
): readonly Block[] {
  const hashes = Buffer.from(entries.map(({ leaf_hash }) => leaf_hash).join(''), 'hex');
  const blocks: Block[] = [];
  for (let begin = 0, end = 0; begin < entries.length; begin = end) {
    const first = entries[begin];
    if (first === undefined) break;
    const texts = [first.text];
    let types: string = first.entry.type;
    let chars = first.text.length;
    for (end = begin + 1; end - begin < BLOCK_ENTRIES_MAX; end += 1) {
      const next = entries[end];
      if (next === undefined || chars + next.text.length >= BLOCK_CHARS_MAX) break;
      types += ` ${next.entry.type}`;
      chars += 1 + next.text.length;
      texts.push(next.text);
    }
    blocks.push({
      log_index: log_index + begin,
      tree_id,
      seq: from + begin,
      artifacts: attached.size === 0 ? null : artifactsText(attached, begin, end),
      types,
      leaf_hashes: hashes.subarray(begin * HASH_BYTES, end * HASH_BYTES),
      texts,
      chars,
    });
  }
  return blocks;
}

/** UTF-8 bytes for one UTF-16 unit. */
const BYTES_A_CHAR_MAX = 3;

/**
 * Encodes the text column of a block: its entries, separated by newlines. Each text is written straight into the
 * buffer, which costs a third of joining and encoding a string.
 */
export class BlockText {
  readonly #bytes = Buffer.allocUnsafe(BLOCK_CHARS_MAX * BYTES_A_CHAR_MAX);

  /** @returns the bytes, valid until the next call */
  encode({ texts, chars }: Pick<Block, 'texts' | 'chars'>): Buffer {
    // Only an entry that is too large to share a block needs a larger buffer.
    const bytes = chars > BLOCK_CHARS_MAX ? Buffer.allocUnsafe(chars * BYTES_A_CHAR_MAX) : this.#bytes;
    let end = 0;
    for (const text of texts) {
      if (end > 0) {
        bytes[end] = NEWLINE;
        end += 1;
      }
      end += bytes.write(text, end);
    }
    return bytes.subarray(0, end);
  }
}

function artifactsText(attached: AttachedArtifactNumbers, begin: number, end: number): string | null {
  let members = '';
  for (let place = begin; place < end; place += 1) {
    const numbers = attached.get(place);
    if (numbers === undefined) continue;
    members += `${members === '' ? '' : ','}"${place - begin}":[${numbers.join()}]`;
  }
  return members === '' ? null : `{${members}}`;
}

/**
 * The entries of a block. For a tampered block, the longest column sets the count and missing values are empty, so that
 * a check can report each entry.
 * @throws LedgerError LEDGER_TAMPERED if a column is missing, for example after page damage
 */
export function entriesOf(row: BlockRow): readonly StoredEntry[] {
  const { log_index, tree_id, seq, types, leaf_hashes, texts } = row;
  const columns: readonly unknown[] = [leaf_hashes, texts];
  if (typeof (types as unknown) !== 'string' || !columns.every((column) => column instanceof Uint8Array)) {
    throw tamperedError(`the block at entry ${nameInLedger(log_index)} has lost a column`);
  }
  const typeList = types.split(' ');
  const textList = textsOf(texts);
  const hashes = leaf_hashes.toString('hex');
  const count = Math.max(typeList.length, textList.length, leaf_hashes.byteLength / HASH_BYTES);
  return Array.from({ length: count }, (_, place) => ({
    log_index: log_index + place,
    tree_id,
    seq: seq + place,
    type: typeList[place] ?? '',
    text: textList[place] ?? '',
    leaf_hash: hashes.slice(place * 2 * HASH_BYTES, (place + 1) * 2 * HASH_BYTES),
  }));
}

/**
 * Invalid UTF-8 would decode with U+FFFD to a text that an entry might really have. So such a line gets a text that no
 * entry can have.
 */
function textsOf(bytes: Buffer): readonly string[] {
  if (isUtf8(bytes)) return bytes.toString().split('\n');
  const texts: string[] = [];
  for (let begin = 0; begin <= bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, begin);
    const line = bytes.subarray(begin, newline === -1 ? bytes.length : newline);
    texts.push(isUtf8(line) ? line.toString() : `\ufffd${line.toString('latin1')}`);
    begin += line.length + 1;
  }
  return texts;
}

/** The numbers of the artifacts attached to one entry. @throws LedgerError LEDGER_TAMPERED */
export const artifactNumbers = (artifacts: string | null, place: number): readonly number[] =>
  artifacts === null ? [] : numbersIn(artifacts, (byPlace) => byPlace[place] ?? []);

/** The numbers of the artifacts attached to all entries of a block. @throws LedgerError LEDGER_TAMPERED */
export const artifactNumbersIn = (artifacts: string): readonly number[] =>
  numbersIn(artifacts, (byPlace) => Object.values(byPlace).flat());

function numbersIn(
  artifacts: string,
  choose: (byPlace: Readonly<Record<number, unknown>>) => unknown,
): readonly number[] {
  try {
    const numbers = choose(parseOwnJson(artifacts) as Readonly<Record<number, unknown>>);
    if (Array.isArray(numbers) && numbers.every((number) => Number.isSafeInteger(number))) return numbers as number[];
  } catch {
    // Falls through to the error below: this store did not write such a text.
  }
  throw tamperedError(`a block names no artifacts: ${artifacts}`);
}

// Marks: the index has one name for each of them.

/** The unique key of a mark. */
export interface MarkIndexKey {
  /** The id of the root run or of the tree within which the name is unique. */
  readonly scope: string;
  readonly name: string;
}

/** Copies a name that may be a slice of a payload, which would otherwise stay in memory as a whole. */
export const copyName = (name: string): string => Buffer.from(name).toString();

export const proposalKey = ({ root_run_id, proposal_id }: ProposalKey): MarkIndexKey => ({
  scope: root_run_id,
  name: `p${proposal_id}`,
});
export const inputKey = ({ tree_id, input_id }: InputKey): MarkIndexKey => ({
  scope: tree_id,
  name: `i${input_id}`,
});
/** The name of the mark for the end of a tree. */
export const ENDED_MARK = 'e';

/** The marks of a batch, stored in one row. */
export interface BatchMarks {
  readonly proposals: readonly ProposalMark[];
  readonly inputs: readonly InputMark[];
  /** Tree ids. */
  readonly ended: readonly string[];
}

/** @returns null if the batch has no marks */
export function batchMarksOf({ trees }: Batch): BatchMarks | null {
  const proposals: ProposalMark[] = [];
  const inputs: InputMark[] = [];
  const ended: string[] = [];
  for (const append of trees) {
    for (const mark of append.proposals) proposals.push(mark);
    for (const mark of append.inputs) inputs.push(mark);
    if (append.ended) ended.push(append.tree_id);
  }
  return proposals.length + inputs.length + ended.length === 0 ? null : { proposals, inputs, ended };
}

/** @returns the mark with this key, among those of one row */
export function markIn(
  { proposals, inputs }: BatchMarks,
  key: InputKey | ProposalKey,
): InputMark | ProposalMark | undefined {
  if ('input_id' in key) return inputs.find((mark) => mark.tree_id === key.tree_id && mark.input_id === key.input_id);
  const { root_run_id, proposal_id } = key;
  return proposals.find((mark) => mark.root_run_id === root_run_id && mark.proposal_id === proposal_id);
}

export function* keysOf({ proposals, inputs, ended }: BatchMarks): Generator<MarkIndexKey, void> {
  for (const mark of proposals) yield proposalKey(mark);
  for (const mark of inputs) yield inputKey(mark);
  for (const scope of ended) yield { scope, name: ENDED_MARK };
}

/**
 * The marks that are not stored yet, with their keys. A batch may mark the end of a tree again; that is skipped.
 * @throws InvariantError for a proposal or an input that is marked already
 */
export function findNewMarks(
  { proposals, inputs, ended }: BatchMarks,
  isMarked: (key: MarkIndexKey) => boolean,
): { readonly first: BatchMarks; readonly keys: readonly MarkIndexKey[] } {
  const first = { proposals, inputs, ended: ended.filter((scope) => !isMarked({ scope, name: ENDED_MARK })) };
  const keys: MarkIndexKey[] = [];
  const names = new Set<string>();
  for (const { scope, name } of keysOf(first)) {
    const key = { scope, name: copyName(name) };
    if (isMarked(key)) throw duplicateMarkError();
    keys.push(key);
    names.add(`${scope}\n${name}`);
  }
  if (names.size < keys.length) throw duplicateMarkError();
  return { first, keys };
}

/** The text of a row; compact, because every step writes one. */
export const marksText = ({ proposals, inputs, ended }: BatchMarks): string =>
  JSON.stringify([
    proposals.map((mark) => [
      mark.root_run_id,
      mark.proposal_id,
      mark.run_id,
      mark.step_index,
      mark.payload_sha256,
      mark.seq,
    ]),
    inputs.map(({ tree_id, input_id, seq }) => [tree_id, input_id, seq]),
    ended,
  ]);

const SHAPES = [
  ['string', 'string', 'string', 'number', 'string', 'number'],
  ['string', 'string', 'number'],
] as const;
type ProposalRow = [string, string, string, number, string, number];
type InputRow = [string, string, number];

/** @throws LedgerError LEDGER_TAMPERED if the text is not a valid row of marks */
export function readMarks(mark_no: number, text: string): BatchMarks {
  try {
    const [proposals, inputs, ended] = parseOwnJson(text) as [ProposalRow[], InputRow[], string[]];
    if (hasShape(SHAPES[0], proposals) && hasShape(SHAPES[1], inputs) && ended.every((id) => typeof id === 'string')) {
      return { proposals: proposals.map(proposalOf), inputs: inputs.map(inputOf), ended };
    }
  } catch {
    // Falls through to the error below: this store did not write such a text.
  }
  throw tamperedError(`row ${mark_no} of the marks is not what it was`);
}

const hasShape = (shape: readonly string[], rows: readonly (readonly unknown[])[]): boolean =>
  rows.every((row) => row.length === shape.length && shape.every((type, place) => typeof row[place] === type));

const proposalOf = ([
  root_run_id,
  proposal_id,
  run_id,
  step_index,
  payload_sha256,
  seq,
]: ProposalRow): ProposalMark => ({
  root_run_id,
  proposal_id,
  run_id,
  step_index,
  payload_sha256,
  seq,
});

const inputOf = ([tree_id, input_id, seq]: InputRow): InputMark => ({ tree_id, input_id, seq });

/** Collects rows for a table and inserts several in one statement. */
export class RowInserts {
  readonly #one: SqliteStatement;
  readonly #many: SqliteStatement;
  readonly #columns: number;
  readonly #full: number;
  #values: unknown[] = [];

  /**
   * @param insert the statement up to its values
   * @param rows in one statement: for its rollback, each statement copies the pages that it changes
   */
  constructor(db: SqliteConnection, insert: string, columns: number, rows: number) {
    const row = `(${Array<string>(columns).fill('?').join(', ')})`;
    this.#columns = columns;
    this.#full = columns * rows;
    this.#one = db.prepare(`${insert} VALUES ${row}`);
    this.#many = db.prepare(`${insert} VALUES ${Array<string>(rows).fill(row).join(', ')}`);
  }

  add(...row: readonly unknown[]): void {
    this.#values.push(...row);
    if (this.#values.length < this.#full) return;
    this.#many.run(this.#values);
    this.#values = [];
  }

  flush(): void {
    for (let at = 0; at < this.#values.length; at += this.#columns)
      this.#one.run(this.#values.slice(at, at + this.#columns));
    this.#values = [];
  }
}
