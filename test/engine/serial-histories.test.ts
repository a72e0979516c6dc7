// The same serial scenarios give the same entries, byte for byte, on every engine and store of one process.
// PostgreSQL: test/stores/postgres/postgres-histories.campaign.test.ts.

import { describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { sharedModelStore } from '../fixtures/ledger-model/model-store.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { createSqliteStore } from '../../src/stores/sqlite/sqlite-ledger-store.js';
import { embeddedEngine } from '../../src/engine/embedded.js';
import { sharedEngine } from '../../src/engine/shared.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { recordHistory, SCENARIOS, type HistoryGround } from './serial-histories.js';

const GROUNDS: Readonly<Record<string, () => HistoryGround>> = {
  'SQLite, embedded': () => {
    const folder = tempFolder('serial');
    const store = createSqliteStore({ file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') });
    return { store, engine: embeddedEngine };
  },
  'memory, a worker': () => ({ store: sharedModelStore(), engine: sharedEngine }),
};

describe.each(Object.keys(SCENARIOS))('%s', (name) => {
  test.each(Object.keys(GROUNDS))('as in memory: %s', async (ground) => {
    const expected = await recordHistory(name, { store: memoryStore(), engine: embeddedEngine });
    const found = GROUNDS[ground]?.();
    expect(found === undefined ? [] : await recordHistory(name, found)).toEqual(expected);
  });
});
