// A ledger store that several workers write at once. No worker owns a tree: each append states how many entries its
// tree must have, and the store refuses it alone if another worker was faster.

import type { SandboxAmount } from '../../../core/contract/run/effect.js';
import type { ExternalHead, ExternalHeadStore, HeadSeal, LedgerStore, TreeAppend } from './ledger-store.js';

/** Work of one worker for a run outside of the ledger. The store knows who does it, until an append releases it. */
export interface Lease {
  readonly run_id: string;
  /** `effect`: it runs an effect without a recorded outcome. `caller`: the caller of the run is connected to it. */
  readonly kind: 'effect' | 'caller';
}

/** What a decided change may add to the sandbox of its case, until its step is recorded. */
export interface CaseReservation extends SandboxAmount {
  /** The idempotency key of the change. */
  readonly key: string;
  /** The agent run whose step decided the change. */
  readonly run_id: string;
  /** The paths that the change affects. */
  readonly paths: readonly string[];
  /** What it may add once another change affects one of its paths. */
  readonly whole: SandboxAmount;
}

/** The reservations of a case by the changes of all workers. */
export interface CaseQuota {
  /** Differs after every change of the reservations; empty for a case that never had any. */
  readonly version: string;
  readonly reservations: readonly CaseReservation[];
  /** What all changes so far have reserved, each with its whole amount. It never falls. */
  readonly total: SandboxAmount;
}

/** What an append changes in the reservations of a case, or only depends on. */
export interface QuotaChange {
  readonly case_id: string;
  /** The version of the reservations with which the worker decided. */
  readonly version: string;
  /** Whether a decision of the append depends on the reservations. Without `room`, another version is a conflict. */
  readonly isChecked: boolean;
  /** The total when the reservations were read, with the changes that the worker has committed since. */
  readonly total: SandboxAmount;
  /** What others may have reserved beyond `total`, so that the decisions hold. Null: the version must be the same. */
  readonly room: SandboxAmount | null;
  readonly reserved: readonly CaseReservation[];
  /** The agent runs whose reservations end, because their step is recorded. They end before others begin. */
  readonly released: readonly string[];
}

/** What an append does with the label of its case: the join of the labels of everything that its runs have read. */
export interface CaseLabelChange {
  readonly case_id: string;
  /** The version that the case must still have, because the append contains its label; null: any. */
  readonly version: number | null;
  /** Whether the append may raise the label. Then the case gets the next version. */
  readonly isRaised: boolean;
}

/** A tree whose entries were integrated into the log, up to this number. */
export interface GrownTree {
  readonly tree_id: string;
  readonly length: number;
}

/** An append of a shared batch. */
export interface SharedAppend extends TreeAppend {
  /** The leases that the committing worker takes on. */
  readonly taken: readonly Lease[];
  /** The runs whose leases are done: their outcome or end is among the entries. */
  readonly released: readonly string[];
  /** At most one for each case. Empty if the append neither changes reservations nor depends on them. */
  readonly quotas: readonly QuotaChange[];
  /** Null if the append neither contains the label of its case nor may raise it. */
  readonly label: CaseLabelChange | null;
}

/** What one round trip writes. Each append is committed or refused alone; a tree has at most one. */
export interface SharedBatch {
  /** The number of the committing worker, from `join`. */
  readonly worker_id: number;
  /**
   * The next version of the reservations that the batch changes. No two batches have the same. A case whose
   * reservations had another version than the changes, or with an append in conflict, gets this one with a suffix.
   */
  readonly quota_version: string;
  readonly trees: readonly SharedAppend[];
}

/**
 * `committed`; `present`: exactly these entries were committed before: the same batch was sent twice, or another worker
 * has decided the same request in the same millisecond;
 * `conflict`: the tree has other entries, or the reservations of its case have changed and a decision depends on them,
 * or its case has another version of the label; nothing of this append was written. If an append of a case is in
 * conflict, so are those of the batch that depend on the reservations of the case.
 */
export type AppendStatus = 'committed' | 'present' | 'conflict';

/** A lease of a worker that is gone. It belongs to the worker that claimed it, until an append releases it. */
export interface ClaimedLease extends Lease {
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
   * Becomes one of the writers, as a worker with a new number. A former worker of this store is over.
   * @throws LedgerError LEDGER_LOCKED while a single writer has the ledger
   */
  join(): Promise<number>;
  /**
   * Commits each append, unless its tree was extended meanwhile. Durable when resolved.
   * @returns the status of each append, in the order of the batch
   * @throws LedgerError LEDGER_CONFLICT if the worker is over; LEDGER_UNAVAILABLE if nothing was written;
   * LEDGER_COMMIT_UNKNOWN if the store cannot tell whether it committed: send the same batch again
   */
  commitTrees(batch: SharedBatch): Promise<readonly AppendStatus[]>;
  /**
   * The same, with the trees and the reservations of their cases locked while `decide` makes the batch: no other worker
   * changes them meanwhile. For trees that several workers extend often, where a compare-and-set alone would starve one
   * of them.
   * @returns the batch of `decide`, and its statuses @throws as `commitTrees`, or the error of `decide`
   */
  commitLocked<Made extends SharedBatch>(
    tree_ids: readonly string[],
    decide: () => Promise<Made>,
  ): Promise<{ readonly batch: Made; readonly statuses: readonly AppendStatus[] }>;
  /** How many entries each of these trees has; 0 for an unknown tree. Uses one query. */
  treeLengths(tree_ids: readonly string[]): Promise<readonly number[]>;
  /** The reservations of these cases. Uses one query. */
  caseQuotas(case_ids: readonly string[]): Promise<readonly CaseQuota[]>;
  /** The version of a case's label; 0 for a case without one. It is read from the case, not from the log. */
  labelVersion(case_id: string): Promise<number>;
  /**
   * Takes over the open trees with a timer at or before `now`, so that no other worker does before `until` (ISO 8601).
   * @param except trees that this worker leaves to others @returns at most `limit` trees
   */
  claimDueTrees(now: string, until: string, limit: number, except: readonly string[]): Promise<readonly string[]>;
  /**
   * Declares the workers over whose process is gone, and takes over the leases of workers that are known to be
   * dead, or have been over for `graceMs` or more.
   * @param except trees whose leases this worker leaves to others
   * @returns the leases that this worker has taken over and not released, at most `limit`; none if it has not joined
   */
  claimLeases(graceMs: number, limit: number, except: readonly string[]): Promise<readonly ClaimedLease[]>;
  /** Whether this worker has all of these leases. Uses one query. */
  hasLeases(leases: readonly Lease[]): Promise<boolean>;
  /** Gives claimed leases up, so that any other worker can take them over. */
  returnLeases(leases: readonly Lease[]): Promise<void>;
  /** Releases claimed leases for which there is nothing to do. */
  releaseLeases(leases: readonly Lease[]): Promise<void>;
  /**
   * Whether this worker integrates the appends of all workers. It takes the lead if no other worker has it, and keeps
   * it until its store is closed or loses its connection.
   */
  lead(): Promise<boolean>;
  /**
   * Calls `listener` with the trees of each integration, whichever worker made it. An announcement may be lost or
   * repeated, so a listener also polls. Absent: there are no announcements.
   * @returns ends the subscription
   */
  subscribe?(listener: (trees: readonly GrownTree[]) => void): () => void;
  /** Where the workers also keep their heads. Absent or null: only in files. */
  readonly headTable?: HeadTable | null;
  /** Whether this worker has joined and is not over. */
  isActive(): Promise<boolean>;
}

/** An external head store that can begin to sign its heads. */
export interface SignedHeadStore extends ExternalHeadStore {
  /** Signs heads with this seal from now on; heads that were stored before may be unsigned. */
  sealWith(seal: HeadSeal): void;
}

/** Where a worker stores its heads. */
export interface HeadPlace {
  /** The first key of the ledger, which names it; null before it has one. */
  readonly ledger: () => string | null;
  /** Names the worker. */
  readonly worker: string;
}

/** The signed heads of the workers of shared ledgers, in a database that no failover of the ledger's sets back. */
export interface HeadTable {
  /** Reads the highest head of all workers of a ledger, and raises that of one. */
  open(place: HeadPlace, seal: HeadSeal | null): SignedHeadStore;
  /** Puts aside the heads that the ledger does not contain, as evidence. @returns where each of them is */
  putAside(
    ledger: string,
    end: string,
    seal: HeadSeal,
    isContained: (head: ExternalHead) => Promise<boolean>,
  ): Promise<readonly string[]>;
}

/** Whether several workers can write the ledger. */
export const isShared = (store: LedgerStore): store is SharedLedgerStore => 'commitTrees' in store;
