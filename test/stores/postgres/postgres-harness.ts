// Ledgers in schemas of one PostgreSQL server, for suites that open stores and break them without waiting.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { ephemeralKey } from '../../../src/stores/keys/session-key.js';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import type { PostgresStoreOptions } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { Sequencer } from '../../../src/engine/sequencer.js';
import { sharedEngine } from '../../../src/engine/shared.js';
import type { EngineParts, TreeEngine } from '../../../src/engine/tree-engine.js';
import type { ExternalHeadStore, LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
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

/** The engine of one worker on a store, started. */
export async function startWorker(
  store: SharedLedgerStore,
  parts: Pick<EngineParts, 'clock' | 'effects'> & Partial<EngineParts>,
): Promise<{ readonly engine: TreeEngine; readonly externalHeadStore: ExternalHeadStore }> {
  const externalHeadStore = memoryHeadStore(await store.head());
  const engine = sharedEngine({
    store,
    externalHeadStore,
    log: winstonLog('silent'),
    secrets: ephemeralKey(),
    defer: (task) => void setImmediate(task),
    ...parts,
  });
  await engine.start();
  return { engine, externalHeadStore };
}

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
  #writer: LedgerStore | null = null;

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
    const lazy = lazyStore(async () => {
      await this.#before;
      return opening;
    });
    const store: LedgerStore = {
      ...lazy,
      acquire: async () => {
        const epoch = await lazy.acquire();
        this.#writer = store;
        return epoch;
      },
      close: async () => {
        if (this.#writer === store) this.#writer = null;
        await lazy.close();
      },
    };
    return store;
  }

  #then(sql: string): void {
    this.#before = this.#before.then(() => this.#place.exec(sql));
  }
}

type Members = Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;

/** Members that wait for what has them. @param listed those that return a list */
function lazyMembers<T extends object>(
  opened: () => Promise<T>,
  asked: readonly (keyof T & string)[],
  listed: readonly (keyof T & string)[] = [],
): T {
  const membersOf = async (): Promise<Members> => (await opened()) as unknown as Members;
  const list = async function* (name: string, args: readonly unknown[]): AsyncGenerator {
    yield* (await membersOf())[name]?.(...args) as AsyncIterable<unknown>;
  };
  return Object.fromEntries([
    ...asked.map((name) => [name, async (...args: readonly unknown[]) => (await membersOf())[name]?.(...args)]),
    ...listed.map((name) => [name, (...args: readonly unknown[]) => list(name, args)]),
  ]) as T;
}

/** A store that is opened while its first call waits. */
const lazyStore = (opened: () => Promise<LedgerStore>): LedgerStore => ({
  ...lazyMembers(
    opened,
    [
      ...(['acquire', 'reopen', 'commit', 'head', 'pending', 'integrate', 'treesOf'] as const),
      ...(['artifactsOf', 'artifact', 'marks', 'erase', 'close'] as const),
    ],
    ['log', 'tree', 'histories', 'trees', 'openTrees'],
  ),
  records: null,
  snapshots: lazyMembers(async () => (await opened()).snapshots, ['load']),
  runRecords: lazyMembers(
    async () => (await opened()).runRecords,
    ['save', 'recorded', 'load', 'count'],
    ['unrecorded', 'trees'],
  ),
  archives: lazyMembers(
    async () => (await opened()).archives,
    ['parts', 'tree', 'treeCount', 'hasCase', 'remove', 'tidy'],
  ),
});
