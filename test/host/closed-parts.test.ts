// A restart of the engine that ends after `close`: closed parts stay closed.

import { describe, expect, test } from '@jest/globals';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { BatchBuilder } from '../../src/engine/tick/batch-builder.js';
import type { HistoryCache } from '../../src/core/ledger/history-cache.js';
import type { LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { ReplayPointRecorder } from '../../src/runtime/ledger/replay-point-recorder.js';
import { RunRecordWriter } from '../../src/runtime/ledger/run-record-writer.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { TreeDriver } from '../fixtures/tree.js';

const log = winstonLog('silent');
const defer = (task: () => void): void => void setImmediate(task);

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

interface Part {
  stop(): void;
  restart(): void;
  close(): Promise<void>;
}

/** Calls around a close, in this order. */
const ORDERS: readonly (readonly [string, readonly (keyof Part)[]])[] = [
  ['after a failure and before its restart', ['stop', 'close', 'restart']],
  ['before a restart', ['close', 'restart']],
  ['before a failure and its restart', ['close', 'stop', 'restart']],
];

async function inOrder(part: Part, order: readonly (keyof Part)[]): Promise<void> {
  for (const step of order) await part[step]();
  await turns();
}

describe.each(ORDERS)('closed %s', (_what, order) => {
  test('S4-08 the writer of run records stops reading', async () => {
    const store = memoryStore();
    let looks = 0;
    const runRecords = { ...store.runRecords, unrecorded: () => ((looks += 1), store.runRecords.unrecorded()) };
    const writer = new RunRecordWriter({
      store: new Proxy<LedgerStore>(store, {
        get: (target, name) => (name === 'runRecords' ? runRecords : (Reflect.get(target, name) as unknown)),
      }),
      ...{ clock: new ManualClock(), log, defer },
    });
    writer.open();
    await inOrder(writer, order.slice(0, -1));
    const before = looks;
    await inOrder(writer, order.slice(-1));
    expect([before > 0, looks - before]).toEqual([true, 0]);
  });

  test('U-06 no more replay points are made', async () => {
    const store = memoryStore();
    let calls = 0;
    const cache = {
      point: () => Promise.resolve(((calls += 1), null)),
      save: () => Promise.resolve(((calls += 1), true)),
    } as Partial<HistoryCache> as HistoryCache;
    const points = new ReplayPointRecorder({ store, cache, clock: new ManualClock(), log, defer, pointEntries: 1 });
    await points.open(() => Promise.reject(new Error('no tree is needed')));
    await inOrder(points, order);
    const driver = new TreeDriver().ready();
    const batch = new BatchBuilder();
    const { tree_id, decisions } = driver;
    const none = { inputs: [], recoveryHint: null, snapshot: null, ended: false };
    batch.add({ tree_id, decisions, ...none, opened: { case_id: null } });
    const built = batch.build(await store.acquire());
    points.onCommitted(built, await store.commit(built), () => null);
    await turns();
    expect(calls).toBe(0);
  });
});
