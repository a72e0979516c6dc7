// What workers on PostgreSQL learn of each other: who integrates, what was integrated, and that a database fell back.

import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/index.js';
import type { TreeEngine } from '../../../src/engine/tree-engine.js';
import { FOLLOWER_MS, LEADER_IDLE_MS } from '../../../src/engine/writers/log-leader.js';
import type { ExternalHeadStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { GrownTree, SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { think, World, type EngineHarness } from '../../engine/tree-engine.conformance.js';
import { start, submit } from '../../engine/start-tree.js';
import { ledgerPlace, startWorker, type LedgerPlace } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

const TREE = 'run_announced01';
const REMOTE = { link: 'remote', idle_ms: null } as const;

const WAIT_MS = 20_000;

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (!(await holds())) if (performance.now() > end) throw new Error('this never became true');
}

interface Worker {
  readonly engine: TreeEngine;
  readonly store: SharedLedgerStore;
  readonly world: World;
  readonly externalHeadStore: ExternalHeadStore;
}

(server === null ? describe.skip : describe)('two workers of a ledger in PostgreSQL', () => {
  let place: LedgerPlace;
  let clock: ManualClock;
  let workers: Worker[];

  async function open(): Promise<Worker> {
    const store = await openPostgresStore(place);
    const world = new World();
    const started = await startWorker(store, { clock, effects: world, listeners: world.listeners });
    const worker = { ...started, store, world };
    workers.push(worker);
    return worker;
  }

  const close = async ({ engine, store }: Worker): Promise<void> => {
    await engine.stop();
    await store.close();
  };

  beforeEach(async () => {
    place = ledgerPlace(server?.url ?? '');
    await (await createPostgresStore(place)).close();
    clock = new ManualClock();
    workers = [];
  });
  afterEach(async () => {
    for (const worker of workers) await close(worker);
    await place.remove();
  });

  const harness = (worker: Worker): EngineHarness => worker as unknown as EngineHarness;

  test('one of them leads, and the other one does when the session of the first is gone', async () => {
    const [one, other] = [await open(), await open()];
    await eventually(() => one.store.lead());
    expect([await one.store.lead(), await other.store.lead(), await one.store.lead()]).toEqual([true, false, true]);
    await one.store.close();
    expect(await other.store.lead()).toBe(true);
    workers.shift();
    await one.engine.stop();
  });

  test('the leader integrates and announces what others have committed, and they see it before the next poll', async () => {
    const [one, other] = [await open(), await open()];
    await eventually(() => one.store.lead());
    const grown: GrownTree[] = [];
    other.store.subscribe?.((trees) => grown.push(...trees));
    await start(harness(one), TREE, REMOTE);
    await think(harness(other), TREE, 'loads the tree');
    await submit(harness(one), TREE, { kind: 'end', run_id: `${TREE}.1`, input_id: 'seen' });
    await eventually(async () => {
      clock.advance(LEADER_IDLE_MS / 10);
      await new Promise((resolve) => setTimeout(resolve, 5));
      return other.world.endings.some(({ run_id }) => run_id === TREE);
    });
    expect(grown.map(({ tree_id }) => tree_id)).toContain(TREE);
    expect((await other.store.pending(1)).length).toBe(0);
  });

  test('D15: a database that was restored to an earlier state is refused by every worker', async () => {
    const [one, other] = [await open(), await open()];
    await start(harness(one), TREE, REMOTE);
    await one.engine.head();
    const [head] = (await place.exec(`SELECT size, encode(root, 'hex') AS root, encode(frontier, 'hex') AS frontier
      FROM head`)) as readonly { readonly size: string; readonly root: string; readonly frontier: string }[];
    await think(harness(one), TREE, 'lost');
    const { size } = await one.engine.head();
    await eventually(async () => {
      clock.advance(FOLLOWER_MS);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return (await other.externalHeadStore.read())?.size === size;
    });
    await place.exec(`ALTER TABLE log DISABLE TRIGGER USER; DELETE FROM log WHERE log_index >= ${head?.size ?? 0};
      UPDATE head SET size = ${head?.size ?? 0}, root = '\\x${head?.root ?? ''}', frontier = '\\x${head?.frontier ?? ''}';
      ALTER TABLE log ENABLE TRIGGER USER`);
    await eventually(async () => {
      clock.advance(FOLLOWER_MS);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return one.engine.hasFailed && other.engine.hasFailed;
    });
    for (const { engine, world } of workers) {
      expect(world.failure).toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      await expect(engine.restart()).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
    }
  });
});
