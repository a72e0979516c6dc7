// Ledgers in schemas of one PostgreSQL server, for suites that open stores and break them without waiting.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import type { PostgresStoreOptions } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { Sequencer } from '../../../src/engine/sequencer.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import type { LedgerUnderTest } from '../ledger/ledger-bench.js';

let schemas = 0;

/** Runs statements on a connection of its own. @returns the rows of the last one */
export async function execute(url: string, sql: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const results: unknown = await client.query(sql);
    const last: unknown = Array.isArray(results) ? results.at(-1) : results;
    return (last as { readonly rows: unknown[] }).rows;
  } finally {
    await client.end();
  }
}

/** A place for a ledger that does not exist yet. */
export interface LedgerPlace extends PostgresStoreOptions {
  readonly schema: string;
  readonly folder: string;
  /** Runs statements in the schema of the ledger. */
  exec(sql: string): Promise<readonly unknown[]>;
  remove(): Promise<void>;
}

export function ledgerPlace(url: string): LedgerPlace {
  const folder = tempFolder('pg-keys');
  schemas += 1;
  const schema = `ledger_${process.pid}_${schemas}`;
  mkdirSync(folder, { recursive: true });
  return {
    url,
    schema,
    folder,
    caseKeysDir: join(folder, 'keys'),
    exec: (sql) => execute(url, `SET search_path TO ${schema}; SET client_min_messages TO error; ${sql}`),
    remove: async () => {
      await execute(url, `SET client_min_messages TO error; DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Ends the session that holds the writer lock of a ledger. */
export const END_WRITER = `SELECT pg_terminate_backend(pid, 5000) FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND objid = 'meta'::regclass::oid`;

/** Makes the insertion of a block fail. */
export const BREAK_INSERT = `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = '53100'; END $$;
  CREATE TRIGGER breakage BEFORE INSERT ON blocks FOR EACH ROW EXECUTE FUNCTION broken()`;
/** Makes the COMMIT fail. */
export const BREAK_COMMIT = `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = '53100'; END $$;
  CREATE CONSTRAINT TRIGGER breakage AFTER INSERT ON blocks DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION broken()`;
export const REPAIR = 'DROP TRIGGER IF EXISTS breakage ON blocks; DROP FUNCTION IF EXISTS broken()';

/**
 * A ledger whose stores can be used at once: a call waits until its store is open, and until what the test does to the
 * server is done.
 */
export class PostgresLedgerUnderTest implements LedgerUnderTest {
  readonly integrates = false;
  readonly #place: LedgerPlace;
  readonly #breakage: string;
  readonly #removals: Promise<unknown>[];
  #before: Promise<unknown>;
  #writer: LazyStore | null = null;

  constructor(url: string, breakage: string, removals: Promise<unknown>[]) {
    this.#place = ledgerPlace(url);
    this.#breakage = breakage;
    this.#removals = removals;
    this.#before = createPostgresStore(this.#place).then((store) => store.close());
  }

  open = (): LedgerStore => this.#open(false);
  openReader = (): LedgerStore => this.#open(true);
  loseLock = (): void => this.#then(END_WRITER);
  breakCommits = (): void => this.#then(this.#breakage);
  repair = (): void => this.#then(REPAIR);
  remove = (): void => void this.#removals.push(this.#before.then(() => this.#place.remove()));

  settle = async (): Promise<void> => {
    if (this.#writer !== null) await new Sequencer(this.#writer, () => undefined).run();
  };

  #open(readOnly: boolean): LedgerStore {
    const opening = this.#before.then(() => openPostgresStore({ ...this.#place, readOnly }));
    opening.catch(() => undefined);
    const store: LazyStore = new LazyStore(async () => {
      await this.#before;
      return opening;
    });
    const acquire = store.acquire;
    store.acquire = async () => {
      const epoch = await acquire();
      this.#writer = store;
      return epoch;
    };
    const close = store.close;
    store.close = async () => {
      if (this.#writer === store) this.#writer = null;
      await close();
    };
    return store;
  }

  #then(sql: string): void {
    this.#before = this.#before.then(() => this.#place.exec(sql));
  }
}

/** A store that is opened while its first call waits. */
class LazyStore implements LedgerStore {
  readonly #opened: () => Promise<LedgerStore>;

  constructor(opened: () => Promise<LedgerStore>) {
    this.#opened = opened;
  }

  readonly records = null;
  acquire: LedgerStore['acquire'] = async () => (await this.#opened()).acquire();
  reopen: LedgerStore['reopen'] = async () => (await this.#opened()).reopen();
  commit: LedgerStore['commit'] = async (batch) => (await this.#opened()).commit(batch);
  head: LedgerStore['head'] = async () => (await this.#opened()).head();
  pending: LedgerStore['pending'] = async (limit) => (await this.#opened()).pending(limit);
  integrate: LedgerStore['integrate'] = async (integration) => (await this.#opened()).integrate(integration);
  treesOf: LedgerStore['treesOf'] = async (case_id) => (await this.#opened()).treesOf(case_id);
  artifactsOf: LedgerStore['artifactsOf'] = async (place) => (await this.#opened()).artifactsOf(place);
  artifact: LedgerStore['artifact'] = async (case_id, hash) => (await this.#opened()).artifact(case_id, hash);
  marks: LedgerStore['marks'] = async (keys) => (await this.#opened()).marks(keys);
  erase: LedgerStore['erase'] = async (erasure) => (await this.#opened()).erase(erasure);
  close: LedgerStore['close'] = async () => (await this.#opened()).close();
  log: LedgerStore['log'] = (...args) => this.#each((store) => store.log(...args));
  tree: LedgerStore['tree'] = (...args) => this.#each((store) => store.tree(...args));
  histories: LedgerStore['histories'] = (places) => this.#each((store) => store.histories(places));
  trees: LedgerStore['trees'] = (...args) => this.#each((store) => store.trees(...args));
  openTrees: LedgerStore['openTrees'] = () => this.#each((store) => store.openTrees());
  readonly snapshots: LedgerStore['snapshots'] = {
    load: async (tree_id) => (await this.#opened()).snapshots.load(tree_id),
  };
  readonly runRecords: LedgerStore['runRecords'] = {
    unrecorded: () => this.#each((store) => store.runRecords.unrecorded()),
    save: async (batch) => (await this.#opened()).runRecords.save(batch),
    trees: () => this.#each((store) => store.runRecords.trees()),
    recorded: async (tree_id) => (await this.#opened()).runRecords.recorded(tree_id),
    load: async (tree_id, run_id) => (await this.#opened()).runRecords.load(tree_id, run_id),
    count: async (tree_id) => (await this.#opened()).runRecords.count(tree_id),
  };
  readonly archives: LedgerStore['archives'] = {
    parts: async () => (await this.#opened()).archives.parts(),
    tree: async (tree_id) => (await this.#opened()).archives.tree(tree_id),
    treeCount: async () => (await this.#opened()).archives.treeCount(),
    hasCase: async (case_id) => (await this.#opened()).archives.hasCase(case_id),
    remove: async (removal) => (await this.#opened()).archives.remove(removal),
    tidy: async () => (await this.#opened()).archives.tidy(),
  };

  async *#each<T>(list: (store: LedgerStore) => AsyncIterable<T>): AsyncGenerator<T> {
    yield* list(await this.#opened());
  }
}
