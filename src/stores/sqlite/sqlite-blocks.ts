// A block is one row of the database: consecutive entries of one tree. All entries that one input caused are in one
// block, so that a step is one row and not nine.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { isUtf8 } from 'node:buffer';
import { parseOwnJson } from '../../core/contract/json.js';
import type { StoredEntry, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import { tamperedError } from '../ledger/store-errors.js';

/** Limits of a block, unless a single entry exceeds them: readers load a block as a whole. */
export const BLOCK_ENTRIES_MAX = 256;
export const BLOCK_CHARS_MAX = 256 * 1_024;

const HASH_BYTES = 32;
const NEWLINE = 0x0a;

/** The numbers of the artifacts attached to entries, by the position of the entry. */
export type AttachedArtifactNumbers = ReadonlyMap<number, readonly number[]>;
const NO_NUMBERS: AttachedArtifactNumbers = new Map();

/** A block to be written. */
export interface Block {
  /** Of the first entry, like `seq`. */
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly count: number;
  /** JSON: the numbers of the attached artifacts, by the position of their entry in the block. Null for none. */
  readonly artifacts: string | null;
  /** The entry types, separated by blanks. */
  readonly types: string;
  readonly leaf_hashes: Buffer;
  readonly texts: readonly string[];
  /** UTF-16 length of all texts with their separating newlines. Canonical JSON has no newline (`checkBatch`). */
  readonly chars: number;
}

/** The position of a block, and its attached artifacts. */
export interface BlockContent {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  /** See `Block.artifacts`. */
  readonly artifacts: string | null;
}

/** A block as read from the database; untrusted. */
export interface BlockRow {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly types: string;
  readonly leaf_hashes: Buffer;
  /** Not decoded yet: see `textsOf`. */
  readonly texts: Buffer;
}

/**
 * Splits an append, which begins at `log_index` of the log, into blocks.
 * @param attached the numbers of the artifacts, by the position of their entry
 */
export function blocksOf(
  { tree_id, from, entries }: TreeAppend,
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
      count: end - begin,
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
