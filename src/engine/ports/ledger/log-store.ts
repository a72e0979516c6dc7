// The one log over all trees, and the integration of entries into it.

import type { LogHead, PendingAppend, ReadableLog } from '../../../core/ledger/readable-ledger.js';

/** Integrates pending appends into the log. */
export interface Integration {
  /** The size that the log must have now: the first entry gets this index. */
  readonly from: number;
  /**
   * As `pending` returned them, in the order that they get in the log. They are the oldest of each tree, without a gap.
   */
  readonly appends: readonly PendingAppend[];
  /** The log's head after these appends. */
  readonly head: LogHead;
}

/** The one log over all trees. A store may integrate each commit itself, or leave that to a sequencer. */
export interface LogStore extends ReadableLog {
  /**
   * Integrates all of the appends or none: a compare-and-set on the log's size.
   * @returns false, with nothing written, if the log has another size
   * @throws LedgerError like `commit` @throws InvariantError for appends that are not the next of their tree, or a head
   * of another size
   */
  integrate(integration: Integration): Promise<boolean>;
  /** The leaf hashes of at most `limit` integrated entries from this index on, without their texts. */
  leafHashes?(fromIndex: number, limit: number): Promise<readonly string[]>;
}
