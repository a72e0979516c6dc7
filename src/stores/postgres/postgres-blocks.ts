// A block is one row: the entries of one append.

import type { TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { Row } from './postgres-connection.js';
import { tamperedError } from '../ledger/store-errors.js';
import { hexOf, integerOf, integersOf, textOf } from './values/postgres-values.js';

const HASH_CHARS = 64;

/** The columns from which `entriesOf` reads. */
export const BLOCK_COLUMNS =
  'b.tree_id, b.seq, b.types, b.leaf_hashes, b.texts, b.artifact_entries, b.artifact_nos, l.log_index';

/** An entry with the numbers of its contents. */
export interface BlockRowEntry {
  readonly entry: TreeEntry;
  readonly contents: readonly number[];
}

/**
 * The entries of a block. For a tampered block, the longest column sets the count and missing values are empty, so that
 * a check can report each entry.
 * @throws LedgerError LEDGER_TAMPERED if a column is missing
 */
export function entriesOf(row: Row): readonly BlockRowEntry[] {
  const what = `the block at ${row['log_index'] ?? 'no log index'} of ${row['tree_id'] ?? 'no tree'}`;
  const [tree_id, seq] = [textOf(row, 'tree_id', what), integerOf(row, 'seq', what)];
  const log_index = (row['log_index'] ?? null) === null ? null : integerOf(row, 'log_index', what);
  const types = textOf(row, 'types', what).split(' ');
  const texts = textOf(row, 'texts', what).split('\n');
  const hashes = hexOf(row, 'leaf_hashes', what);
  const contents = contentsIn(row, what);
  const count = Math.max(types.length, texts.length, Math.ceil(hashes.length / HASH_CHARS));
  return Array.from({ length: count }, (_, place) => ({
    entry: {
      log_index: log_index === null ? null : log_index + place,
      tree_id,
      seq: seq + place,
      type: types[place] ?? '',
      text: texts[place] ?? '',
      leaf_hash: hashes.slice(place * HASH_CHARS, (place + 1) * HASH_CHARS),
    },
    contents: contents.get(place) ?? [],
  }));
}

/** The numbers of the contents of the entry `seq`, which is in this block or after it. @throws LedgerError */
export const contentNumbersAt = (row: Row, seq: number): readonly number[] =>
  contentsIn(row, 'a block').get(seq - integerOf(row, 'seq', 'a block')) ?? [];

/** The numbers of the contents, by the position of their entry in the block. */
function contentsIn(row: Row, what: string): ReadonlyMap<number, readonly number[]> {
  const places = integersOf(row, 'artifact_entries', what);
  const numbers = integersOf(row, 'artifact_nos', what);
  if (places.length !== numbers.length) throw tamperedError(`${what} does not name the entries of its contents`);
  const contents = new Map<number, number[]>();
  for (const [at, place] of places.entries()) {
    const known = contents.get(place);
    if (known === undefined) contents.set(place, [numbers[at] ?? 0]);
    else known.push(numbers[at] ?? 0);
  }
  return contents;
}
