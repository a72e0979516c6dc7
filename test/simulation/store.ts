// The store and the external head as one process sees them: real memory stores over a disk that survives every crash,
// with faults at each call.

import type { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { LedgerError } from '../../src/core/errors.js';
import type {
  Batch,
  CommitResult,
  ExternalHeadStore,
  LedgerStore,
  LogHead,
} from '../../src/engine/ports/ledger/ledger-store.js';
import type { RecordBatch } from '../../src/engine/ports/ledger/run-record-table.js';
import { never, type Process } from './process.js';
import type { World } from './world.js';

const READ_ODDS = { held: 0.02, fails: 0.0006, crash: 0.0003 };
const SCAN_ODDS = { ...READ_ODDS, 'fails midway': 0.001 };
const COMMIT_ODDS = {
  held: 0.15,
  'written, but held': 0.08,
  'fails, not written': 0.0012,
  'fails, but written': 0.0012,
  'lock lost': 0.0008,
  'crash before': 0.0012,
  'crash after': 0.0012,
};
const ANCHOR_ODDS = { held: 0.15, fails: 0.0006, 'crash before': 0.0003, 'crash after': 0.0003 };
const SAVE_ODDS = { held: 0.15, busy: 0.1, fails: 0.05, 'crash before': 0.004, 'crash after': 0.004 };
const SCANNED_MAX = 12;

const unavailable = (): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the simulation broke this call' });

/** A store on the world's disk. `inner` is the honest one, or one with a planted bug. */
export function simStore(world: World, process: Process, inner: LedgerStore): LedgerStore {
  const read = async <T>(port: string, work: () => Promise<T>): Promise<T> => {
    await troubled(world, process, port, world.faults.draw(port, READ_ODDS));
    return work();
  };
  const scan = async function* <T>(port: string, work: () => AsyncIterable<T>): AsyncIterable<T> {
    const fault = world.faults.draw(port, SCAN_ODDS);
    if (fault !== 'fails midway') await troubled(world, process, port, fault);
    let left = fault === 'fails midway' ? world.random.below(SCANNED_MAX) : Infinity;
    for await (const item of work()) {
      if (left <= 0) await troubled(world, process, port, 'fails');
      left -= 1;
      yield item;
    }
  };
  return {
    acquire: () => read('store.acquire', () => inner.acquire()),
    reopen: async () => {
      await read('store.reopen', () => inner.reopen());
      process.commitFailed = false;
    },
    head: () => read('store.head', () => inner.head()),
    commit: (batch) => commit(world, process, inner, batch),
    tree: (tree_id, fromSeq) => scan('store.tree', () => inner.tree(tree_id, fromSeq)),
    log: (fromIndex) => scan('store.log', () => inner.log(fromIndex)),
    trees: () => scan('store.trees', () => inner.trees()),
    pending: (limit) => inner.pending(limit),
    integrate: (integration) => read('store.integrate', () => inner.integrate(integration)),
    histories: (places) => scan('store.histories', () => inner.histories(places)),
    treesOf: (case_id) => read('store.treesOf', () => inner.treesOf(case_id)),
    openTrees: () => scan('store.openTrees', () => inner.openTrees()),
    artifactsOf: (place) => read('store.artifactsOf', () => inner.artifactsOf(place)),
    artifact: (case_id, sha256) => read('store.artifact', () => inner.artifact(case_id, sha256)),
    erase: (erasure) => read('store.erase', () => inner.erase(erasure)),
    marks: (keys) => read('store.marks', () => inner.marks(keys)),
    records: inner.records,
    snapshots: {
      load: (tree_id) => read('store.snapshots.load', () => inner.snapshots.load(tree_id)),
    },
    runRecords: {
      unrecorded: () => scan('store.runRecords.unrecorded', () => inner.runRecords.unrecorded()),
      save: (batch) => saveRecords(world, process, inner, batch),
      trees: () => scan('store.runRecords.trees', () => inner.runRecords.trees()),
      recorded: (tree_id) => read('store.runRecords.recorded', () => inner.runRecords.recorded(tree_id)),
      load: (tree_id, run_id) => read('store.runRecords.load', () => inner.runRecords.load(tree_id, run_id)),
      count: (tree_id) => read('store.runRecords.count', () => inner.runRecords.count(tree_id)),
    },
    archives: inner.archives,
    close: () => read('store.close', () => inner.close()),
  };
}

async function troubled(
  world: World,
  process: Process,
  port: string,
  fault: keyof typeof READ_ODDS | 'none',
): Promise<void> {
  if (fault === 'crash') world.crash(process, port);
  if (!process.alive) return never();
  if (fault === 'held') await world.agenda.hold(process, port);
  if (fault !== 'fails') return;
  process.readFailures += 1;
  throw unavailable();
}

/** A failure of these affects no other call, and a retry is allowed. */
async function saveRecords(world: World, process: Process, inner: LedgerStore, batch: RecordBatch): Promise<boolean> {
  const fault = world.faults.draw('store.runRecords.save', SAVE_ODDS);
  if (fault === 'crash before') world.crash(process, 'store.runRecords.save');
  if (isDead(process)) await never();
  if (fault === 'held') await world.agenda.hold(process, 'store.runRecords.save');
  if (fault === 'fails') throw unavailable();
  if (fault === 'busy') return false;
  const saved = await inner.runRecords.save(batch);
  if (fault === 'crash after') world.crash(process, 'store.runRecords.save');
  if (isDead(process)) await never();
  return saved;
}

const isDead = (process: Process): boolean => !process.alive;

async function commit(world: World, process: Process, inner: LedgerStore, batch: Batch): Promise<CommitResult> {
  if (isDead(process)) await never();
  if (process.commitFailed) world.history.report('fail.closed', `process ${process.id} commits after a failure`);
  const fault = world.faults.draw('store.commit', COMMIT_ODDS);
  try {
    if (fault === 'crash before') world.crash(process, 'store.commit');
    if (isDead(process)) await never();
    if (fault === 'held') await world.agenda.hold(process, 'store.commit');
    if (fault === 'lock lost') await takeOver(world.disk);
    if (fault === 'fails, not written') throw unavailable();
    const result = await inner.commit(batch);
    if (fault === 'crash after') world.crash(process, 'store.commit');
    if (isDead(process)) await never();
    if (fault === 'written, but held') await world.agenda.hold(process, 'store.commit');
    if (fault === 'fails, but written') throw unavailable();
    return result;
  } catch (error) {
    process.broken = true;
    process.commitFailed = true;
    throw error;
  }
}

/** Another process assumes that this one is dead, and becomes the writer for a moment. */
async function takeOver(disk: LedgerModel): Promise<void> {
  disk.loseLock();
  const other = modelStore(disk);
  await other.acquire();
  await other.close();
}

/** The external head: a written head survives a crash, a delayed write does not. */
export function simHeadStore(world: World, process: Process): ExternalHeadStore {
  const call = async (port: string, work: () => void): Promise<void> => {
    const fault = world.faults.draw(port, ANCHOR_ODDS);
    if (fault === 'crash before') world.crash(process, port);
    if (!process.alive) return never();
    if (fault === 'held') await world.agenda.hold(process, port);
    if (fault === 'fails') {
      process.broken = true;
      throw unavailable();
    }
    work();
    if (fault !== 'crash after') return;
    world.crash(process, port);
    return never();
  };
  return {
    read: async () => {
      await call('externalHeadStore.read', () => undefined);
      return world.externalHeadStore;
    },
    write: ({ size, root }: Pick<LogHead, 'size' | 'root'>) =>
      call('externalHeadStore.write', () => {
        world.externalHeadStore = { size, root };
      }),
    reopen: () => call('externalHeadStore.reopen', () => undefined),
    close: () => call('externalHeadStore.close', () => undefined),
  };
}
