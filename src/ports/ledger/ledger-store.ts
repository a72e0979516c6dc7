import type { StoredArtifact } from '../../contract/artifact-ref.js';
import type { ArchiveTable } from './archives.js';
import type { Batch, CommitResult, MarkKey, MarkOf, StoredSnapshot, TreeRecoveryHint } from './batch.js';
import type { CursorOptions, EntryPlace, LogHead, LogStore, TreeEntry } from './log-store.js';
import type { LedgerRecords } from '../effects/records.js';
import type { RunRecordTable } from './run-records.js';

export type * from './batch.js';
export type * from './log-store.js';

export interface TreeSummary {
  readonly tree_id: string;
  readonly ended: boolean;
  /** Log index of its first entry; null while that waits to be integrated. Trees are listed in this order. */
  readonly log_index: number | null;
}

/** How trees are listed: from which log index of their first entry on. */
export interface TreeCursorOptions extends CursorOptions {
  readonly from?: number;
}

/** A tree that has not ended. */
export interface OpenTree extends TreeRecoveryHint {
  readonly tree_id: string;
}

/** An entry with the content that it brought. */
export interface EntryWithContent {
  readonly entry: TreeEntry;
  readonly artifacts: readonly StoredArtifact[];
}

/**
 * Where entries and small artifacts are kept.
 *
 * `commit` is atomic and durable before it resolves, and later reads see it. The store refuses to change or remove
 * what it holds, but it is not trusted to have kept it unchanged: the ledger verifies. One writer at a time.
 */
export interface LedgerStore extends LogStore {
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
  /**
   * Commits a batch. A batch whose trees all have these very entries already is answered as committed, and nothing is
   * written: so the same batch may be sent again after a lost answer. The epoch is checked first: a writer that was
   * replaced must not act on what it had committed before.
   * @throws LedgerError LEDGER_CONFLICT if a tree has another length or other entries, or the epoch is over; nothing
   *   was written
   * @throws LedgerError LEDGER_COMMIT_UNKNOWN if the store cannot tell whether it committed: send the same batch again
   * @throws LedgerError LEDGER_UNAVAILABLE if it could not be written; nothing more is committed before `reopen`
   */
  commit(batch: Batch): Promise<CommitResult>;
  /**
   * Entries of one tree in order of seq, from `fromSeq`. An unknown tree has none.
   * @throws LedgerError LEDGER_ARCHIVED for an archived tree
   */
  tree(tree_id: string, fromSeq?: number, options?: CursorOptions): AsyncIterable<TreeEntry>;
  /**
   * Entries of several trees, each from its given seq on and with the content that it brought: what folding needs, in
   * few queries. Tree after tree, in the order of the places.
   * @throws LedgerError like `tree` and `artifactsOf`
   */
  histories(places: readonly EntryPlace[]): AsyncIterable<EntryWithContent>;
  /** Without those that are archived. */
  trees(options?: TreeCursorOptions): AsyncIterable<TreeSummary>;
  /** Those that were opened for a case, in the order of their openings, without those that are archived. */
  treesOf(case_id: string): Promise<readonly TreeSummary[]>;
  /** Those that have not ended. */
  openTrees(): AsyncIterable<OpenTree>;
  /**
   * The artifacts that an entry brought with it, in the order in which its batch gave them; none for an unknown entry.
   * @throws LedgerError LEDGER_ARCHIVED
   */
  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]>;
  /**
   * Off the hot path. @returns null when the case has no such content, or it was erased
   * @throws LedgerError LEDGER_ARCHIVED when it is not here, and may be archived
   */
  artifact(case_id: string | null, sha256: string): Promise<Uint8Array | null>;
  /**
   * What was committed with each of these keys, in their order; null where nothing was. One query, however many.
   * @throws InvariantError for a proposal id that is no UUID in lower case
   */
  marks<Key extends MarkKey>(keys: readonly Key[]): Promise<readonly (MarkOf<Key> | null)[]>;
  /** Where trees stood: a cache beside the ledger, which may be lost (D16). */
  readonly snapshots: SnapshotCache;
  /**
   * Destroys all content that the case has, for good; what the log says of it stays. The case may be used again.
   * By the writer, and only when no tree of the case lives: whoever lives needs its content.
   */
  erase(erasure: Erasure): Promise<ErasureResult>;
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
  readonly records: LedgerRecords | null;
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
export interface ErasureResult {
  readonly contents: number;
  /** Of the contents as they were. */
  readonly bytes: number;
}

export interface SnapshotCache {
  load(tree_id: string): Promise<StoredSnapshot | null>;
}

/** A head that was written down, and, where somebody has signed it, the checkpoint that says so. */
export interface ExternalHead extends Pick<LogHead, 'size' | 'root'> {
  /** A signed note (src/ledger/proof/checkpoint.ts). Absent where nobody signs. */
  readonly note?: string;
}

/** How a head is written so that nobody else can write it. */
export interface HeadSeal {
  /** @returns the signed note of a head, of 600 bytes at most */
  seal(head: Pick<LogHead, 'size' | 'root'>): string;
  /** @returns the head that a note vouches for, or null for any other text */
  open(note: string): ExternalHead | null;
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
export interface ExternalHeadStore {
  /** @returns null where there is none yet @throws LedgerError LEDGER_TAMPERED if it is there but not to be believed */
  read(): Promise<ExternalHead | null>;
  /** What a note vouches for, if it was signed as heads are; else null. Absent where heads are not signed. */
  readonly opens?: (note: string) => ExternalHead | null;
  /** Durable when resolved. After one that has failed none is made until `reopen`. */
  write(head: Pick<LogHead, 'size' | 'root'>): Promise<void>;
  /** Forgets a write that has failed: the next one opens the file anew. No write may be wanted meanwhile. */
  reopen(): Promise<void>;
  /** Lets go of the file after the last write. */
  close(): Promise<void>;
}
