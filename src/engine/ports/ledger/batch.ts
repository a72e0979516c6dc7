// What one transaction writes.

import type { Artifact } from '../../../core/contract/artifact-ref.js';
import type { ProposalMark, SealedEntry } from '../../../core/contract/run/entry.js';
import type { InputMark, LogHead } from '../../../core/ledger/readable-ledger.js';

/** The content of an entry. */
export interface AttachedArtifact {
  /** Index of the entry in the append. */
  readonly entry: number;
  readonly artifact: Artifact;
  /** Lower-case hex. A write does not compute it again; a read compares it with the content. */
  readonly sha256: string;
}

/** What the next start must know of a tree that has not ended. */
export interface TreeRecoveryHint {
  /** An effect has no result yet, or a run ends with its process, so the next start must fold the tree. */
  readonly unfinished: boolean;
  /** Lower bound of the times of the tree's timers (ISO 8601); null if none is set. */
  readonly wake_at: string | null;
}

/** What one transaction adds to one tree. */
export interface TreeAppend {
  readonly tree_id: string;
  /** The number of entries that the tree must have now; 0 for a new tree. */
  readonly from: number;
  /** At least one. */
  readonly entries: readonly SealedEntry[];
  /** The content of the inputs among them, whether stored before or not. */
  readonly artifacts: readonly AttachedArtifact[];
  readonly proposals: readonly ProposalMark[];
  /** Input marks of this tree. */
  readonly inputs: readonly InputMark[];
  /** The case that the tree is opened for; set only in the first append. */
  readonly opened: { readonly case_id: string | null } | null;
  readonly ended: boolean;
  /** The recovery hint after this append; null if unchanged. A new tree counts as unfinished. */
  readonly recoveryHint: TreeRecoveryHint | null;
  /**
   * The tree's state before this append, which replaces its former snapshot; null if none is due. It is a cache (D16)
   * that a store may ignore.
   */
  readonly snapshot: StoredSnapshot | null;
}

/** The state of a tree after its first `seq` entries. */
export interface StoredSnapshot {
  readonly tree_id: string;
  readonly seq: number;
  readonly text: string;
  /** Authenticates the text under a key that the store does not have. The store only keeps it. */
  readonly mac: string;
}

/** What one transaction writes: all of it or nothing. It has at most one append for each tree. */
export interface Batch {
  /** The fencing epoch of the writer, from `acquire`. */
  readonly epoch: number;
  readonly trees: readonly TreeAppend[];
}

/** The result of a committed batch. */
export interface CommitResult {
  /** A head of the log that covers the whole batch; null until all of its entries are integrated. */
  readonly head: LogHead | null;
  /**
   * Log index of the first entry of each append, in the order of the batch; null like `head`. The entries of an append
   * are adjacent in the log.
   */
  readonly first_log_indexes: readonly number[] | null;
}
