import type { SealedEntry } from '../../contract/run/entry.js';
import type { Batch, CommitResult } from '../../ports/ledger/ledger-store.js';

/** What a batch added to the log. */
export interface LogAppends {
  /** The size of the log after the batch. */
  readonly size: number;
  readonly placed: readonly { readonly first: number; readonly entries: readonly SealedEntry[] }[];
}

/** @returns null where the entries are still pending in the log */
export function logAppendsOf({ trees }: Batch, { head, first_log_indexes }: CommitResult): LogAppends | null {
  if (head === null || first_log_indexes === null) return null;
  const placed = trees.map(({ entries }, at) => ({ first: first_log_indexes[at] ?? 0, entries }));
  return { size: Math.max(...placed.map(({ first, entries }) => first + entries.length)), placed };
}
