import { join } from 'node:path';
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe } from '@jest/globals';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { openUntouchedDatabase } from '../../../src/stores/sqlite/untouched-file.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { testKeyFolderPairs } from './key-folder-pairs.js';

describe('the key folder of a ledger in SQLite', () => {
  let folder: string;
  beforeEach(() => {
    folder = tempFolder('key-folders');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const place = (ledger: string, caseKeysDir: string) => ({
    file: join(folder, `${ledger}.db`),
    artifactsDir: join(folder, `${ledger}-artifacts`),
    caseKeysDir,
  });
  testKeyFolderPairs(
    () => ({
      create: (ledger, keys) => Promise.resolve(createSqliteStore(place(ledger, keys))),
      open: (ledger, keys, untouched = false) =>
        Promise.resolve().then(() =>
          openSqliteStore({ ...place(ledger, keys), ...(untouched && { untouched: openUntouchedDatabase }) }),
        ),
    }),
    () => folder,
  );
});
