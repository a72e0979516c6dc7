// A ledger store that several workers write at once. No worker owns a tree: each append states how many entries its
// tree must have, and the store refuses it alone if another worker was faster.

import type { LedgerStore, TreeAppend } from './ledger-store.js';

/** Work of one worker for a run outside of the ledger. The store knows who does it, until an append releases it. */
export interface Duty {
  readonly run_id: string;
  /** `effect`: the worker performs an effect without a recorded outcome. `caller`: it holds the run's caller. */
  readonly kind: 'effect' | 'caller';
}

/** An append of a shared batch. */
export interface SharedAppend extends TreeAppend {
  /** The duties that the committing worker takes on. */
  readonly taken: readonly Duty[];
  /** The runs whose duties are done: their outcome or end is among the entries. */
  readonly released: readonly string[];
}

/** What one round trip writes. Each append is committed or refused alone; a tree has at most one. */
export interface SharedBatch {
  /** The number of the committing worker, from `join`. */
  readonly performer: number;
  readonly trees: readonly SharedAppend[];
}

/**
 * `committed`; `present`: exactly these entries were committed before, because the same batch was sent twice;
 * `conflict`: the tree has other entries, and nothing of this append was written.
 */
export type AppendStatus = 'committed' | 'present' | 'conflict';

/** A duty of a worker that is gone. It belongs to the worker that claimed it, until an append releases it. */
export interface ClaimedDuty extends Duty {
  readonly tree_id: string;
  /**
   * Whether the former worker is known to be dead. If not, it may only be cut off, so an effect that has left no trace
   * may still happen.
   */
  readonly isDead: boolean;
}

/**
 * A store for several workers. `join` replaces `acquire`, and `commitTrees` replaces `commit`. While any worker has
 * joined, `acquire` is refused, and the other way round.
 */
export interface SharedLedgerStore extends LedgerStore {
  /**
   * Becomes one of the writers, as a performer with a new number. A former performer of this store is over.
   * @throws LedgerError LEDGER_LOCKED while a single writer has the ledger
   */
  join(): Promise<number>;
  /**
   * Commits each append, unless its tree was extended meanwhile. Durable when resolved.
   * @returns the status of each append, in the order of the batch
   * @throws LedgerError LEDGER_CONFLICT if the performer is over; LEDGER_UNAVAILABLE if nothing was written;
   * LEDGER_COMMIT_UNKNOWN if the store cannot tell whether it committed: send the same batch again
   */
  commitTrees(batch: SharedBatch): Promise<readonly AppendStatus[]>;
  /**
   * The same, with the trees locked while `decide` makes the batch: no other worker extends them meanwhile. For trees
   * that several workers extend often, where a compare-and-set alone would starve one of them.
   * @returns the batch of `decide`, and its statuses @throws as `commitTrees`, or the error of `decide`
   */
  commitLocked<Made extends SharedBatch>(
    tree_ids: readonly string[],
    decide: () => Promise<Made>,
  ): Promise<{ readonly batch: Made; readonly statuses: readonly AppendStatus[] }>;
  /** How many entries each of these trees has; 0 for an unknown tree. Uses one query. */
  treeLengths(tree_ids: readonly string[]): Promise<readonly number[]>;
  /**
   * Takes over the open trees with a timer at or before `now`, so that no other worker does before `until` (ISO 8601).
   * @returns at most `limit` trees
   */
  claimDueTrees(now: string, until: string, limit: number): Promise<readonly string[]>;
  /**
   * Declares the performers over whose worker is gone, and takes over the duties of performers that are known to be
   * dead, or have been over for `graceMs` or more.
   * @returns the duties that this worker has taken over and not released, at most `limit`; none if it has not joined
   */
  claimDuties(graceMs: number, limit: number): Promise<readonly ClaimedDuty[]>;
  /** Releases claimed duties for which there is nothing to do. */
  releaseDuties(duties: readonly Duty[]): Promise<void>;
  /** Whether this worker has joined and is not over. */
  isPerforming(): Promise<boolean>;
}
