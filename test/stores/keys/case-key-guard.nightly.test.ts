import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, describe } from '@jest/globals';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { execute } from '../postgres/postgres-harness.js';
import { testKeyFolderPairs } from './key-folder-pairs.js';

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

(server === null ? describe.skip : describe)('the key folder of a ledger in PostgreSQL', () => {
  const url = server?.url ?? '';
  let folder: string;
  beforeEach(() => {
    folder = tempFolder('key-folders');
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true, force: true });
    const drop = [1, 2].map((n) => `DROP SCHEMA IF EXISTS ledger_${n} CASCADE`);
    await execute(url, `SET client_min_messages TO error; ${drop.join('; ')}`);
  });

  testKeyFolderPairs(
    () => ({
      create: (schema, caseKeysDir) => createPostgresStore({ url, schema, caseKeysDir }),
      open: (schema, caseKeysDir, readOnly = false) => openPostgresStore({ url, schema, caseKeysDir, readOnly }),
    }),
    () => folder,
  );
});
