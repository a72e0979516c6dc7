// Several workers on one ledger: the engine's guarantees for each, and what holds between them.

import { ephemeralKey } from '../../src/stores/keys/session-key.js';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { sharedModelStore } from '../fixtures/ledger-model/model-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { sharedEngine } from '../../src/engine/shared.js';
import { FaultySharedStore } from '../fixtures/faulty-shared-store.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { treeEngineConformance, World } from './tree-engine.conformance.js';
import { turns } from './start-tree.js';
import { workersConformance, type SharedHarness } from './workers.conformance.js';

async function openWorker(state: LedgerModel, clock = new ManualClock(), liveTreesMax = 1_024): Promise<SharedHarness> {
  const store = new FaultySharedStore(sharedModelStore(state));
  const world = new World();
  const externalHeadStore = memoryHeadStore(await store.head());
  const engine = sharedEngine({
    store,
    externalHeadStore,
    clock,
    log: winstonLog('silent'),
    effects: world,
    secrets: ephemeralKey(),
    listeners: world.listeners,
    defer: (task) => void setImmediate(task),
    liveTreesMax,
  });
  await engine.start();
  return {
    engine,
    store,
    externalHeadStore,
    clock,
    world,
    isShared: true,
    crash: async () => {
      await store.close();
      return openWorker(state, new ManualClock(), liveTreesMax);
    },
    stop: async () => {
      await engine.stop();
      await store.close();
    },
  };
}

const alone = (liveTreesMax?: number): Promise<SharedHarness> =>
  openWorker(new LedgerModel({ integrates: false }), new ManualClock(), liveTreesMax);

treeEngineConformance('a worker of a shared ledger in memory', () => alone());
treeEngineConformance('a worker of a shared ledger in memory, every tree put out at once', () => alone(0));

workersConformance('in memory', () => {
  const state = new LedgerModel({ integrates: false });
  return Promise.resolve({
    open: (clock) => openWorker(state, clock),
    openStore: () => Promise.resolve(sharedModelStore(state)),
    kill: (worker) => worker.store.close(),
    cutOff: (worker) => {
      state.workers.cutOff(worker.store.inner);
      return Promise.resolve();
    },
    settle: () => turns(100),
    dispose: () => Promise.resolve(),
  });
});
