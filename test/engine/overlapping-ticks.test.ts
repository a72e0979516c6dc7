// A worker decides the next tick while a commit is in flight: nothing may build on what fails of the first. Titles
// name invariants: E of ledger-engine.ts, W of shared-writer.ts.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ephemeralKey } from '../../src/stores/keys/session-key.js';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { sharedModelStore } from '../fixtures/ledger-model/model-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { sharedEngine } from '../../src/engine/shared.js';
import { GUARD_MS } from '../../src/engine/writers/shared-writer.js';
import { GatedSharedStore } from '../fixtures/gated-shared-store.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { entriesOf, think, until, World, write, type EngineHarness } from './tree-engine.conformance.js';
import { start, turns } from './start-tree.js';

const [ONE, OTHER] = ['run_overlapped1', 'run_overlapped2'];

/** The monotonic time advances alone, so that no poll begins. */
class TwoClocks extends ManualClock {
  elapsed = 0;
  monotonic = (): number => this.elapsed;
}

interface GatedHarness extends EngineHarness {
  readonly clock: TwoClocks;
  readonly store: GatedSharedStore;
  /** The trees in the commits that the observer got, or `no tree` for one that was not in memory. */
  readonly observed: string[];
}

const opened: GatedHarness[] = [];

async function openWorker(state: LedgerModel): Promise<GatedHarness> {
  const store = new GatedSharedStore(sharedModelStore(state));
  const [world, clock, externalHeadStore] = [new World(), new TwoClocks(), memoryHeadStore(await store.head())];
  const observed: string[] = [];
  const engine = sharedEngine({
    commitObserver: {
      onCommitted: ({ trees }, _result, inMemory) => {
        for (const { tree_id } of trees) observed.push(inMemory(tree_id) === null ? 'no tree' : tree_id);
      },
      onEvict: () => undefined,
    },
    ...{ store, clock, externalHeadStore, effects: world, listeners: world.listeners },
    log: winstonLog('silent'),
    secrets: ephemeralKey(),
    defer: (task) => void setImmediate(task),
    // Trees leave memory whenever they may.
    liveTreesMax: 0,
  });
  await engine.start();
  const stop = async (): Promise<void> => {
    store.isGated = false;
    for (const commit of store.held) commit.write();
    await engine.stop();
    await store.close();
  };
  const harness: GatedHarness = {
    ...{ engine, store, externalHeadStore, clock, world, observed, stop },
    crash: () => Promise.reject(new Error('unused')),
  };
  opened.push(harness);
  return harness;
}

/** Names what has ended, in order. */
function noting(ended: string[], name: string, submitted: Promise<unknown>): void {
  void submitted.then(
    () => ended.push(name),
    () => ended.push(`${name} rejected`),
  );
}

describe('a tick that is decided while the commit before it is in flight', () => {
  let state: LedgerModel;
  let worker: GatedHarness;
  let ended: string[];

  beforeEach(async () => {
    state = new LedgerModel({ integrates: false });
    worker = await openWorker(state);
    ended = [];
    for (const tree of [ONE, OTHER]) await start(worker, tree);
    worker.store.isGated = true;
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.stop();
  });

  const commit = (index: number): GatedSharedStore['held'][number] => {
    const held = worker.store.held[index];
    if (held === undefined) throw new Error(`commit ${index} was not sent`);
    return held;
  };
  const sent = (count: number): Promise<void> => until(() => worker.store.held.length === count);

  /** Two commits in flight: a write to one tree, then a thought in the other. */
  async function overlap(): Promise<void> {
    noting(ended, 'one', write(worker, ONE, 'w'));
    await sent(1);
    noting(ended, 'other', think(worker, OTHER, 't'));
    await sent(2);
  }

  test('E1: has no tree of that commit, and ends after it', async () => {
    await overlap();
    noting(ended, 'later', think(worker, ONE, 'later'));
    expect([commit(0).tree_ids, commit(1).tree_ids]).toEqual([[ONE], [OTHER]]);
    commit(1).write();
    await turns(20);
    expect([ended, worker.store.held.length]).toEqual([[], 2]);
    commit(0).write();
    await until(() => ended.length === 2);
    expect(ended).toEqual(['one', 'other']);
    expect(worker.observed.slice(-2)).toEqual([ONE, OTHER]);
    // The result of the write comes first, then the input that waited for its end.
    await sent(3);
    commit(2).write();
    await sent(4);
    commit(3).write();
    await until(() => ended.length === 3);
    expect(worker.world.replies.map(({ input_id }) => input_id)).toEqual(['t', 'w', 'later']);
  });

  test('E2: is not acknowledged, and performs nothing, if that commit fails', async () => {
    noting(ended, 'one', think(worker, ONE, 't'));
    await sent(1);
    noting(ended, 'other', write(worker, OTHER, 'w'));
    await sent(2);
    commit(1).write();
    commit(0).refuse();
    await until(() => ended.length === 2);
    expect(ended.sort()).toEqual(['one rejected', 'other rejected']);
    expect([worker.world.performed, worker.world.replies]).toEqual([[], []]);
    worker.store.isGated = false;
    await worker.engine.restart();
    expect(worker.world.performed).toEqual([]);
    expect(worker.world.settled).toHaveLength(1);
    await think(worker, ONE, 'again');
  });

  test('E2: nothing that it decides after the failure stays in memory or is sent', async () => {
    noting(ended, 'one', think(worker, ONE, 't'));
    await sent(1);
    const { marks } = worker.store;
    const looking: (() => void)[] = [];
    worker.store.marks = async (keys) => {
      await new Promise<void>((go) => looking.push(go));
      return marks(keys);
    };
    noting(ended, 'other', think(worker, OTHER, 't'));
    await until(() => looking.length === 1);
    commit(0).refuse();
    await until(() => ended.length === 1);
    worker.store.marks = marks;
    for (const go of looking) go();
    await turns(20);
    expect([ended.sort(), worker.store.held.length]).toEqual([['one rejected', 'other rejected'], 1]);
    worker.store.isGated = false;
    await worker.engine.restart();
    const before = (await entriesOf(worker.store, OTHER)).length;
    await think(worker, OTHER, 'again');
    expect((await worker.engine.peek(OTHER))?.head.seq).toBe((await entriesOf(worker.store, OTHER)).length);
    expect((await entriesOf(worker.store, OTHER)).length).toBeGreaterThan(before);
  });

  test('E6: that commit is decided again if another worker was faster, and the tick is not', async () => {
    await overlap();
    const other = await openWorker(state);
    await think(other, ONE, 'faster');
    commit(0).write();
    commit(1).write();
    await sent(3);
    expect([ended, commit(2).tree_ids]).toEqual([['other'], [ONE]]);
    expect(worker.world.performed).toEqual([]);
    commit(2).write();
    await until(() => ended.length === 2);
    expect(worker.world.performed).toHaveLength(1);
    const inputs = (await entriesOf(worker.store, OTHER)).filter(
      ({ type, body }) => type === 'input' && 'input_id' in body && body.input_id === 't',
    );
    expect(inputs).toHaveLength(1);
  });

  test('W2: that commit is sent again after it if its answer is lost, and both are acknowledged once', async () => {
    await overlap();
    commit(0).loseAnswer();
    await sent(3);
    expect(commit(2).tree_ids).toEqual([ONE]);
    commit(1).write();
    await turns(20);
    expect(ended).toEqual([]);
    commit(2).write();
    await until(() => ended.length === 2);
    expect([ended, worker.world.performed.length]).toEqual([['one', 'other'], 1]);
  });

  test('W3: does not prolong the time in which effects of that commit start without asking', async () => {
    noting(ended, 'one', write(worker, ONE, 'w'));
    await sent(1);
    worker.clock.elapsed += GUARD_MS + 1;
    noting(ended, 'other', think(worker, OTHER, 't'));
    await sent(2);
    let asked = 0;
    worker.store.isActive = () => {
      asked += 1;
      return Promise.resolve(false);
    };
    commit(0).write();
    commit(1).write();
    await until(() => worker.world.failure !== null);
    expect([asked, worker.world.performed]).toEqual([1, []]);
  });
});
