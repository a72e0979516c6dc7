// Every head that a process reads must extend the one before, or the ledger has fallen back.

import { expect, test } from '@jest/globals';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { Sequencer } from '../../src/engine/sequencer.js';
import { VerifiedHead } from '../../src/engine/head-writer.js';
import type { LogHead } from '../../src/engine/ports/ledger/ledger-store.js';
import { opening, scribeOf, treeId } from '../fixtures/entries.js';
import { ForwardingStore } from '../fixtures/forwarding-store.js';

async function bench() {
  const store = new ForwardingStore(modelStore(new LedgerModel({ integrates: false })));
  const scribe = await scribeOf(store);
  let trees = 0;
  const grow = async (): Promise<LogHead> => {
    await store.commit(scribe.prepare([opening(treeId((trees += 1)))]));
    await new Sequencer(store, () => undefined).run();
    return store.head();
  };
  return { store, grow };
}

test('D15: accepts a head that other processes have extended', async () => {
  const { store, grow } = await bench();
  await grow();
  const verified = new VerifiedHead(store, await store.head());
  for (let round = 0; round < 3; round += 1) {
    await grow();
    const head = await grow();
    expect(await verified.read()).toEqual(head);
  }
});

test('D15: does not read the entries again that the process has integrated itself', async () => {
  const { store, grow } = await bench();
  const verified = new VerifiedHead(store, await store.head());
  store.log = () => {
    throw new Error('the log was read');
  };
  for (let round = 0; round < 3; round += 1) {
    const from = await store.head();
    verified.noteOwn(from, await grow());
  }
  expect((await verified.read()).size).toBe(3);
});

test('D15: refuses a log that has fallen back, is another one, or lacks entries', async () => {
  const { store, grow } = await bench();
  const older = await grow();
  const verified = new VerifiedHead(store, null);
  const newer = await grow();
  await verified.read();
  const refused = { code: 'LEDGER_BELOW_HEAD' };
  store.head = () => Promise.resolve(older);
  await expect(verified.read()).rejects.toMatchObject(refused);
  store.head = () => Promise.resolve({ ...newer, root: 'f'.repeat(64) });
  await expect(verified.read()).rejects.toMatchObject(refused);
  store.head = () => Promise.resolve({ ...newer, size: newer.size + 1 });
  await expect(verified.read()).rejects.toMatchObject(refused);
  store.head = () => Promise.resolve(newer);
  expect(await verified.read()).toEqual(newer);
});
