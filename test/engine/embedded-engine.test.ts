import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { ephemeralKey } from '../../src/stores/keys/session-key.js';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { createSqliteStore, openSqliteStore } from '../../src/stores/sqlite/sqlite-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { embeddedEngine } from '../../src/engine/embedded.js';
import type { LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { FaultyStore } from '../fixtures/faulty-store.js';
import { Scheduler, slowStore } from '../fixtures/slow-store.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { treeEngineConformance, World, type EngineHarness } from './tree-engine.conformance.js';

/** `again` returns the store as the next process would open it; `dispose` ends the test. */
async function start(
  store: LedgerStore,
  liveTreesMax: number,
  again: () => Promise<LedgerStore>,
  dispose: () => void,
): Promise<EngineHarness> {
  const faulty = new FaultyStore(store);
  const clock = new ManualClock();
  const world = new World();
  const externalHeadStore = memoryHeadStore(await store.head());
  const engine = embeddedEngine({
    store: faulty,
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
    store: faulty,
    externalHeadStore,
    clock,
    world,
    crash: async () => start(await again(), liveTreesMax, again, dispose),
    stop: async () => {
      await engine.stop();
      await store.close();
      dispose();
    },
  };
}

function inMemory(liveTreesMax: number, open = (state: LedgerModel) => modelStore(state), integrates = true) {
  const state = new LedgerModel({ integrates });
  let latest = open(state);
  const again = async (): Promise<LedgerStore> => {
    await latest.close();
    latest = open(state);
    return latest;
  };
  return start(latest, liveTreesMax, again, () => undefined);
}

function overSlowStore(seed: number, losses: number): Promise<EngineHarness> {
  const scheduler = new Scheduler(seed);
  return inMemory(1_024, (state) => slowStore(state, { scheduler, losses }), false);
}

function onDisk(): Promise<EngineHarness> {
  const folder = tempFolder('engine');
  mkdirSync(join(folder, 'artifacts'));
  const options = { file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') };
  let latest = createSqliteStore(options);
  const again = async (): Promise<LedgerStore> => {
    // A dead process has no lock; what it had not committed is lost.
    await latest.close();
    latest = openSqliteStore(options);
    return latest;
  };
  return start(latest, 1_024, again, () => rmSync(folder, { recursive: true, force: true }));
}

treeEngineConformance('embedded over memory', () => inMemory(1_024));
treeEngineConformance('embedded over memory, every tree put out at once', () => inMemory(0));
treeEngineConformance('embedded over SQLite', onDisk);
for (const seed of [1, 2, 3]) {
  treeEngineConformance(`embedded over a slow store, seed ${seed}`, () => overSlowStore(seed, 0));
  treeEngineConformance(`embedded over a slow store that loses answers, seed ${seed}`, () => overSlowStore(seed, 0.2));
}
