import type { Artifact, StoredArtifact } from '../contract/artifact-ref.js';
import type { ProposalMark, SealedEntry } from '../contract/entry.js';
import type { ArchiveTable } from './archives.js';
import type { OwnRecords } from './records.js';
import type { RunRecordTable } from './run-records.js';

export type { ProposalMark };

/** The log so far: `size` entries with RFC 6962 root `root`; `frontier` is the compact range that goes on from it. */
export interface LogHead {
  readonly size: number;
  /** Lower-case hex. The root of an empty log is SHA-256 of nothing. */
  readonly root: string;
  /** Hashes of the perfect subtrees, largest first, lower-case hex. */
  readonly frontier: readonly string[];
}

/** An entry as it is stored, with its place in the one log. The bytes are not trusted before they are verified. */
export interface StoredEntry {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly type: string;
  readonly text: string;
  readonly leaf_hash: string;
}

/** An input whose id the caller chose, so that it may come again: a repeated one is a no-op. */
export interface InputMark {
  readonly tree_id: string;
  readonly input_id: string;
  /** Where the input stands in its tree. */
  readonly seq: number;
}

/** A tree that this batch opened or brought to its end. */
export interface TreeMark {
  readonly tree_id: string;
  readonly state: 'opened' | 'ended';
}

/** Content that comes with an entry. */
export interface BroughtArtifact {
  /** The position of the entry in the batch. */
  readonly entry: number;
  readonly artifact: Artifact;
  /** Lower-case hex. It is not computed again when it is written: reading compares it with the content. */
  readonly sha256: string;
}

/** What one transaction writes: all of it or nothing. */
export interface Batch {
  /** The fencing epoch of the writer, from `acquire`. */
  readonly epoch: number;
  /** The size the log must have now; entries get the indexes from here on, in this order. */
  readonly from: number;
  readonly entries: readonly SealedEntry[];
  /** The content that inputs of this batch bring, seen before or not. */
  readonly artifacts: readonly BroughtArtifact[];
  readonly proposals: readonly ProposalMark[];
  readonly inputs: readonly InputMark[];
  readonly trees: readonly TreeMark[];
  /** The log's head after this batch. */
  readonly head: LogHead;
}

export interface TreeSummary {
  readonly tree_id: string;
  readonly ended: boolean;
  /** Log index of its first entry: trees are listed in this order. */
  readonly log_index: number;
}

/**
 * Where entries and small artifacts are kept.
 *
 * `commit` is atomic and durable before it resolves, and later reads see it. The store refuses to change or remove
 * what it holds, but it is not trusted to have kept it unchanged: the ledger verifies. One writer at a time.
 */
export interface LedgerStore {
  /**
   * Becomes the only writer, until `close`. @returns the fencing epoch: higher than any before
   * @throws LedgerError LEDGER_LOCKED while another process is the writer
   */
  acquire(): Promise<number>;
  /**
   * Closes what the writer has open, in whatever state that is, and opens the ledger anew, as the next process would:
   * what a failed commit has left is known only then. It stays the same store and keeps the writer's lock; `acquire`
   * comes next. In-flight reads may fail.
   * @throws LedgerError LEDGER_UNAVAILABLE where that cannot be now: nothing is committed, and it may be called again
   */
  reopen(): Promise<void>;
  head(): Promise<LogHead>;
  /**
   * @throws LedgerError LEDGER_CONFLICT if the log has not `from` entries or the epoch is over; nothing was written
   * @throws LedgerError LEDGER_UNAVAILABLE if it could not be written; nothing more is committed before `reopen`
   */
  commit(batch: Batch): Promise<void>;
  /**
   * Entries of one tree in order of seq, from `fromSeq`. An unknown tree has none.
   * @throws LedgerError LEDGER_ARCHIVED for an archived tree
   */
  tree(tree_id: string, fromSeq?: number): AsyncIterable<StoredEntry>;
  /**
   * All entries in order of the log, from `fromIndex`; without it, from the first that is not archived.
   * @throws LedgerError LEDGER_ARCHIVED where `fromIndex` is below that
   */
  log(fromIndex?: number): AsyncIterable<StoredEntry>;
  /** Without those that are archived. */
  trees(): AsyncIterable<TreeSummary>;
  /**
   * The artifacts that entry `log_index` brought with it, in the order in which the batch gave them.
   * @throws LedgerError LEDGER_ARCHIVED
   */
  artifactsOf(log_index: number): Promise<readonly StoredArtifact[]>;
  /**
   * Off the hot path. @returns null when the case has no such content, or it was erased
   * @throws LedgerError LEDGER_ARCHIVED when it is not here, and may be archived
   */
  artifact(case_id: string | null, sha256: string): Promise<Uint8Array | null>;
  proposal(root_run_id: string, proposal_id: string): Promise<ProposalMark | null>;
  /** The seq of the input that was committed with this caller-chosen id, or null. */
  input(tree_id: string, input_id: string): Promise<number | null>;
  /** Where trees stood: a cache beside the ledger, which may be lost (D16). */
  readonly snapshots: SnapshotCache;
  /**
   * Destroys all content that the case has, for good; what the log says of it stays. The case may be used again.
   * By the writer, and only when no tree of the case lives: whoever lives needs its content.
   */
  erase(erasure: Erasure): Promise<Erased>;
  /**
   * Signs the notes of erasures, and verifies those that are there, with this seal: called once, before `acquire`.
   * Absent where the store writes no such notes.
   */
  sealErasures?(seal: () => ErasureSeal | null): void;
  /** The records of runs whose tree has ended: derived from the entries, off the hot path. */
  readonly runRecords: RunRecordTable;
  /** The beginning of the log that was moved to archive files. */
  readonly archives: ArchiveTable;
  /**
   * Records in the ledger's own database: what is written there is durable with the next `commit` or not at all, and
   * taken back whenever that throws. Written by the writer only. Null where this kind of store has none, or only reads.
   */
  readonly records: OwnRecords | null;
  close(): Promise<void>;
}

export interface Erasure {
  readonly case_id: string;
  /** The trees of the case, whose snapshots go too. */
  readonly tree_ids: readonly string[];
  /** When, as ISO 8601, and who wanted it: both stand in what vouches for the erasure. */
  readonly at: string;
  readonly by: string;
}

/** What an erasure has taken away: since the one before it, where there was one. */
export interface Erased {
  readonly contents: number;
  /** Of the contents as they were. */
  readonly bytes: number;
}

/** Where a tree stood after the first `seq` of its entries. */
export interface StoredSnapshot {
  readonly tree_id: string;
  readonly seq: number;
  readonly text: string;
  /** Of the text. */
  readonly sha256: string;
}

export interface SnapshotCache {
  /** Takes the place of the tree's former one. Its entries must be committed. @throws LedgerError like `commit` */
  save(snapshot: StoredSnapshot): Promise<void>;
  load(tree_id: string): Promise<StoredSnapshot | null>;
}

/** A head that was written down, and, where somebody has signed it, the checkpoint that says so. */
export interface AnchoredHead extends Pick<LogHead, 'size' | 'root'> {
  /** A signed note (src/ledger/checkpoint.ts). Absent where nobody signs. */
  readonly note?: string;
}

/** How a head is written so that nobody else can write it. */
export interface HeadSeal {
  /** @returns the signed note of a head, of 600 bytes at most */
  seal(head: Pick<LogHead, 'size' | 'root'>): string;
  /** @returns the head that a note vouches for, or null for any other text */
  open(note: string): AnchoredHead | null;
}

/** How an erasure is vouched for, so that content which somebody has merely taken away does not pass for erased. */
export interface ErasureSeal {
  /** @returns the signed note of a statement, whose lines each end with a newline */
  seal(statement: string): string;
  /** @returns the statement that a note vouches for, or null for any other text */
  open(note: string): string | null;
}

/**
 * The small file beside the database that says how far the ledger had come (D15). It is written after each commit and
 * kept apart, so that a database that was cut or exchanged is noticed.
 */
export interface HeadAnchor {
  /** @returns null where there is none yet @throws LedgerError LEDGER_TAMPERED if it is there but not to be believed */
  read(): Promise<AnchoredHead | null>;
  /** What a note vouches for, if it was signed as heads are; else null. Absent where heads are not signed. */
  readonly opens?: (note: string) => AnchoredHead | null;
  /** Durable when resolved. After one that has failed none is made until `reopen`. */
  write(head: Pick<LogHead, 'size' | 'root'>): Promise<void>;
  /** Forgets a write that has failed: the next one opens the file anew. No write may be wanted meanwhile. */
  reopen(): Promise<void>;
  /** Lets go of the file after the last write. */
  close(): Promise<void>;
}
