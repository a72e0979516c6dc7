import type { StoredArtifact } from '../../../core/contract/artifact-ref.js';
import type { ArchiveTable } from './archives.js';
import type { CaseKeyTable } from './case-key-table.js';
import type { Batch, CommitResult, StoredSnapshot, TreeRecoveryHint } from './batch.js';
import type {
  EntryPlace,
  ExternalHead,
  KeySource,
  LogHead,
  ReadableHead,
  ReadableLedger,
  TreeEntry,
} from '../../../core/ledger/readable-ledger.js';
import type { LogStore } from './log-store.js';
import type { LedgerRecords } from '../effects/records.js';
import type { RunRecordTable } from './run-record-table.js';

export type * from '../../../core/ledger/readable-ledger.js';
export type * from './batch.js';
export type * from './log-store.js';

/** A tree that has not ended. */
export interface OpenTree extends TreeRecoveryHint {
  readonly tree_id: string;
}

/** An entry with its content. */
export interface EntryWithContent {
  readonly entry: TreeEntry;
  readonly artifacts: readonly StoredArtifact[];
}

/**
 * How a rotation of the ledger's key keeps other writers out of a store that several processes may write. Only a writer
 * that is alone may call it.
 */
export interface RotationGate {
  /** Whether no other process writes while this store is open. */
  readonly isAlone: boolean;
  /**
   * From now on no other process becomes a writer before `end`, also after this one has ended, unless it is alone.
   * @throws UsageError for a writer that is not alone
   */
  begin(): Promise<void>;
  /** Records the public key that is in use now. @throws like `begin` */
  end(vkey: string): Promise<void>;
}

/**
 * Stores entries and small artifacts.
 *
 * `commit` is atomic and durable before it resolves, and later reads see it. The store refuses to change or remove
 * stored data. It is still not trusted to have kept the data unchanged: the ledger verifies it. There is one writer at
 * a time.
 * @see src/stores/sqlite/sqlite-ledger-store.ts and src/stores/postgres/postgres-ledger-store.ts
 */
export interface LedgerStore extends ReadableLedger, LogStore {
  /**
   * Becomes the only writer, until `close`. @returns the fencing epoch: higher than any before
   * @throws LedgerError LEDGER_LOCKED while another process is the writer
   */
  acquire(): Promise<number>;
  /**
   * Closes everything that the writer has open, in any state, and opens the ledger again as a new process would. Only
   * this shows what a failed commit has written. It stays the same store and keeps the writer's lock; call `acquire`
   * next. Reads in flight may fail.
   * @throws LedgerError LEDGER_UNAVAILABLE if that is impossible now: nothing is committed, and it may be called again
   */
  reopen(): Promise<void>;
  /**
   * Commits a batch. If all trees of the batch already have exactly these entries, returns as if committed and writes
   * nothing, so the same batch may be sent again after a lost response. Checks the epoch first: a writer that was
   * replaced must not act on what it had committed before.
   * @throws LedgerError LEDGER_CONFLICT if a tree has another length or other entries, or the epoch is over; nothing
   * was written
   * @throws LedgerError LEDGER_COMMIT_UNKNOWN if the store cannot tell whether it committed: send the same batch again
   * @throws LedgerError LEDGER_UNAVAILABLE if it could not be written; nothing more is committed before `reopen`
   */
  commit(batch: Batch): Promise<CommitResult>;
  /**
   * Entries of several trees, each from the given seq on and with its content: what folding needs, in few queries. The
   * trees come one after another, in the order of `places`.
   * @throws LedgerError like `tree` and `artifactsOf`
   */
  histories(places: readonly EntryPlace[]): AsyncIterable<EntryWithContent>;
  /** The trees that have not ended. */
  openTrees(): AsyncIterable<OpenTree>;
  /**
   * For reads off the hot path. @returns null if the case has no such content, or it was erased
   * @throws LedgerError LEDGER_ARCHIVED if it is missing and may be archived
   */
  artifact(case_id: string | null, sha256: string): Promise<Uint8Array | null>;
  /** Snapshots of trees: a cache outside the log, which may be lost (D16). */
  readonly snapshots: SnapshotCache;
  /**
   * Erases all content of the case permanently; its log entries stay. The case may be used again. Only the writer may
   * call it, and only while no tree of the case is live, because a live tree needs its content.
   */
  erase(erasure: Erasure): Promise<ErasureResult>;
  /**
   * Sets the seal that signs the notes of erasures and verifies existing ones. Call it once, before `acquire`. Absent
   * if the store writes no such notes.
   */
  sealErasures?(seal: () => ErasureSeal | null): void;
  /** The keys of cases. Absent if the store encrypts no content. */
  readonly caseKeys?: CaseKeyTable;
  /** Keeps other writers out during a rotation. Absent if a ledger has one writer at a time. */
  readonly rotation?: RotationGate;
  /** The records of runs whose tree has ended: derived from the entries, off the hot path. */
  readonly runRecords: RunRecordTable;
  /** The part of the log that was moved to archive files. */
  readonly archives: ArchiveTable;
  /**
   * Records in the ledger's own database: durable with the next `commit` or not at all, and rolled back whenever
   * `commit` throws. Only the writer writes them. Null if this kind of store has none, or is read-only.
   */
  readonly records: LedgerRecords | null;
  /** Closes the store and releases its lock. */
  close(): Promise<void>;
}

export interface Erasure {
  readonly case_id: string;
  /** The trees of the case; their snapshots are erased too. */
  readonly tree_ids: readonly string[];
  /** Timestamp (ISO 8601) and requester of the erasure; both are part of the signed erasure note. */
  readonly at: string;
  readonly by: string;
}

/** What an erasure has removed since the previous one of the case, if any. */
export interface ErasureResult {
  readonly contents: number;
  /** Size of the contents, in bytes. */
  readonly bytes: number;
}

export interface SnapshotCache {
  load(tree_id: string): Promise<StoredSnapshot | null>;
}

/** Signs heads, so that no one else can write them. */
export interface HeadSeal {
  /** @returns the signed note of a head, of 600 bytes at most */
  seal(head: Pick<LogHead, 'size' | 'root'>): string;
  /** @returns the head that a note proves, or null for any other text */
  open(note: string): ExternalHead | null;
  /** The history of the key now; absent if it is not known. */
  readonly keys?: () => KeySource;
}

/** Signs erasures, so that content that was merely removed does not pass for erased. */
export interface ErasureSeal {
  /** @returns the signed note of a statement, whose lines each end with a newline */
  seal(statement: string): string;
  /** @returns the statement that a note proves, or null for any other text */
  open(note: string): string | null;
}

/**
 * The small file that stores the last known head of the ledger (D15). It is written after each commit and kept apart
 * from the database, so that a truncated or replaced database is detected.
 */
export interface ExternalHeadStore extends ReadableHead {
  /** The history of the key that signs the heads. Absent or null if it is not known. */
  readonly keys?: () => KeySource | null;
  /** Signs and verifies heads with this seal from now on. Absent if heads are not signed. */
  replaceSeal?(seal: HeadSeal): void;
  /** Durable when resolved. After a failed write, no write succeeds until `reopen`. */
  write(head: Pick<LogHead, 'size' | 'root'>): Promise<void>;
  /** Why heads are not stored in every place now, as a constant text; null if they are. Absent: a write fails then. */
  readonly problem?: () => string | null;
  /** Clears a failed write: the next write opens the file again. No write may be in flight. */
  reopen(): Promise<void>;
  /** Closes the file after the last write. */
  close(): Promise<void>;
}
