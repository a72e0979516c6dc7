import { extendHead } from '../../core/ledger/proof/merkle.js';
import type { Batch, LogHead } from '../../engine/ports/ledger/ledger-store.js';

/** The log indexes of a batch, and the head of the log after it. */
export interface IntegratedBatch {
  /** The head of the log after the batch. */
  readonly head: LogHead;
  /** The log index of the first entry of each append. */
  readonly first_log_indexes: readonly number[];
}

/** Gives the appends of a batch the next log indexes, in their order. */
export function integrateBatch(head: LogHead, { trees }: Batch): IntegratedBatch {
  const first_log_indexes: number[] = [];
  const leaf_hashes: string[] = [];
  for (const { entries } of trees) {
    first_log_indexes.push(head.size + leaf_hashes.length);
    for (const { leaf_hash } of entries) leaf_hashes.push(leaf_hash);
  }
  return { head: extendHead(head, leaf_hashes), first_log_indexes };
}
