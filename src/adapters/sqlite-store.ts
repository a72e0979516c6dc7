import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredArtifact } from '../contract/artifact-ref.js';
import { InvariantError } from '../errors.js';
import type {
  Batch,
  CommitResult,
  CursorOptions,
  EntryPlace,
  EntryWithContent,
  Erased,
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
} from '../ports/ledger-store.js';
import type { ArchiveTable } from '../ports/archives.js';
import type { OwnRecords } from '../ports/records.js';
import type { EndedTree, RunRecordTable } from '../ports/run-records.js';
import type { SqliteArchives } from './sqlite-archives.js';
import { giveRoomBack, removeArchived, sweepContents } from './sqlite-archiving.js';
import type { BlockContent } from './sqlite-blocks.js';
import { asLedgerError, emptyWal, proveWritable, type Connection } from './sqlite-database.js';
import { SqliteOwnRecords } from './sqlite-own-records.js';
import { openParts, type Contents, type SqliteParts } from './sqlite-parts.js';
import { pagesFrom, type ReadPage } from './sqlite-pages.js';
import type { SqliteReader } from './sqlite-reader.js';
import { notTheWriter, unavailable } from './sqlite-refusals.js';
import type { SqliteRunRecords } from './sqlite-run-records.js';
import type { SqliteTrees } from './sqlite-trees.js';
import { lockWriter, type WriterLock } from './sqlite-writer-lock.js';
import { SqliteWriter } from './sqlite-writer.js';

/** A ledger file that is open. How a batch is written: sqlite-writer.ts. */
export class SqliteLedgerStore implements LedgerStore {
  readonly #file: string;
  readonly #readOnly: boolean;
  readonly #contents: Contents;
  readonly #stretchRows: number | undefined;
  readonly records: OwnRecords | null;
  /** Others after `reopen`. */
  #parts: SqliteParts;
  /** The writer's lock, and the writer unless it has to be acquired again. */
  #held: { readonly lock: WriterLock; readonly writer: SqliteWriter | null } | null = null;

  constructor(file: string, contents: Contents, readOnly: boolean, stretchRows?: number) {
    this.#file = file;
    this.#stretchRows = stretchRows;
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

  get #trees(): SqliteTrees {
    return this.#parts.trees;
  }

  readonly snapshots: SnapshotCache = {
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
        const writer = new SqliteWriter(this.#parts, this.#stretchRows);
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

  commit(batch: Batch): Promise<CommitResult> {
    return this.#answer(() => this.#writer.commit(batch));
  }

  get #writer(): SqliteWriter {
    if (this.#held?.writer != null) return this.#held.writer;
    throw notTheWriter();
  }

  head(): Promise<LogHead> {
    return this.#answer(() => this.#reader.head());
  }

  async *tree(tree_id: string, fromSeq = 0, options: CursorOptions = {}): AsyncIterable<StoredEntry> {
    const start = await this.#answer(() => this.#reader.treeStart(tree_id, fromSeq));
    for await (const entry of this.#pages(start, (from, count) => this.#reader.tree(tree_id, from, count), options)) {
      if (entry.seq >= fromSeq) yield entry;
    }
  }

  async *log(fromIndex?: number, options: CursorOptions = {}): AsyncIterable<StoredEntry> {
    const first = fromIndex ?? (await this.#answer(() => this.#archives.size()));
    const start = await this.#answer(() => this.#reader.logStart(first));
    for await (const entry of this.#pages(start, (from, count) => this.#reader.log(from, count), options)) {
      if (entry.log_index >= first) yield entry;
    }
  }

  pending(): Promise<readonly PendingAppend[]> {
    return this.#answer(() => []);
  }

  integrate({ from }: Integration): Promise<boolean> {
    return this.#answer(() => {
      if (from !== this.#reader.head().size) return false;
      throw new InvariantError('nothing is pending: this store integrates in its commits');
    });
  }

  async *histories(places: readonly EntryPlace[]): AsyncGenerator<EntryWithContent> {
    for (const { tree_id, seq } of places) {
      const start = await this.#answer(() => this.#reader.treeStart(tree_id, seq));
      for await (const read of this.#pages(start, (from, count) => this.#reader.history(tree_id, from, count))) {
        const { entry, block } = read;
        if (entry.seq < seq) continue;
        yield { entry, artifacts: block.artifacts === null ? [] : await this.#contentOf(entry, block) };
      }
    }
  }

  trees({ from: start = 0, ...options }: TreeCursorOptions = {}): AsyncIterable<TreeSummary> {
    return this.#pages(start, (from) => this.#reader.listTrees(from), options);
  }

  treesOf(case_id: string): Promise<readonly TreeSummary[]> {
    return this.#answer(() => this.#trees.ofCase(case_id));
  }

  openTrees(): AsyncIterable<OpenTree> {
    return this.#pages(0, (from) => this.#trees.open(from));
  }

  async *#unrecorded(): AsyncGenerator<EndedTree> {
    const first = await this.#answer(() => this.#runRecords.firstUnrecorded());
    yield* this.#pages(first, (from) => this.#runRecords.unrecorded(from));
  }

  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]> {
    return this.#answerLater(async () => {
      const block = this.#reader.blockOf(place);
      if (block !== null) return this.#parts.artifacts.of(block, place.seq - block.seq);
      this.#archives.refuseTree(place.tree_id);
      return [];
    }, place.tree_id);
  }

  #contentOf({ tree_id, seq }: EntryPlace, block: BlockContent): Promise<readonly StoredArtifact[]> {
    return this.#answerLater(() => this.#parts.artifacts.of(block, seq - block.seq), tree_id);
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

  marks<Key extends MarkKey>(keys: readonly Key[]): Promise<readonly (MarkOf<Key> | null)[]> {
    return this.#answer(() => this.#reader.marks(keys) as readonly (MarkOf<Key> | null)[]);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      // Before the lock is released: the next writer must not meet a write of this one.
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

  /** @param tree_id the tree of the content: where the read fails, the tree may have been archived meanwhile */
  async #answerLater<T>(work: () => Promise<T>, tree_id?: string): Promise<T> {
    this.#refuseClosed();
    const db = this.#db;
    try {
      return await work().catch((error: unknown) => {
        if (tree_id !== undefined) this.#archives.refuseTree(tree_id);
        throw error;
      });
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

  #pages<Row>(start: number, read: ReadPage<Row>, options?: CursorOptions): AsyncGenerator<Row> {
    return pagesFrom(start, (from, count) => this.#answer(() => read(from, count)), options);
  }
}

const closed = () => unavailable('the ledger is not open: it was closed, or could not be opened again');
