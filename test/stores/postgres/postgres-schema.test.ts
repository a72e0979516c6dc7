// The text that creates a ledger in PostgreSQL: the files of the folder sql, with their constants.

import { readdirSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { CHUNK_BYTES, createLedgerSql, WORKER_LOCK } from '../../../src/stores/postgres/postgres-schema.js';

const SQL = createLedgerSql();

test('every file of the folder is part of the text, and every constant has its value', () => {
  const files = readdirSync('src/stores/postgres/sql');
  const names = [...SQL.matchAll(/^CREATE (?:TABLE|FUNCTION) (\w+)/gm)].map(([, name]) => name);
  expect(files.length).toBeGreaterThan(5);
  expect(names).toEqual(
    expect.arrayContaining(['blocks', 'refuse_change', 'workers', 'store_quotas', 'commit_batch', 'commit_shared']),
  );
  expect(names).toEqual(expect.arrayContaining(['integrate_appends', 'save_run_records', 'end_lost_workers']));
  expect(SQL).not.toContain('${');
  expect(SQL).toContain(String(CHUNK_BYTES));
  expect(SQL).toContain(String(WORKER_LOCK));
});
