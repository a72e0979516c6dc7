// The ledger store on a schema of a PostgreSQL database. Commits leave their appends pending: the sequencer integrates
// them into the log. Any process can read the ledger. Only the process that holds the writer lock writes.
//
// Reads use connections of their own, so that they do not wait for commits (postgres-connection.ts). How a batch is
// committed: postgres-writer.ts. The tables and functions: sql/.

import { resolve } from 'node:path';
import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import type { ArchiveTable } from '../../engine/ports/ledger/archives.js';
import type { CaseKeyTable } from '../../engine/ports/ledger/case-key-table.js';
import type {
  CursorOptions,
  EntryPlace,
  EntryWithContent,
  Erasure,
  ErasureResult,
  ErasureSeal,
  Integration,
  LedgerStore,
  LogHead,
  MarkKey,
  MarkOf,
  OpenTree,
  PendingAppend,
  RotationGate,
  SnapshotCache,
  StoredEntry,
  TreeCursorOptions,
  TreeEntry,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import type { RunRecordTable } from '../../engine/ports/ledger/run-record-table.js';
import type { GrownTree, SharedBatch, SharedLedgerStore } from '../../engine/ports/ledger/shared-store.js';
import { CaseKeys } from '../keys/case-keys.js';
import { notWriterError, unavailableError } from '../ledger/store-errors.js';
import {
  asLedgerError,
  checkSchemaName,
  checkServer,
  checkSessions,
  closedError,
  ReaderPool,
  sendOn,
  type KnownRotations,
  type PostgresPlace,
  type SendStatement,
} from './postgres-connection.js';
import { ownIdentity } from '../../system/process-identity.js';
import { LedgerError } from '../../core/errors.js';
import { PostgresAnnouncements } from './workers/postgres-announcements.js';
import { postgresCaseKeyTable } from './postgres-case-keys.js';
import {
  claimDueTrees,
  claimLeases,
  hasLeases,
  isActive,
  releaseLeases,
  returnLeases,
  treeLengths,
} from './workers/postgres-leases.js';
import { inOrder, openContents, type PostgresContents } from './postgres-contents.js';
import { readMarks } from './postgres-marks.js';
import { readLabelVersion, readQuotas } from './workers/postgres-quotas.js';
import { openHeadTable, type PostgresHeadTable } from './workers/postgres-head-table.js';
import { readRotations, rotationGate } from './workers/postgres-rotation.js';
import { newestFormat } from '../ledger/migrations.js';
import { createTables, MIGRATIONS, openCopiedTables, openTables, type PostgresMigration } from './postgres-tables.js';
import { PostgresReader } from './postgres-reader.js';
import { PostgresRunRecords } from './postgres-run-records.js';
import { PostgresWriter } from './postgres-writer.js';
import { WriterSession, type LockMode } from './writer-session.js';

/** Where a ledger is, and how to open it. */
export interface PostgresStoreOptions {
  /** The database, e.g. `postgres://user@host/database`. A pooler in front of it must use session pooling. */
  readonly url: string;
  /** The schema of the tables: lower-case letters, digits and _. @default 'turnpike' */
  readonly schema?: string;
  /**
   * The directory for the keys that encrypt the contents of cases. Not in the database: a copy of the contents must not
   * include the keys that decrypt them.
   */
  readonly caseKeysDir: string;
  /**
   * A database of another server, e.g. `postgres://user@host/database`, where each worker also stores its newest signed
   * head. A worker without it sees heads only in its own key folder, so copies of that need it. Requires a key folder.
   */
  readonly heads?: string;
  /** Opens the ledger for reading only; another process may write. @default false */
  readonly readOnly?: boolean;
  /**
   * Joins as the only worker: no other process writes while this store is open. A rotation of the key needs that.
   * @default false
   */
  readonly alone?: boolean;
  /** Returns what signs erasure records; null or absent: erasures are not signed. */
  readonly erasureSeal?: () => ErasureSeal | null;
  /** @internal Tests add a format. @default MIGRATIONS */
  readonly migrations?: readonly PostgresMigration[];
}

/**
 * Creates an empty ledger and opens it. The schema is created if it is missing.
 * @throws LedgerError LEDGER_UNAVAILABLE if the schema has tables already, or the server does not fulfil the
 * requirements of `openPostgresStore`
 */
export function createPostgresStore(options: PostgresStoreOptions): Promise<SharedLedgerStore> {
  return openStore(options, (send, schema) => createTables(send, schema, options.migrations));
}

/**
 * Opens an existing ledger.
 * @throws LedgerError LEDGER_UNSUPPORTED if another version wrote it in a format that this one does not read
 * @throws LedgerError LEDGER_UNAVAILABLE if the schema has no ledger; for
 * writing, also if commits of the server can be lost, or a connection does not keep its session
 * @throws LedgerError LEDGER_TAMPERED if the tables are not those of a ledger, or triggers were removed
 * @throws UsageError for an invalid schema name
 */
export function openPostgresStore(options: PostgresStoreOptions): Promise<SharedLedgerStore> {
  return openStore(options, (send, schema) => openTables(send, schema, options.readOnly ?? false, options.migrations));
}

type CopyStoreOptions = Omit<PostgresStoreOptions, 'readOnly' | 'alone'>;

/** Opens an unfinished copy for reading, so that it can be verified. @throws like `openPostgresStore` */
export function openCopiedPostgresStore(options: CopyStoreOptions): Promise<LedgerStore> {
  return openStore({ ...options, readOnly: true }, (send, schema) => openCopiedTables(send, schema, true));
}

/** Opens a ledger for a copy, also one that was copied before. @throws like `openPostgresStore` */
export function openPostgresSourceStore(options: CopyStoreOptions): Promise<LedgerStore> {
  return openStore({ ...options, isCopySource: true }, (send, schema) => openTables(send, schema, false));
}

async function openStore(
  options: PostgresStoreOptions & Pick<PostgresPlace, 'isCopySource'>,
  prepare: (send: SendStatement, schema: string) => Promise<void>,
): Promise<SharedLedgerStore> {
  const { url, schema = 'turnpike', caseKeysDir, readOnly = false, alone = false, erasureSeal = () => null } = options;
  checkSchemaName(schema);
  const place = {
    url,
    schema,
    readOnly,
    isCopySource: options.isCopySource ?? false,
    isAlone: alone,
    format: newestFormat(options.migrations ?? MIGRATIONS),
  };
  const pool = new ReaderPool(place);
  let rotations: KnownRotations;
  let headTable: PostgresHeadTable | null = null;
  try {
    const client = await pool.connect();
    try {
      const send = sendOn(client);
      await checkServer(send, readOnly);
      if (options.heads !== undefined) headTable = await openHeadTable(options.heads, send, readOnly);
      await prepare(send, schema);
      // The caller reads the key folder later.
      rotations = await readRotations(send);
    } finally {
      client.release();
    }
    if (!readOnly) await checkSessions(pool);
    const keys = new CaseKeys(resolve(caseKeysDir), erasureSeal);
    const contents = await openContents(pool, keys, readOnly || place.isCopySource);
    return new PostgresLedgerStore({ ...place, rotations }, pool, contents, headTable);
  } catch (cause) {
    await Promise.all([pool.close(), headTable?.close()]);
    throw asLedgerError(cause, `the ledger in schema ${schema} cannot be opened`);
  }
}

class PostgresLedgerStore implements SharedLedgerStore {
  readonly #place: PostgresPlace;
  readonly #pool: ReaderPool;
  readonly #reader: PostgresReader;
  readonly #contents: PostgresContents;
  readonly #announcements: PostgresAnnouncements;
  #writer: PostgresWriter | null = null;
  /** An `acquire` that has not ended. */
  #acquiring: Promise<unknown> = Promise.resolve();

  constructor(place: PostgresPlace, pool: ReaderPool, contents: PostgresContents, headTable: PostgresHeadTable | null) {
    this.#place = place;
    this.headTable = headTable;
    this.#pool = pool;
    this.#reader = new PostgresReader(pool);
    this.#contents = contents;
    this.runRecords = new PostgresRunRecords(pool, () => this.#requireWriter());
    this.#announcements = new PostgresAnnouncements(place);
    this.caseKeys = postgresCaseKeyTable({
      contents: this.#contents,
      onSession: async (work) => this.#requireWriter().exclusively(work),
      epoch: () => this.#requireWriter().epoch,
    });
  }

  readonly records = null;
  readonly caseKeys: CaseKeyTable;
  readonly headTable: PostgresHeadTable | null;

  readonly snapshots: SnapshotCache = {
    load: (tree_id) => this.#contents.snapshot(tree_id),
  };

  readonly runRecords: RunRecordTable;

  /** Rows of this ledger are never removed. */
  readonly archives: ArchiveTable = {
    obstacle: NO_ARCHIVES,
    parts: () => this.#answer([]),
    tree: () => this.#answer(null),
    treeCount: () => this.#answer(0),
    hasCase: () => this.#answer(false),
    remove: () => Promise.reject(unavailableError(NO_ARCHIVES)),
    tidy: () => this.#answer(undefined),
  };

  acquire(): Promise<number> {
    return this.#becomeWriter('exclusive', (writer) => writer.beginEpoch());
  }

  join(): Promise<number> {
    return this.#becomeWriter('shared', (writer) => writer.join(ownIdentity()));
  }

  /** One at a time. A writer keeps its session, unless it changes from the only writer to a worker or back. */
  #becomeWriter(mode: LockMode, begin: (writer: PostgresWriter) => Promise<number>): Promise<number> {
    const acquiring = this.#acquiring.then(async () => {
      if (this.#pool.closed) throw closedError();
      if (this.#place.readOnly) throw unavailableError('this ledger was opened only for reading');
      if (this.#writer?.mode === mode) return begin(this.#writer);
      await this.#writer?.close();
      this.#writer = null;
      const parts = { pool: this.#pool, reader: this.#reader, contents: this.#contents };
      const writer = new PostgresWriter(parts, await WriterSession.lock(this.#place, mode));
      try {
        const number = await begin(writer);
        this.#writer = writer;
        return number;
      } catch (error) {
        await writer.close();
        throw error;
      }
    });
    this.#acquiring = acquiring.catch(() => undefined);
    return acquiring;
  }

  async reopen(): Promise<void> {
    await this.#requireWriter().reopen();
  }

  readonly commit: SharedLedgerStore['commit'] = async (batch) => this.#requireWriter().commit(batch);

  readonly commitTrees: SharedLedgerStore['commitTrees'] = async (batch) => this.#requireWriter().commitTrees(batch);

  async commitLocked<Made extends SharedBatch>(tree_ids: readonly string[], decide: () => Promise<Made>) {
    return this.#requireWriter().commitLocked(tree_ids, decide);
  }

  readonly treeLengths: SharedLedgerStore['treeLengths'] = (tree_ids) => treeLengths(this.#pool, tree_ids);

  readonly caseQuotas: SharedLedgerStore['caseQuotas'] = (case_ids) => readQuotas(this.#pool, case_ids);

  readonly labelVersion: SharedLedgerStore['labelVersion'] = (case_id) => readLabelVersion(this.#pool, case_id);

  async claimDueTrees(...claim: Parameters<SharedLedgerStore['claimDueTrees']>): Promise<readonly string[]> {
    return this.#requireWriter().exclusively((send) => claimDueTrees(send, ...claim));
  }

  readonly claimLeases: SharedLedgerStore['claimLeases'] = (...claim) =>
    this.#asWorker((send, worker_id) => claimLeases(send, worker_id, ...claim));

  readonly returnLeases: SharedLedgerStore['returnLeases'] = (leases) =>
    this.#asWorker((send, worker_id) => returnLeases(send, worker_id, leases));

  readonly hasLeases: SharedLedgerStore['hasLeases'] = (leases) =>
    this.#asWorker((send, worker_id) => hasLeases(send, worker_id, leases));

  readonly releaseLeases: SharedLedgerStore['releaseLeases'] = async (leases) => {
    if (leases.length > 0) await this.#asWorker((send, worker_id) => releaseLeases(send, worker_id, leases));
  };

  subscribe(listener: (trees: readonly GrownTree[]) => void): () => void {
    return this.#announcements.subscribe(listener);
  }

  async lead(): Promise<boolean> {
    return this.#requireWriter().lead();
  }

  async isActive(): Promise<boolean> {
    const ask = (): Promise<boolean> => this.#asWorker(isActive);
    try {
      // A lost connection is noticed only by its use: the second question restores the session.
      return await ask().catch(ask);
    } catch (error) {
      if (error instanceof LedgerError && error.code === 'LEDGER_CONFLICT') return false;
      throw error;
    }
  }

  async integrate(integration: Integration): Promise<boolean> {
    return this.#requireWriter().integrate(integration);
  }

  async erase(erasure: Erasure): Promise<ErasureResult> {
    return this.#requireWriter().erase(erasure);
  }

  get rotation(): RotationGate {
    return rotationGate((work) => this.#requireWriter().exclusively(work), this.#place);
  }

  sealErasures(seal: () => ErasureSeal | null): void {
    this.#contents.keys.sealWith(seal);
  }

  head(): Promise<LogHead> {
    return this.#reader.head();
  }

  log(fromIndex = 0, options: CursorOptions = {}): AsyncIterable<StoredEntry> {
    return this.#reader.log(fromIndex, options);
  }

  leafHashes(fromIndex: number, limit: number): Promise<readonly string[]> {
    return this.#reader.leafHashes(fromIndex, limit);
  }

  pending(limit: number): Promise<readonly PendingAppend[]> {
    return this.#reader.pending(limit);
  }

  async *tree(tree_id: string, fromSeq = 0, options: CursorOptions = {}): AsyncIterable<TreeEntry> {
    for await (const page of this.#reader.entries([{ tree_id, seq: fromSeq }], options)) {
      for (const { entry } of page) yield entry;
    }
  }

  async *histories(places: readonly EntryPlace[]): AsyncGenerator<EntryWithContent> {
    for await (const page of this.#reader.entries(places)) {
      const read = await this.#contents.read(page.flatMap(({ contents }) => contents));
      for (const { entry, contents } of page) yield { entry, artifacts: await inOrder(contents, read) };
    }
  }

  trees(options?: TreeCursorOptions): AsyncIterable<TreeSummary> {
    return this.#reader.trees(options);
  }

  treesOf(case_id: string): Promise<readonly TreeSummary[]> {
    return this.#reader.treesOf(case_id);
  }

  openTrees(): AsyncIterable<OpenTree> {
    return this.#reader.openTrees();
  }

  async artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]> {
    if (this.#pool.closed) throw closedError();
    const numbers = await this.#reader.contentNumbers(place);
    return inOrder(numbers, await this.#contents.read(numbers));
  }

  artifact(case_id: string | null, sha256: string): Promise<Uint8Array | null> {
    return this.#contents.find(case_id, sha256);
  }

  async marks<Key extends MarkKey>(keys: readonly Key[]): Promise<readonly (MarkOf<Key> | null)[]> {
    return (await readMarks(this.#pool, keys)) as readonly (MarkOf<Key> | null)[];
  }

  async close(): Promise<void> {
    await this.#acquiring;
    const writer = this.#writer;
    this.#writer = null;
    await Promise.all([writer?.close(), this.#announcements.close(), this.#pool.close(), this.headTable?.close()]);
  }

  #requireWriter(): PostgresWriter {
    if (this.#pool.closed) throw closedError();
    if (this.#writer !== null) return this.#writer;
    throw notWriterError();
  }

  /** Runs statements on the session of the worker. */
  async #asWorker<T>(work: (send: SendStatement, worker_id: number) => Promise<T>): Promise<T> {
    const writer = this.#requireWriter();
    const { worker_id } = writer;
    if (worker_id === null) throw notWriterError();
    return writer.exclusively((send) => work(send, worker_id));
  }

  #answer<T>(value: T): Promise<T> {
    return this.#pool.closed ? Promise.reject(closedError()) : Promise.resolve(value);
  }
}

const NO_ARCHIVES =
  'a ledger in PostgreSQL cannot be archived: its entries stay in the database. ' +
  'Write evidence with `turnpike ledger export`, or copy the ledger to SQLite with `turnpike home copy` and archive it';
