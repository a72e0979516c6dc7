// The store that test doubles extend has every member of the store below it, also the optional ones.

import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { openCaseKeyTable } from '../../../src/stores/sqlite/content/sqlite-case-key-table.js';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import type { ErasureSeal, LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import { diskFolder } from '../../fixtures/temp-folder.js';

/** The public members of a store, own and inherited. */
function membersOf(store: LedgerStore): readonly string[] {
  const members: string[] = [];
  for (let at: object = store; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    members.push(...Object.getOwnPropertyNames(at).filter((name) => name !== 'constructor'));
  }
  return [...new Set(members)].sort();
}

test('has every member that the SQLite store has', async () => {
  const folder = diskFolder('forwarding');
  const [file, artifactsDir] = [join(folder, 'ledger.db'), join(folder, 'artifacts')];
  const store = createSqliteStore({ file, artifactsDir, caseKeyTable: openCaseKeyTable });
  expect(membersOf(store)).toContain('sealErasures');
  expect(membersOf(new ForwardingStore(store))).toEqual(expect.arrayContaining([...membersOf(store)]));
  await store.close();
});

test('forwards the erasure seal, and lacks that member if the store lacks it', () => {
  const seals: (() => ErasureSeal | null)[] = [];
  const store: LedgerStore = Object.assign(memoryStore(), {
    sealErasures: (seal: () => ErasureSeal | null) => void seals.push(seal),
  });
  const seal = (): null => null;
  new ForwardingStore(store).sealErasures?.(seal);
  expect(seals).toEqual([seal]);
  expect('sealErasures' in new ForwardingStore(memoryStore())).toBe(false);
});
