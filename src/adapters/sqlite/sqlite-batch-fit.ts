// How a batch fits what is there: the same batch may be sent again after its answer was lost.

import type { Batch, CommitResult, LogHead, TreeAppend } from '../../ports/ledger/ledger-store.js';
import type { SqliteReader } from './sqlite-reader.js';

/** Whether a batch is what comes next, was committed before, or is neither. */
export type BatchFit = 'next' | 'present' | 'other';

/** @param endOf says how many entries a tree has */
export function batchFitOf({ trees }: Batch, endOf: (tree_id: string) => number, reader: SqliteReader): BatchFit {
  if (trees.every(({ tree_id, from }) => from === endOf(tree_id))) return 'next';
  return trees.every((append) => hasAppend(append, endOf, reader)) ? 'present' : 'other';
}

/** Whether its last entry is there: the hash of that covers all before it. */
function hasAppend(
  { tree_id, from, entries }: TreeAppend,
  endOf: (id: string) => number,
  reader: SqliteReader,
): boolean {
  const end = from + entries.length;
  if (endOf(tree_id) < end) return false;
  return reader.entryOf(tree_id, end - 1)?.leaf_hash === entries.at(-1)?.leaf_hash;
}

/** What became of a batch that was committed before. */
export function presentResult({ trees }: Batch, head: LogHead, reader: SqliteReader): CommitResult {
  return { head, first_log_indexes: trees.map(({ tree_id, from }) => reader.entryOf(tree_id, from)?.log_index ?? 0) };
}
