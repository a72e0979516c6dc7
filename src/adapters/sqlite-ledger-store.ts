// The ledger in one SQLite file (WAL), large contents in files beside it. Whoever opens it can read it, also while
// somebody writes; who wants to write takes the writer's lock. How a batch is written: sqlite-writer.ts. The tables and
// what guards them: sqlite-schema.ts.

import { dirname, join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredArtifact } from '../contract/artifact-ref.js';
import type {
  Batch,
  Erased,
  Erasure,
  ErasureSeal,
  LedgerStore,
  LogHead,
  ProposalMark,
  StoredEntry,
  SnapshotCache,
  TreeSummary,
} from '../ports/ledger-store.js';
import type { ArchiveTable } from '../ports/archives.js';
import type { OwnRecords } from '../ports/records.js';
import type { EndedTree, RunRecordTable } from '../ports/run-records.js';
import { CaseKeys } from './case-keys.js';
import type { SqliteArchives } from './sqlite-archives.js';
import { giveRoomBack, removeArchived, sweepContents } from './sqlite-archiving.js';
import { asLedgerError, createDatabase, emptyWal, proveWritable, type Connection } from './sqlite-database.js';
import { SqliteOwnRecords } from './sqlite-own-records.js';
import { openParts, type Contents, type SqliteParts } from './sqlite-parts.js';
import { PAGE_BLOCKS, type Page, type SqliteReader } from './sqlite-reader.js';
import { notTheWriter, unavailable } from './sqlite-refusals.js';
import type { SqliteRunRecords } from './sqlite-run-records.js';
import { lockWriter, type WriterLock } from './sqlite-writer-lock.js';
import { SqliteWriter } from './sqlite-writer.js';

/** Where a ledger lies. */
export interface SqliteStoreOptions {
  /** The database. `<file>.lock` beside it is the writer's lock. */
  readonly file: string;
  /** The folder of the contents that are too large for the database. */
  readonly artifactsDir: string;
  /** The folder of the keys that encrypt the content of cases. Default: `keys/cases` beside `artifactsDir`. */
  readonly caseKeysDir?: string;
  /** Only read, whoever writes. @default false */
  readonly readOnly?: boolean;
  /** Who vouches for erasures; null, or none, where nobody does. */
  readonly erasureSeal?: () => ErasureSeal | null;
}

/**
 * Makes an empty ledger and opens it.
 * @throws LedgerError LEDGER_UNAVAILABLE if something is there already, or it cannot be made
 */
export function createSqliteStore(options: SqliteStoreOptions): LedgerStore {
  createDatabase(resolve(options.file));
  return openSqliteStore(options);
}

/**
 * Opens a ledger that is there.
 * @throws LedgerError LEDGER_UNAVAILABLE if there is none, or another version of Turnpike wrote it
 * @throws LedgerError LEDGER_TAMPERED if the file is no ledger, or its tables or triggers were changed
 */
export function openSqliteStore(options: SqliteStoreOptions): LedgerStore {
  const { file, artifactsDir, readOnly = false, erasureSeal = () => null } = options;
  // Beside the contents and not among them: a copy of the contents has no keys that open them.
  const { caseKeysDir = join(dirname(resolve(artifactsDir)), 'keys', 'cases') } = options;
  const keys = new CaseKeys(resolve(caseKeysDir), erasureSeal);
  return new SqliteLedgerStore(resolve(file), { directory: resolve(artifactsDir), keys }, readOnly);
}

class SqliteLedgerStore implements LedgerStore {
  readonly #file: string;
  readonly #readOnly: boolean;
  readonly #contents: Contents;
  readonly records: OwnRecords | null;
  /** Others after `reopen`. */
  #parts: SqliteParts;
  /** The writer's lock, and the writer unless it has to be acquired again. */
  #held: { readonly lock: WriterLock; readonly writer: SqliteWriter | null } | null = null;

  constructor(file: string, contents: Contents, readOnly: boolean) {
    this.#file = file;
    this.#readOnly = readOnly;
    this.#contents = contents;
    this.#parts = openParts(file, contents, readOnly);
    const writing = () => this.#held?.writer?.records ?? null;
    this.records = readOnly ? null : new SqliteOwnRecords(() => this.#db, writing);
  }

  get #db(): Connection {
    return this.#parts.db;
  }

  get #reader(): SqliteReader {
    return this.#parts.reader;
  }

  get #runRecords(): SqliteRunRecords {
    return this.#parts.runRecords;
  }

  get #archives(): SqliteArchives {
    return this.#parts.archives;
  }

  readonly snapshots: SnapshotCache = {
    save: (snapshot) =>
      this.#answer(() => {
        this.#writer.saveSnapshot(snapshot);
      }),
    load: (tree_id) => this.#answer(() => this.#reader.snapshot(tree_id)),
  };

  readonly runRecords: RunRecordTable = {
    unrecorded: () => this.#unrecorded(),
    save: (batch) => this.#answer(() => this.#writer.derive(() => this.#runRecords.save(batch))),
    trees: () => this.#pages(0, (from) => this.#runRecords.trees(from)),
    recorded: (tree_id) => this.#answer(() => this.#runRecords.recorded(tree_id)),
    load: (tree_id, run_id) => this.#answer(() => this.#runRecords.load(tree_id, run_id)),
    count: (tree_id) => this.#answer(() => this.#runRecords.count(tree_id)),
  };

  readonly archives: ArchiveTable = {
    parts: () => this.#answer(() => this.#archives.parts()),
    tree: (tree_id) => this.#answer(() => this.#archives.tree(tree_id)),
    treeCount: () => this.#answer(() => this.#archives.treeCount()),
    hasCase: (case_id) => this.#answer(() => this.#archives.hasCase(case_id)),
    remove: (archiving) =>
      this.#answer(() => this.#writer.remove(archiving.epoch, () => removeArchived(this.#db, archiving))),
    tidy: () =>
      this.#answer(() => {
        if (this.#held === null) throw notTheWriter();
        sweepContents(this.#db, this.#contents.directory);
        giveRoomBack(this.#file);
      }),
  };

  acquire(): Promise<number> {
    return this.#answer(() => {
      if (this.#readOnly) throw unavailable('this ledger was opened only for reading');
      if (this.#held?.writer != null) return this.#held.writer.beginEpoch();
      const lock = this.#held?.lock ?? lockWriter(this.#file);
      try {
        const writer = new SqliteWriter(this.#parts);
        const epoch = writer.beginEpoch();
        this.#held = { lock, writer };
        return epoch;
      } catch (error) {
        if (this.#held === null) lock.release();
        throw error;
      }
    });
  }

  reopen(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#held === null) throw this.#db.open ? notTheWriter() : closed();
      // While a disk is still full, the connection that is open can at least read. A call that failed left it closed.
      if (this.#db.open) proveWritable(this.#file);
      this.#held = { lock: this.#held.lock, writer: null };
      this.#db.close();
      this.#parts = openParts(this.#file, this.#contents, this.#readOnly);
      emptyWal(this.#db);
      resolve();
    });
  }

  commit(batch: Batch): Promise<void> {
    return this.#answer(() => {
      this.#writer.commit(batch);
    });
  }

  get #writer(): SqliteWriter {
    if (this.#held?.writer != null) return this.#held.writer;
    throw notTheWriter();
  }

  head(): Promise<LogHead> {
    return this.#answer(() => this.#reader.head());
  }

  async *tree(tree_id: string, fromSeq = 0): AsyncIterable<StoredEntry> {
    const start = await this.#answer(() => this.#reader.treeStart(tree_id, fromSeq));
    for await (const entry of this.#pages(start, (from, count) => this.#reader.tree(tree_id, from, count))) {
      if (entry.seq >= fromSeq) yield entry;
    }
  }

  async *log(fromIndex?: number): AsyncIterable<StoredEntry> {
    const first = fromIndex ?? (await this.#answer(() => this.#archives.size()));
    const start = await this.#answer(() => this.#reader.logStart(first));
    for await (const entry of this.#pages(start, (from, count) => this.#reader.log(from, count))) {
      if (entry.log_index >= first) yield entry;
    }
  }

  trees(): AsyncIterable<TreeSummary> {
    return this.#pages(0, (from) => this.#reader.listTrees(from));
  }

  async *#unrecorded(): AsyncGenerator<EndedTree> {
    const first = await this.#answer(() => this.#runRecords.firstUnrecorded());
    yield* this.#pages(first, (from) => this.#runRecords.unrecorded(from));
  }

  artifactsOf(log_index: number): Promise<readonly StoredArtifact[]> {
    // Asked afterwards: it may be archived while its files are read.
    return this.#answerLater(() => this.#parts.artifacts.of(log_index).finally(() => this.#archives.refuse(log_index)));
  }

  artifact(case_id: string | null, sha256: string): Promise<Uint8Array | null> {
    return this.#answerLater(async () => {
      while (this.#held?.writer?.indexArtifacts()) await nextTurn();
      const content = await this.#parts.artifacts.find(case_id, sha256);
      if (content === null) this.#archives.refuseContent(case_id, sha256);
      return content;
    });
  }

  erase(erasure: Erasure): Promise<Erased> {
    return this.#answer(() => this.#writer.erase(erasure));
  }

  sealErasures(seal: () => ErasureSeal | null): void {
    this.#contents.keys.sealWith(seal);
  }

  proposal(root_run_id: string, proposal_id: string): Promise<ProposalMark | null> {
    return this.#answer(() => this.#reader.proposal(root_run_id, proposal_id));
  }

  input(tree_id: string, input_id: string): Promise<number | null> {
    return this.#answer(() => this.#reader.input(tree_id, input_id));
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      // Before the lock: whoever gets that must find nothing of this writer still to come.
      this.#db.close();
      this.#held?.lock.release();
      this.#held = null;
      resolve();
    });
  }

  /** One promise and no turn of the queue, because nearly all work is done at once. */
  #answer<T>(work: () => T): Promise<T> {
    return new Promise((resolve) => {
      this.#refuseClosed();
      try {
        resolve(work());
      } catch (cause) {
        throw this.#errorOf(cause);
      }
    });
  }

  async #answerLater<T>(work: () => Promise<T>): Promise<T> {
    this.#refuseClosed();
    const db = this.#db;
    try {
      return await work();
    } catch (cause) {
      throw this.#errorOf(cause, db);
    }
  }

  #errorOf(cause: unknown, db = this.#db): unknown {
    if (!db.open) return closed();
    return asLedgerError(cause, `the ledger ${this.#file} cannot be read`);
  }

  #refuseClosed(): void {
    if (!this.#db.open) throw closed();
  }

  /** Page by page, because an open cursor would keep this connection from writing and the log from being cut. */
  /** The first page is a single block: many readers want one entry. */
  async *#pages<Row>(start: number, read: (from: number, count: number) => Page<Row>): AsyncGenerator<Row> {
    for (let [from, count] = [start, 1]; ; count = PAGE_BLOCKS) {
      const { rows, next } = await this.#answer(() => read(from, count));
      yield* rows;
      if (next === null) return;
      from = next;
      if (count > 1) await nextTurn();
    }
  }
}

const closed = () => unavailable('the ledger is not open: it was closed, or could not be opened again');
