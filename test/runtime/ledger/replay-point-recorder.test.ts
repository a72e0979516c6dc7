// The recorder follows commits in one go, and makes the same points as if it followed each of them.

import { beforeEach, expect, test } from '@jest/globals';
import type { HistoryCache, HistorySnapshot, ReplayPoint } from '../../../src/core/ledger/history-cache.js';
import type { Batch, CommitResult } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { Decision } from '../../../src/kernel/decision.js';
import { ReplayPointBuilder } from '../../../src/kernel/replay/ledger-state.js';
import { ReplayPointRecorder } from '../../../src/runtime/ledger/replay-point-recorder.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { TreeDriver } from '../../fixtures/tree.js';

let points: ReplayPoint[];
let snapshots: HistorySnapshot[];
let recorder: ReplayPointRecorder;
let size: number;

const open = async (pointEntries: number): Promise<void> => {
  const cache = {
    point: () => Promise.resolve(null),
    save: (point: ReplayPoint, more: readonly HistorySnapshot[]) => {
      points.push(point);
      snapshots.push(...more);
      return Promise.resolve(true);
    },
  } as Partial<HistoryCache> as HistoryCache;
  const defer = (task: () => void): void => void setImmediate(task);
  const log = winstonLog('silent');
  const clock = new ManualClock();
  recorder = new ReplayPointRecorder({ store: memoryStore(), cache, clock, log, defer, pointEntries });
  await recorder.open(() => Promise.reject(new Error('no tree is needed')));
};

beforeEach(() => {
  [points, snapshots, size] = [[], [], 0];
});

/** Commits decisions of a tree, which is the only one in memory. */
function commit(driver: TreeDriver, decisions: readonly Decision[]): void {
  const entries = decisions.flatMap((decision) => decision.entries);
  const batch = { epoch: 1, trees: [{ entries }] } as unknown as Batch;
  const result = { head: { size: size + entries.length }, first_log_indexes: [size] } as unknown as CommitResult;
  recorder.onCommitted(batch, result, (tree_id) => (tree_id === driver.tree_id ? driver.tree : null));
  size += entries.length;
}

/** Commits further steps up to a size of the log, and waits until a point can be stored. */
async function commitUntil(driver: TreeDriver, until: number): Promise<void> {
  for (let step = 1; size < until; step += 1) {
    const before = driver.decisions.length;
    driver.act('WRITE_FILE', { path: '/sandbox/note.md', content: 'x' });
    driver.done(`${driver.tree_id}.1.${step}`);
    commit(driver, driver.decisions.slice(before));
  }
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('U-06: a point of many commits is the point of a recorder that followed each of them', async () => {
  await open(400);
  const driver = new TreeDriver().ready();
  commit(driver, driver.decisions);
  await commitUntil(driver, 400);
  const builder = new ReplayPointBuilder();
  for (const [log_index, { entry }] of driver.entries.entries()) builder.recordEntry(entry, log_index);
  builder.advanceTo(size, driver.entries.at(-1)?.leaf_hash ?? '');
  builder.placeTree(driver.tree);
  expect(snapshots).toEqual([builder.createSnapshot(driver.tree)]);
  expect(points).toEqual([builder.createPoint()]);
});

test('U-06: the snapshot of an evicted tree has the size of the last commit', async () => {
  await open(200);
  const driver = new TreeDriver().ready();
  commit(driver, driver.decisions);
  await commitUntil(driver, 100);
  const evicted = size;
  recorder.onEvict(driver.tree);
  const other = new TreeDriver({ tree_id: 'run_other' }).ready();
  commit(other, other.decisions);
  await commitUntil(other, 200);
  expect(points.map((point) => point.size)).toEqual([size]);
  expect(snapshots.map((snapshot) => [snapshot.tree_id, snapshot.size])).toEqual([
    [driver.tree_id, evicted],
    [other.tree_id, size],
  ]);
});
