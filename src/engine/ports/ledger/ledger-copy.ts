// What a copy of a ledger reads from one store and writes to another: rows in a form that no store owns. Contents stay
// encrypted, and keep their numbers: signed records of erasures refer to these numbers.

import type { InputMark, LogHead, ProposalMark } from '../../../core/ledger/readable-ledger.js';
import type { TreeRecoveryHint } from './batch.js';
import type { WrittenRecord } from './run-record-table.js';
import type { Lease } from './shared-store.js';

/** A content, as its store has it. */
export interface CopiedContent {
  readonly no: number;
  readonly case_id: string | null;
  /** SHA-256 of the content before encryption, in lower-case hex. */
  readonly sha256: string;
  readonly kind: string;
  /** Size of the content before encryption, in bytes. */
  readonly byte_size: number;
  /** The number of the key of the case that encrypts it; 0 for none. */
  readonly key_no: number;
  /** The encrypted bytes; null if the content was erased. */
  readonly stored: Uint8Array | null;
}

/** Consecutive entries of one tree. */
export interface CopiedBlock {
  readonly tree_id: string;
  /** Sequence number of the first entry. */
  readonly seq: number;
  /** Log index of the first entry. */
  readonly log_index: number;
  /** The entry types, separated by blanks. */
  readonly types: string;
  /** The texts of the entries, separated by newlines. */
  readonly texts: string;
  readonly leaf_hashes: readonly string[];
  /** The numbers of the contents, by the position of their entry in the block. */
  readonly contents: readonly { readonly entry: number; readonly no: number }[];
}

export interface CopiedTree extends TreeRecoveryHint {
  readonly tree_id: string;
  /** Log index of its first entry. */
  readonly log_index: number;
  readonly case_id: string | null;
  readonly ended: boolean;
}

/** A tree with the work that the former writer has left undone. */
export interface RecoveredTree extends CopiedTree {
  readonly leases: readonly Lease[];
}

export type CopiedMark = InputMark | ProposalMark;

/** An ended tree. */
export interface CopiedEnd {
  readonly tree_id: string;
  /** How many of its entries its run records cover; null if it is not recorded. */
  readonly seq: number | null;
  /** The records of all its runs. */
  readonly records: readonly Omit<WrittenRecord, 'tree_id'>[];
}

/** A list of a ledger, in pages. */
export type CopyPages<Row> = AsyncIterable<readonly Row[]>;

/**
 * A ledger that is read for a copy. No other process writes to it, or this is a snapshot. Nothing is pending.
 * Every method throws LedgerError LEDGER_TAMPERED or LEDGER_UNAVAILABLE.
 */
export interface LedgerCopySource {
  head(): Promise<LogHead>;
  /** Why this ledger cannot be copied, and what to do; null if it can be. */
  findObstacle(): Promise<string | null>;
  /** In the order of their numbers. @throws LedgerError LEDGER_TAMPERED if a key is missing */
  contents(): CopyPages<CopiedContent>;
  /** In the order of the log. */
  blocks(): CopyPages<CopiedBlock>;
  /** In the order of the log. */
  trees(): CopyPages<CopiedTree>;
  marks(): CopyPages<CopiedMark>;
  /** The recorded trees in the order in which they were recorded, then the others in the order of their ends. */
  ends(): CopyPages<CopiedEnd>;
  close(): Promise<void>;
}

/**
 * An empty ledger that a copy fills. Pages arrive in the order of the methods below. Until `publish` the store is
 * marked as an unfinished copy.
 */
export interface LedgerCopyTarget {
  /** Whether a start of this store finds timers and unfinished work in the store. Otherwise it folds the trees. */
  readonly needsLeases: boolean;
  addContents(page: readonly CopiedContent[]): Promise<void>;
  addBlocks(page: readonly CopiedBlock[]): Promise<void>;
  addTrees(page: readonly RecoveredTree[]): Promise<void>;
  addMarks(page: readonly CopiedMark[]): Promise<void>;
  addEnds(page: readonly CopiedEnd[]): Promise<void>;
  /** Makes everything durable, so that the copy can be verified. `head` is the head of the log. */
  finish(head: LogHead): Promise<void>;
  /** Removes the mark of an unfinished copy. */
  publish(): Promise<void>;
  /** Closes it, in any state. */
  close(): Promise<void>;
}
