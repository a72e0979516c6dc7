// A block is a row of the database: entries of one tree that follow each other in the log. All that one input caused
// comes in one block, so that a step is one row and not nine.

import { isUtf8 } from 'node:buffer';
import type { StoredEntry, TreeAppend } from '../../ports/ledger/ledger-store.js';
import { tamperedError } from '../ledger/store-errors.js';

/** A block ends before it has more entries than this, or more text: readers take it whole. */
export const BLOCK_ENTRIES_MAX = 256;
export const BLOCK_CHARS_MAX = 256 * 1_024;

const HASH_BYTES = 32;
const NEWLINE = 0x0a;

/** The numbers of the artifacts that entries brought, by the position of the entry. */
export type AttachedArtifactNumbers = ReadonlyMap<number, readonly number[]>;
const NO_NUMBERS: AttachedArtifactNumbers = new Map();

/** A block as it is written. */
export interface Block {
  /** Of its first entry; so is `seq`. */
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly count: number;
  /** JSON: the numbers of the artifacts that an entry brought, by its position in the block. Null where none did. */
  readonly artifacts: string | null;
  /** Separated by blanks. */
  readonly types: string;
  readonly leaf_hashes: Buffer;
  readonly texts: readonly string[];
  /** Of all texts, with what separates them: newlines, which canonical JSON has none of (`checkBatch`). */
  readonly chars: number;
}

/** Where a block stands, and what its entries brought. */
export interface BlockContent {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  /** As a block has it. */
  readonly artifacts: string | null;
}

/** A block as it is read; nothing of it is trusted. */
export interface BlockRow {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly types: string;
  readonly leaf_hashes: Buffer;
  /** Not decoded yet: see `textOf`. */
  readonly texts: Buffer;
}

/**
 * Cuts an append, which begins at `log_index` of the log, into blocks.
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

/** Of UTF-16, as UTF-8. */
const BYTES_A_CHAR_MAX = 3;

/**
 * The text of a block as it is stored: its entries, separated by newlines. Each is written straight to its place, which
 * costs a third of what it does to join them as a string, and to have that made into bytes.
 */
export class BlockText {
  readonly #bytes = Buffer.allocUnsafe(BLOCK_CHARS_MAX * BYTES_A_CHAR_MAX);

  /** @returns the text, until the next one is asked for */
  encode({ texts, chars }: Pick<Block, 'texts' | 'chars'>): Buffer {
    // Only an entry that is too large for a block, and so has one of its own, needs more.
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
 * The entries of a block. One that was changed gives as many as the longest of its columns has, and what a column lacks
 * is empty there: so each is there to be named.
 * @throws LedgerError LEDGER_TAMPERED for a row of which a damaged page has left less than that
 */
export function entriesOf(row: BlockRow): readonly StoredEntry[] {
  const { log_index, tree_id, seq, types, leaf_hashes, texts } = row;
  const columns: readonly unknown[] = [leaf_hashes, texts];
  if (typeof (types as unknown) !== 'string' || !columns.every((column) => column instanceof Uint8Array)) {
    throw tamperedError(`the block at entry ${log_index} has lost a column`);
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
 * Bytes that are not UTF-8 would decode to the same text as the ones that were there before, with U+FFFD in it; so they
 * get a text that no entry has.
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

/** The numbers of the artifacts that an entry brought. @throws LedgerError LEDGER_TAMPERED */
export const artifactNumbers = (artifacts: string | null, place: number): readonly number[] =>
  artifacts === null ? [] : numbersIn(artifacts, (byPlace) => byPlace[place] ?? []);

/** Those that all entries of a block brought. @throws LedgerError LEDGER_TAMPERED */
export const artifactNumbersIn = (artifacts: string): readonly number[] =>
  numbersIn(artifacts, (byPlace) => Object.values(byPlace).flat());

function numbersIn(
  artifacts: string,
  choose: (byPlace: Readonly<Record<number, unknown>>) => unknown,
): readonly number[] {
  try {
    const numbers = choose(JSON.parse(artifacts) as Readonly<Record<number, unknown>>);
    if (Array.isArray(numbers) && numbers.every((number) => Number.isSafeInteger(number))) return numbers as number[];
  } catch {
    // Told below, like everything else that this store has not written.
  }
  throw tamperedError(`a block names no artifacts: ${artifacts}`);
}
