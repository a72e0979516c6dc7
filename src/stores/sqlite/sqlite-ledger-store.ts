// The ledger store on SQLite: on one file in WAL mode, with large contents in files next to it, or in memory. Any
// process can read a file, also while another one writes. Only the process that holds the writer lock writes. The
// tables and their guards: sqlite-schema.ts.

import { dirname, join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import { InvariantError } from '../../core/errors.js';
import type {
  Batch,
  CommitResult,
  CursorOptions,
  EntryPlace,
  EntryWithContent,
  ErasureResult,
  Erasure,
  ErasureSeal,
  Integration,
  LedgerStore,
  LogHead,
  MarkKey,
  MarkOf,
  OpenTree,
  PendingAppend,
  StoredEntry,
  SnapshotCache,
  TreeCursorOptions,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import type { ArchiveTable } from '../../engine/ports/ledger/archives.js';
import type { CaseKeyTable } from '../../engine/ports/ledger/case-key-table.js';
import type { LedgerRecords } from '../../engine/ports/effects/records.js';
import type { EndedTree, RunRecordTable } from '../../engine/ports/ledger/run-record-table.js';
import { removeArchived } from './content/sqlite-archives.js';
import { asLedgerError } from './sqlite-binding.js';
import type { BlockContent } from './sqlite-rows.js';
import { createDatabase } from './sqlite-database.js';
import { CaseKeys } from '../keys/case-keys.js';
import {
  componentsOf,
  ledgerFile,
  type LedgerMedium,
  type OpenUntouched,
  type SqliteComponents,
} from './sqlite-medium.js';
import { readPages, type PageReader } from './sqlite-reader.js';
import { notWriterError, unavailableError } from '../ledger/store-errors.js';
import type { SqliteMigration } from './sqlite-schema.js';
import type { WriterLock } from './writer-lock.js';
import { SqliteWriter, type OpenCaseKeyTable, type OpenLedgerRecords } from './sqlite-writer.js';

/** How often a reader begins again while other processes change the file. */
const READ_TRIES_MAX = 20;

/** The paths of a ledger, and how to open it. */
export interface SqliteStoreOptions {
  /** The database file. The writer lock is the file `<file>.lock`. */
  readonly file: string;
  /** The directory for contents that are too large for the database. */
  readonly artifactsDir: string;
  /** The directory for the keys that encrypt the contents of cases. Default: `keys/cases` next to `artifactsDir`. */
  readonly caseKeysDir?: string;
  /** Opens the ledger for reading only; another process may write. @default false */
  readonly readOnly?: boolean;
  /** Opens the ledger for reading only, and changes no file, also on a read-only file system. */
  readonly untouched?: OpenUntouched;
  /** Returns what signs erasure records; null or absent: erasures are not signed. */
  readonly erasureSeal?: () => ErasureSeal | null;
  /** Opens the records in the database of the ledger. Absent: no target can be there. */
  readonly records?: OpenLedgerRecords;
  /** Opens the table of the keys of cases. Absent: they cannot be replaced. */
  readonly caseKeyTable?: OpenCaseKeyTable;
  /** @internal Number of index rows in one stretch; tests set fewer. @default STRETCH_ROWS */
  readonly stretchRows?: number;
  /** @internal Tests add a format. @default MIGRATIONS */
  readonly migrations?: readonly SqliteMigration[];
}

/**
 * Creates an empty ledger and opens it.
 * @throws LedgerError LEDGER_UNAVAILABLE if the file exists already or cannot be created
 */
export function createSqliteStore(options: SqliteStoreOptions): LedgerStore {
  createDatabase(resolve(options.file), options.migrations);
  return openSqliteStore(options);
}

/**
 * Opens an existing ledger.
 * @throws LedgerError LEDGER_UNAVAILABLE if the file does not exist
 * @throws LedgerError LEDGER_UNSUPPORTED if another version wrote it in a format that this one does not read
 * @throws LedgerError LEDGER_TAMPERED if the file is not a ledger, or its tables or triggers were changed
 */
export function openSqliteStore(options: SqliteStoreOptions): LedgerStore {
  const { file, artifactsDir, erasureSeal = () => null } = options;
  // Not inside the artifacts directory: a copy of the contents must not include the keys that decrypt them.
  const { caseKeysDir = join(dirname(resolve(artifactsDir)), 'keys', 'cases') } = options;
  const keys = new CaseKeys(resolve(caseKeysDir), erasureSeal);
  const storage = { directory: resolve(artifactsDir), keys };
  return new SqliteLedgerStore(ledgerFile(resolve(file), storage, options), options);
}

type SqliteStoreInternals = Pick<SqliteStoreOptions, 'records' | 'caseKeyTable' | 'stretchRows' | 'migrations'>;

/** An open ledger. How a batch is committed: sqlite-writer.ts. */
export class SqliteLedgerStore implements LedgerStore {
  readonly #medium: LedgerMedium;
  readonly #internals: SqliteStoreInternals;
  readonly records: LedgerRecords | null;
  readonly caseKeys?: CaseKeyTable;
  readonly sealErasures?: (seal: () => ErasureSeal | null) => void;
  /** `reopen` replaces these components. */
  #parts: SqliteComponents;
  /** The writer lock, and the writer; null after `reopen`, until `acquire` is called again. */
  #writerState: { readonly lock: WriterLock; readonly writer: SqliteWriter | null } | null = null;

  constructor(medium: LedgerMedium, internals: SqliteStoreInternals = {}) {
    this.#medium = medium;
    this.#internals = internals;
    this.#parts = componentsOf(medium, medium.connect());
    const { storage, access } = medium;
    const attempt = <T>(work: () => T): Promise<T> => this.#attempt(work);
    if (storage !== null) {
      const table = internals.caseKeyTable?.({ storage, writer: () => this.#writer, attempt });
      if (table !== undefined) this.caseKeys = table;
      this.sealErasures = (seal) => {
        storage.keys.sealWith(seal);
      };
    }
    // Records are durable, so a ledger in memory has none.
    const hasRecords = access === 'write' && storage !== null;
    const writer = () => this.#writerState?.writer ?? null;
    this.records = hasRecords ? (internals.records?.(() => this.#parts.db, writer) ?? null) : null;
  }

  readonly snapshots: SnapshotCache = {
    load: (tree_id) => this.#attempt(() => this.#parts.reader.snapshot(tree_id)),
  };

  readonly runRecords: RunRecordTable = {
    unrecorded: () => this.#unrecordedTrees(),
    save: (batch) => this.#attempt(() => this.#writer.writeDerived(() => this.#parts.runRecords.save(batch))),
    trees: () => this.#pages(0, (from) => this.#parts.runRecords.trees(from)),
    recorded: (tree_id) => this.#attempt(() => this.#parts.runRecords.recorded(tree_id)),
    load: (tree_id, run_id) => this.#attempt(() => this.#parts.runRecords.load(tree_id, run_id)),
    count: (tree_id) => this.#attempt(() => this.#parts.runRecords.count(tree_id)),
  };

  readonly archives: ArchiveTable = {
    parts: () => this.#attempt(() => this.#parts.archives.parts()),
    tree: (tree_id) => this.#attempt(() => this.#parts.archives.tree(tree_id)),
    treeCount: () => this.#attempt(() => this.#parts.archives.treeCount()),
    hasCase: (case_id) => this.#attempt(() => this.#parts.archives.hasCase(case_id)),
    remove: (removal) =>
      this.#attempt(() => this.#writer.remove(removal.epoch, () => removeArchived(this.#parts.db, removal))),
    tidy: () =>
      this.#attempt(() => {
        if (this.#writerState === null) throw notWriterError();
        this.#medium.tidy(this.#parts.db);
      }),
  };

  acquire(): Promise<number> {
    return this.#attempt(() => {
      if (this.#medium.access !== 'write') throw unavailableError('this ledger was opened only for reading');
      if (this.#writerState?.writer != null) return this.#writerState.writer.beginEpoch();
      const lock = this.#writerState?.lock ?? this.#medium.lock();
      try {
        const writer = new SqliteWriter(this.#parts, this.#internals.stretchRows, this.#internals.migrations);
        const epoch = writer.beginEpoch();
        this.#writerState = { lock, writer };
        return epoch;
      } catch (error) {
        if (this.#writerState === null) lock.release();
        throw error;
      }
    });
  }

  reopen(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#writerState === null) throw this.#parts.db.open ? notWriterError() : closedError();
      // While a disk is still full, the open connection can at least read. It is closed only if an earlier call failed.
      if (this.#parts.db.open) this.#medium.checkWritable();
      this.#writerState = { lock: this.#writerState.lock, writer: null };
      this.#parts = componentsOf(this.#medium, this.#medium.reconnect(this.#parts.db));
      resolve();
    });
  }

  commit(batch: Batch): Promise<CommitResult> {
    return this.#attempt(() => this.#writer.commit(batch));
  }

  get #writer(): SqliteWriter {
    if (this.#writerState?.writer != null) return this.#writerState.writer;
    throw notWriterError();
  }

  head(): Promise<LogHead> {
    return this.#attempt(() => this.#parts.reader.head());
  }

  async *tree(tree_id: string, fromSeq = 0, options: CursorOptions = {}): AsyncIterable<StoredEntry> {
    const start = await this.#attempt(() => this.#parts.reader.treeStart(tree_id, fromSeq));
    for await (const entry of this.#pages(
      start,
      (from, count) => this.#parts.reader.tree(tree_id, from, count),
      options,
    )) {
      if (entry.seq >= fromSeq) yield entry;
    }
  }

  async *log(fromIndex?: number, options: CursorOptions = {}): AsyncIterable<StoredEntry> {
    const first = fromIndex ?? (await this.#attempt(() => this.#parts.archives.size()));
    const start = await this.#attempt(() => this.#parts.reader.logStart(first));
    for await (const entry of this.#pages(start, (from, count) => this.#parts.reader.log(from, count), options)) {
      if (entry.log_index >= first) yield entry;
    }
  }

  pending(): Promise<readonly PendingAppend[]> {
    return this.#attempt(() => []);
  }

  integrate({ from }: Integration): Promise<boolean> {
    return this.#attempt(() => {
      if (from !== this.#parts.reader.head().size) return false;
      throw new InvariantError('nothing is pending: this store integrates in its commits');
    });
  }

  async *histories(places: readonly EntryPlace[]): AsyncGenerator<EntryWithContent> {
    for (const { tree_id, seq } of places) {
      const start = await this.#attempt(() => this.#parts.reader.treeStart(tree_id, seq));
      for await (const read of this.#pages(start, (from, count) => this.#parts.reader.history(tree_id, from, count))) {
        const { entry, block } = read;
        if (entry.seq < seq) continue;
        yield { entry, artifacts: block.artifacts === null ? [] : await this.#artifactsAt(entry, block) };
      }
    }
  }

  trees({ from: start = 0, ...options }: TreeCursorOptions = {}): AsyncIterable<TreeSummary> {
    return this.#pages(start, (from) => this.#parts.reader.listTrees(from), options);
  }

  treesOf(case_id: string): Promise<readonly TreeSummary[]> {
    return this.#attempt(() => this.#parts.trees.ofCase(case_id));
  }

  openTrees(): AsyncIterable<OpenTree> {
    return this.#pages(0, (from) => this.#parts.trees.openTrees(from));
  }

  async *#unrecordedTrees(): AsyncGenerator<EndedTree> {
    const first = await this.#attempt(() => this.#parts.runRecords.firstUnrecorded());
    yield* this.#pages(first, (from) => this.#parts.runRecords.unrecorded(from));
  }

  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]> {
    return this.#attemptAsync(async () => {
      const block = this.#parts.reader.blockOf(place);
      if (block !== null) return this.#parts.artifacts.readOf(block, place.seq - block.seq);
      this.#parts.archives.refuseTree(place.tree_id);
      return [];
    }, place.tree_id);
  }

  #artifactsAt({ tree_id, seq }: EntryPlace, block: BlockContent): Promise<readonly StoredArtifact[]> {
    return this.#attemptAsync(() => this.#parts.artifacts.readOf(block, seq - block.seq), tree_id);
  }

  artifact(case_id: string | null, sha256: string): Promise<Uint8Array | null> {
    return this.#attemptAsync(async () => {
      while (this.#writerState?.writer?.indexArtifacts()) await nextTurn();
      const content = await this.#parts.artifacts.find(case_id, sha256);
      if (content === null) this.#parts.archives.refuseContent(case_id, sha256);
      return content;
    });
  }

  erase(erasure: Erasure): Promise<ErasureResult> {
    return this.#attempt(() => this.#writer.erase(erasure));
  }

  marks<Key extends MarkKey>(keys: readonly Key[]): Promise<readonly (MarkOf<Key> | null)[]> {
    return this.#attempt(() => this.#parts.markIndex.marks(keys) as readonly (MarkOf<Key> | null)[]);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      // Close before the lock is released: the next writer must not run while this connection can still write.
      this.#parts.db.close();
      this.#writerState?.lock.release();
      this.#writerState = null;
      resolve();
    });
  }

  /** Uses one promise and no extra turn of the event loop, because nearly all work is synchronous. */
  #attempt<T>(work: () => T): Promise<T> {
    return new Promise((resolve) => {
      this.#refuseClosed();
      try {
        resolve(this.#medium.access === 'untouched' ? this.#readCurrent(work) : work());
      } catch (cause) {
        throw this.#errorOf(cause);
      }
    });
  }

  /** Reads again what was read while another process changed the file: it could be of two states. */
  #readCurrent<T>(work: () => T): T {
    for (let tries = 1; tries <= READ_TRIES_MAX; tries += 1) {
      this.#refresh();
      try {
        const result = work();
        if (this.#parts.isCurrent()) return result;
      } catch (error) {
        if (this.#parts.isCurrent()) throw error;
      }
    }
    throw unavailableError('other processes change the ledger faster than it can be read: try again');
  }

  #refresh(): void {
    if (this.#parts.isCurrent()) return;
    const parts = componentsOf(this.#medium, this.#medium.connect());
    this.#parts.db.close();
    this.#parts = parts;
  }

  /** @param tree_id the tree of the content; if the read fails, the tree may have been archived in the meantime */
  async #attemptAsync<T>(work: () => Promise<T>, tree_id?: string): Promise<T> {
    this.#refuseClosed();
    if (this.#medium.access === 'untouched') this.#refresh();
    const parts = this.#parts;
    try {
      const result = await work().catch((error: unknown) => {
        if (tree_id !== undefined) this.#parts.archives.refuseTree(tree_id);
        throw error;
      });
      if (parts.isCurrent()) return result;
    } catch (cause) {
      if (parts.isCurrent()) throw this.#errorOf(cause, parts.db);
    }
    this.#refuseClosed();
    return this.#attemptAsync(work, tree_id);
  }

  #errorOf(cause: unknown, db = this.#parts.db): unknown {
    if (!db.open) return closedError();
    return asLedgerError(cause, `${this.#medium.name} cannot be read`);
  }

  #refuseClosed(): void {
    if (!this.#parts.db.open) throw closedError();
  }

  #pages<Row>(start: number, read: PageReader<Row>, options?: CursorOptions): AsyncGenerator<Row> {
    return readPages(start, (from, count) => this.#attempt(() => read(from, count)), options);
  }
}

const closedError = () => unavailableError('the ledger is not open: it was closed, or could not be opened again');
