// The head file of a store whose commits leave their entries pending: in any order of responses, the file has the head
// of the log once no work is in flight.

import { expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { HeadWriter } from '../../src/engine/head-writer.js';
import { Sequencer } from '../../src/engine/sequencer.js';
import { LedgerError } from '../../src/core/errors.js';
import type { CommitResult, LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { opening, scribeOf, treeId } from '../fixtures/entries.js';
import { ForwardingStore } from '../fixtures/forwarding-store.js';

const PENDING: CommitResult = { head: null, first_log_indexes: null };

async function bench(over: (store: LedgerStore) => Partial<LedgerStore> = () => ({}), integrates = false) {
  const inner = modelStore(new LedgerModel({ integrates }));
  const store: LedgerStore = Object.assign(new ForwardingStore(inner), over(inner));
  const scribe = await scribeOf(store);
  const externalHeadStore = memoryHeadStore(await store.head());
  const failures: unknown[] = [];
  const make = () =>
    new HeadWriter({ store, externalHeadStore, known: null, onFailed: (error) => void failures.push(error) });
  const write = (n: number) => store.commit(scribe.prepare([opening(treeId(n))]));
  return { store, externalHeadStore, failures, make, write };
}

test.each(Array.from({ length: 48 }, (_, turns) => turns))(
  'D15: a commit %i turns after another one is in the written head',
  async (turns) => {
    const { store, externalHeadStore, failures, make, write } = await bench();
    const heads = make();
    await heads.start();
    await write(1);
    heads.onCommitted(PENDING, true);
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    await write(2);
    heads.onCommitted(PENDING, true);
    await heads.stop(() => false);
    const { size, root } = await store.head();
    expect(size).toBe(2);
    expect(await externalHeadStore.read()).toEqual({ size, root });
    expect(failures).toEqual([]);
  },
);

test('D15: an integration with a lost response is in the head that is written', async () => {
  let lost = 0;
  const { store, externalHeadStore, failures, make, write } = await bench((inner) => ({
    integrate: async (integration) => {
      const answer = await inner.integrate(integration);
      if ((lost += 1) > 1) return answer;
      throw new LedgerError({ code: 'LEDGER_COMMIT_UNKNOWN', message: 'the connection broke' });
    },
  }));
  const heads = make();
  await heads.start();
  await write(1);
  heads.onCommitted(PENDING, true);
  await heads.stop(() => false);
  const { size, root } = await store.head();
  expect([size, lost]).toEqual([1, 1]);
  expect(await externalHeadStore.read()).toEqual({ size, root });
  expect(failures).toEqual([]);
});

test('D15: appends that an earlier process left pending are in the head that a stop writes', async () => {
  const { store, externalHeadStore, make, write } = await bench();
  await write(1);
  const heads = make();
  await heads.start();
  await heads.stop(() => false);
  expect((await externalHeadStore.read())?.size).toBe(1);
  expect((await store.head()).size).toBe(1);
});

test('D15: a confirmed head covers what was integrated, and is in the head file, for every store', async () => {
  for (const integrates of [false, true]) {
    const { store, externalHeadStore, make, write } = await bench(() => ({}), integrates);
    const heads = make();
    await heads.start();
    heads.onCommitted(await write(1), false);
    await heads.waitUntilIntegrated();
    expect((await externalHeadStore.read())?.size).toBe(0);
    const { size, root } = await store.head();
    expect(await heads.confirm()).toMatchObject({ size: 1, root });
    expect(await externalHeadStore.read()).toEqual({ size, root });
    await heads.stop(() => false);
  }
});

test('D15: no head is confirmed when the pending appends cannot be integrated', async () => {
  const cause = new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the disk of the database is full' });
  const { store, externalHeadStore, failures, make, write } = await bench(() => ({
    integrate: () => Promise.reject(cause),
  }));
  const heads = make();
  await heads.start();
  await write(1);
  heads.onCommitted(PENDING, true);
  expect(await heads.confirmOwn()).toBeNull();
  // The head itself could be read all the time.
  expect((await store.head()).size).toBe(0);
  expect(failures).toContain(cause);
  await heads.stop(() => true);
  expect((await externalHeadStore.read())?.size).toBe(0);
});

test('D15: a confirmed head is in the head file if an earlier process ended before it wrote that head', async () => {
  for (const integrates of [false, true]) {
    const { store, externalHeadStore, make, write } = await bench(() => ({}), integrates);
    await write(1);
    if (!integrates) await make().start();
    expect((await externalHeadStore.read())?.size).toBe(0);
    const heads = make();
    await heads.start();
    const { size, root } = await store.head();
    expect(await heads.confirm()).toMatchObject({ size: 1, root });
    expect(await externalHeadStore.read()).toEqual({ size, root });
    await heads.stop(() => false);
  }
});

test('D15: one run of the sequencer reads the pending appends once, unless there are more than it integrates at once', async () => {
  let reads = 0;
  const { store, write } = await bench((inner) => ({
    pending: (limit) => {
      reads += 1;
      return inner.pending(limit);
    },
  }));
  for (const n of [1, 2, 3]) await write(n);
  await new Sequencer(store, () => undefined).run();
  expect([(await store.head()).size, reads]).toEqual([3, 1]);
});
