// Several workers of one ledger in PostgreSQL: the engine's guarantees for each, and what holds between them.

import { afterAll, describe, test } from '@jest/globals';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/index.js';
import { treeEngineConformance, World } from '../../engine/tree-engine.conformance.js';
import { workersConformance, type Cluster, type SharedHarness } from '../../engine/workers.conformance.js';
import { FaultySharedStore } from '../../fixtures/faulty-shared-store.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { ledgerPlace, startWorker, type LedgerPlace } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });

afterAll(() => server?.stop());

/** Long enough for the statements of a poll, in ms. */
const SETTLE_MS = 150;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** All workers so far, as if their processes were dead. */
const DEAD = 'UPDATE workers SET over_at = coalesce(over_at, now()), is_dead = true';

async function openWorker(place: LedgerPlace, clock: ManualClock): Promise<SharedHarness> {
  const store = new FaultySharedStore(await openPostgresStore(place));
  const world = new World();
  const { engine, externalHeadStore } = await startWorker(store, { clock, effects: world, listeners: world.listeners });
  return {
    engine,
    store,
    externalHeadStore,
    clock,
    world,
    isShared: true,
    crash: async () => {
      await store.close();
      await place.exec(DEAD);
      return openWorker(place, new ManualClock());
    },
    stop: async () => {
      await engine.stop();
      await store.close();
    },
  };
}

async function openCluster(url: string): Promise<Cluster> {
  const place = ledgerPlace(url);
  await (await createPostgresStore(place)).close();
  const workers = new Map<SharedHarness, string>();
  const last = 'SELECT max(worker_id)::text AS worker_id FROM workers';
  return {
    open: async (clock) => {
      const worker = await openWorker(place, clock);
      const [row] = (await place.exec(last)) as readonly { readonly worker_id: string }[];
      workers.set(worker, row?.worker_id ?? '');
      return worker;
    },
    openStore: () => openPostgresStore(place),
    kill: async (worker) => {
      await worker.store.close();
      await place.exec(`${DEAD} WHERE worker_id = ${workers.get(worker) ?? '0'}`);
    },
    cutOff: async (worker) => {
      const worker_id = workers.get(worker) ?? '0';
      await place.exec(`SELECT pg_terminate_backend(backend_pid, 5000) FROM workers WHERE worker_id = ${worker_id};
        UPDATE workers SET over_at = now() - interval '1 hour' WHERE worker_id = ${worker_id}`);
    },
    settle: () => sleep(SETTLE_MS),
    dispose: () => place.remove(),
  };
}

if (server === null) {
  describe.skip('workers of a ledger in PostgreSQL', () => {
    test('PostgreSQL is not installed', () => undefined);
  });
} else {
  treeEngineConformance('a worker of a ledger in PostgreSQL', async () => {
    const place = ledgerPlace(server.url);
    await (await createPostgresStore(place)).close();
    const worker = await openWorker(place, new ManualClock());
    return { ...worker, stop: () => worker.stop().then(() => place.remove()) };
  });
  workersConformance('in PostgreSQL', () => openCluster(server.url));
}
