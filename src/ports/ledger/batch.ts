// What one transaction writes.

import type { Artifact } from '../../contract/artifact-ref.js';
import type { ProposalMark, SealedEntry } from '../../contract/run/entry.js';
import type { LogHead } from './log-store.js';

export type { ProposalMark };

/** An input whose id the caller chose, so that it may come again: a repeated one is a no-op. */
export interface InputMark {
  readonly tree_id: string;
  readonly input_id: string;
  /** Where the input stands in its tree. */
  readonly seq: number;
}

/** What an input, or a proposal, is remembered by. */
export type InputKey = Pick<InputMark, 'tree_id' | 'input_id'>;
export type ProposalKey = Pick<ProposalMark, 'root_run_id' | 'proposal_id'>;
export type MarkKey = InputKey | ProposalKey;
/** The mark that a key finds. */
export type MarkOf<Key extends MarkKey> = Key extends InputKey ? InputMark : ProposalMark;

/** Content that comes with an entry. */
export interface AttachedArtifact {
  /** The position of the entry in the append. */
  readonly entry: number;
  readonly artifact: Artifact;
  /** Lower-case hex. It is not computed again when it is written: reading compares it with the content. */
  readonly sha256: string;
}

/** What the next start must know of a tree that has not ended. */
export interface TreeRecoveryHint {
  /** An effect has no result yet, or a run ends with its process: the next start has to fold the tree. */
  readonly unfinished: boolean;
  /** No timer of the tree fires before this (ISO 8601, a lower bound); null: none is set. */
  readonly wake_at: string | null;
}

/** What one transaction adds to one tree. */
export interface TreeAppend {
  readonly tree_id: string;
  /** How many entries the tree must have now. 0: it is new. */
  readonly from: number;
  /** At least one. */
  readonly entries: readonly SealedEntry[];
  /** The content that inputs among them bring, seen before or not. */
  readonly artifacts: readonly AttachedArtifact[];
  readonly proposals: readonly ProposalMark[];
  /** Of this tree. */
  readonly inputs: readonly InputMark[];
  /** Given with the first append, and with no other: the case that the tree was opened for. */
  readonly opened: { readonly case_id: string | null } | null;
  readonly ended: boolean;
  /** What a start has to know of the tree after this append; null: unchanged. A new tree is unfinished. */
  readonly rest: TreeRecoveryHint | null;
  /**
   * Where the tree stood before this append, in the place of its former snapshot; null where none is due. A cache
   * (D16): a store need not have it.
   */
  readonly snapshot: StoredSnapshot | null;
}

/** Where a tree stood after the first `seq` of its entries. */
export interface StoredSnapshot {
  readonly tree_id: string;
  readonly seq: number;
  readonly text: string;
  /** Of the text. */
  readonly sha256: string;
}

/** What one transaction writes: all of it or nothing. It has at most one append for each tree. */
export interface Batch {
  /** The fencing epoch of the writer, from `acquire`. */
  readonly epoch: number;
  readonly trees: readonly TreeAppend[];
}

/** What became of a batch that was committed. */
export interface CommitResult {
  /** A head of the log that covers the whole batch; null while some of its entries wait to be integrated. */
  readonly head: LogHead | null;
  /**
   * Log index of the first entry of each append, in the order of the batch; null like `head`. The entries of an append
   * follow each other in the log.
   */
  readonly first_log_indexes: readonly number[] | null;
}
