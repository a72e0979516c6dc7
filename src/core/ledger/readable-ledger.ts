// What is read of a ledger: entries by log and by tree, their content, marks, and what was archived. None of it is
// trusted before it is verified.

import type { StoredArtifact } from '../contract/artifact-ref.js';
import type { ProposalMark } from '../contract/run/entry.js';

export type { ProposalMark };

/** The log so far: `size` entries with RFC 6962 root `root`; `frontier` is its compact range. */
export interface LogHead {
  readonly size: number;
  /** Lower-case hex. The root of an empty log is SHA-256 of nothing. */
  readonly root: string;
  /** Hashes of the perfect subtrees, largest first, lower-case hex. */
  readonly frontier: readonly string[];
}

/** The position of an entry in its tree. Content is addressed by it. */
export interface EntryPlace {
  readonly tree_id: string;
  readonly seq: number;
  /** The log index, if the caller knows it: a hint that a store may use for its lookup but must not rely on. */
  readonly log_index?: number | null;
}

/**
 * An entry as stored in its tree. `log_index` is null until the entry is integrated into the log. Its bytes are not
 * trusted before they are verified.
 */
export interface TreeEntry extends EntryPlace {
  readonly log_index: number | null;
  readonly type: string;
  readonly text: string;
  readonly leaf_hash: string;
}

/** An entry with its index in the log. */
export interface StoredEntry extends TreeEntry {
  readonly log_index: number;
}

/** Durable entries of one tree that are not integrated into the log yet. */
export interface PendingAppend {
  /** Increases within a tree; two trees of one commit may share a number. */
  readonly commit_no: number;
  readonly tree_id: string;
  /** Sequence number of the first entry. */
  readonly seq: number;
  readonly leaf_hashes: readonly string[];
}

/** Options of a cursor. */
export interface CursorOptions {
  /** Checked before each page is read: if aborted, the cursor throws its reason and reads no more. */
  readonly signal?: AbortSignal;
}

export interface TreeSummary {
  readonly tree_id: string;
  readonly ended: boolean;
  /** Log index of its first entry; null until that entry is integrated. Trees are listed in this order. */
  readonly log_index: number | null;
}

/** Options for listing trees: the log index of their first entry from which to start. */
export interface TreeCursorOptions extends CursorOptions {
  readonly from?: number;
}

/** An input whose id the caller chose and may send again: a repeated one is a no-op. */
export interface InputMark {
  readonly tree_id: string;
  readonly input_id: string;
  /** Sequence number of the input in its tree. */
  readonly seq: number;
}

/** The deduplication key of an input or a proposal. */
export type InputKey = Pick<InputMark, 'tree_id' | 'input_id'>;
export type ProposalKey = Pick<ProposalMark, 'root_run_id' | 'proposal_id'>;
export type MarkKey = InputKey | ProposalKey;
/** The mark that belongs to a key. */
export type MarkOf<Key extends MarkKey> = Key extends InputKey ? InputMark : ProposalMark;

/** The beginning of a log that was moved to an archive file, as a head: the rest of the log continues from it. */
export interface ArchivedPart {
  /** Number of entries before this head; all of them are in archive files. */
  readonly size: number;
  /** Lower-case hex, like the other hashes. */
  readonly root: string;
  readonly frontier: readonly string[];
  /** SHA-256 of the archive file that ends here. */
  readonly sha256: string;
  /**
   * The signed checkpoint at `size` that names the file (read by `check-archives.ts`). Null if heads are not signed.
   */
  readonly note: string | null;
}

/** What is remembered of the archived part of a log. */
export interface ArchivedParts {
  /** In log order: the log continues from the last one. */
  parts(): Promise<readonly ArchivedPart[]>;
  /** How many entries an archived tree had; null for any other tree. */
  tree(tree_id: string): Promise<number | null>;
  /** How many trees are archived. */
  treeCount(): Promise<number>;
  /** Whether a tree of this case is archived. */
  hasCase(case_id: string): Promise<boolean>;
}

/** The one log over all trees. */
export interface ReadableLog {
  /** The head over the integrated entries. */
  head(): Promise<LogHead>;
  /**
   * All integrated entries in log order, from `fromIndex`; by default from the first that is not archived.
   * @throws LedgerError LEDGER_ARCHIVED if `fromIndex` is below that
   */
  log(fromIndex?: number, options?: CursorOptions): AsyncIterable<StoredEntry>;
  /**
   * Durable appends that are not integrated yet, oldest first, at most `limit`. Always empty if `commit` integrates.
   */
  pending(limit: number): Promise<readonly PendingAppend[]>;
}

/** A ledger that can be read and verified. */
export interface ReadableLedger extends ReadableLog {
  /**
   * Entries of one tree in order of seq, from `fromSeq`. An unknown tree has none.
   * @throws LedgerError LEDGER_ARCHIVED for an archived tree
   */
  tree(tree_id: string, fromSeq?: number, options?: CursorOptions): AsyncIterable<TreeEntry>;
  /** Lists trees, without archived ones. */
  trees(options?: TreeCursorOptions): AsyncIterable<TreeSummary>;
  /** The trees that were opened for a case, in the order of opening, without archived ones. */
  treesOf(case_id: string): Promise<readonly TreeSummary[]>;
  /**
   * The artifacts of an entry, in the order of its batch; empty for an unknown entry.
   * @throws LedgerError LEDGER_ARCHIVED
   */
  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]>;
  /**
   * The marks committed with these keys, in order; null for a key without one. Uses one query for any number of keys.
   * @throws InvariantError if a proposal id is not a lower-case UUID
   */
  marks<Key extends MarkKey>(keys: readonly Key[]): Promise<readonly (MarkOf<Key> | null)[]>;
  /** The part of the log that was moved to archive files. */
  readonly archives: ArchivedParts;
}

/** A tree with stored records: each is the fold of the tree's first `seq` entries. */
export interface RecordedTree {
  readonly tree_id: string;
  /** 0 for a tree whose records cannot be computed. */
  readonly seq: number;
}

/** The stored records of runs whose tree has ended. They are not trusted. */
export interface StoredRecords {
  /** All recorded trees. */
  trees(): AsyncIterable<RecordedTree>;
  /** The last stored record of a run, or null. It is not trusted, and incomplete while the tree is live. */
  load(tree_id: string, run_id: string): Promise<string | null>;
  /** How many runs of the tree have a record. */
  count(tree_id: string): Promise<number>;
}

/** A head stored outside of the ledger, and its signed checkpoint if there is one. */
export interface ExternalHead extends Pick<LogHead, 'size' | 'root'> {
  /** A signed note (src/core/ledger/proof/checkpoint.ts). Absent if heads are not signed. */
  readonly note?: string;
}

/** The notes of all rotations of a log's key (src/core/ledger/proof/key-history.ts). */
export interface KeySource {
  readonly notes: readonly string[];
  /** The last rotation is not finished: the log need not have recorded it. */
  readonly isUnfinished: boolean;
}

/** Where the last known head of a ledger is stored outside of it (D15). */
export interface ReadableHead {
  /** @returns null if it does not exist yet @throws LedgerError LEDGER_TAMPERED if it exists but cannot be trusted */
  read(): Promise<ExternalHead | null>;
  /**
   * Verifies a note and returns its head; null if the note was not signed like the heads. Absent if heads are not
   * signed.
   */
  readonly openNote?: (note: string) => ExternalHead | null;
}
