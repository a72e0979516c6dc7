import { beforeEach, expect, test } from '@jest/globals';
import { memoryStore } from '../../../../src/stores/memory/memory-ledger-store.js';
import { memoryHeadStore } from '../../../../src/stores/memory/memory-head-store.js';
import { checkExternalHead } from '../../../../src/core/ledger/verification/check-external-head.js';
import type { ExternalHeadStore, LedgerStore, LogHead } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { opening, scribeOf, treeId } from '../../../fixtures/entries.js';

let store: LedgerStore;
let earlier: LogHead;
let now: LogHead;
beforeEach(async () => {
  store = memoryStore();
  const scribe = await scribeOf(store);
  await scribe.write(store, [opening(treeId(1))]);
  earlier = await store.head();
  await scribe.write(store, [opening(treeId(2))]);
  now = await store.head();
});

test('D15: opens a ledger that matches its head file, also if a crash left the file behind the ledger', async () => {
  await expect(checkExternalHead(store, memoryHeadStore(now))).resolves.toBeUndefined();
  await expect(checkExternalHead(store, memoryHeadStore(earlier))).resolves.toBeUndefined();
});

test('D15 F17: refuses a ledger that is shorter than its head file states', async () => {
  const externalHeadStore = memoryHeadStore({ size: now.size + 1, root: now.root });
  await expect(checkExternalHead(store, externalHeadStore)).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
});

test('D15: refuses another ledger of the same or a greater length', async () => {
  for (const { size } of [now, earlier]) {
    const externalHeadStore = memoryHeadStore({ size, root: 'f'.repeat(64) });
    await expect(checkExternalHead(store, externalHeadStore)).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
  }
});

test('D15: refuses a ledger whose head file is missing', async () => {
  const none: ExternalHeadStore = { ...memoryHeadStore(now), read: () => Promise.resolve(null) };
  await expect(checkExternalHead(store, none)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
});

test('D15: accepts an empty ledger without a head file, because its creation may have been interrupted', async () => {
  const none: ExternalHeadStore = { ...memoryHeadStore(now), read: () => Promise.resolve(null) };
  await expect(checkExternalHead(memoryStore(), none)).resolves.toBeUndefined();
});
