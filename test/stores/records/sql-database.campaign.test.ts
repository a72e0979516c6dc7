import { existsSync, statSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { sqlDatabase } from '../../../src/stores/records/sql-database.js';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import type { RecordDatabase } from '../../../src/engine/ports/effects/records.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { elsewhereContract } from './sql-elsewhere.contract.js';
import { code, DONE, failedWith, NOTES, postgresUnderTest, sqliteFolder, sqliteUnderTest } from './sql-harness.js';
import { writeOf, type FolderOfRecords } from './sql-harness.js';
import { recordsContract } from './sql-records.contract.js';
import { ledgerFolder } from '../sqlite/sqlite-harness.js';

const server = await startPostgres();
afterAll(() => server?.stop());

recordsContract('a SQLite file', () => sqliteUnderTest());
elsewhereContract('a SQLite file', sqliteUnderTest);
if (server !== null) {
  recordsContract('PostgreSQL', () => postgresUnderTest(server.url));
  elsewhereContract('PostgreSQL', (create) => postgresUnderTest(server.url, create));
}

describe('the file of a SQLite database', () => {
  let at: FolderOfRecords;
  let opened: RecordDatabase[];
  const databaseOf = (url: string, create = false): RecordDatabase => {
    const database = sqlDatabase({ url, create });
    opened.push(database);
    return database;
  };

  beforeEach(() => {
    at = sqliteFolder();
    opened = [];
  });
  afterEach(async () => {
    for (const database of opened) await database.close();
    at.remove();
  });

  test('a missing one is created only with `create`, with mode 0600', async () => {
    const strict = databaseOf(at.url);
    await expect(strict.open([])).rejects.toEqual(code('RECORDS_UNREACHABLE'));
    expect(await strict.write(writeOf({ id: 'n', text: '' }))).toEqual(failedWith('IO_ERROR'));
    expect(await strict.settle(writeOf({ id: 'n', text: '' }))).toEqual({ status: 'unknown' });
    expect(existsSync(at.file)).toBe(false);
    await databaseOf(at.url, true).open([NOTES]);
    expect(statSync(at.file).mode & 0o777).toBe(0o600);
  });

  test('a ledger, or a file that is not a database, is RECORDS_UNREACHABLE and not touched', async () => {
    const ledger = ledgerFolder();
    await createSqliteStore(ledger).close();
    await expect(databaseOf(`sqlite:${ledger.file}`, true).open([NOTES])).rejects.toEqual(code('RECORDS_UNREACHABLE'));
    ledger.remove();
    writeFileSync(at.file, 'no database '.repeat(100));
    await expect(databaseOf(at.url, true).open([NOTES])).rejects.toEqual(code('RECORDS_UNREACHABLE'));
  });

  test('while another process writes, a write has failed and a settlement is unknown', async () => {
    const database = databaseOf(at.url, true);
    await database.open([NOTES]);
    const other = new Database(at.file);
    other.exec('BEGIN IMMEDIATE');
    const write = writeOf({ id: 'n', text: '' });
    expect(await database.write(write)).toEqual(failedWith('IO_ERROR'));
    expect(await database.settle(write)).toEqual({ status: 'unknown' });
    other.close();
    expect(await database.write(write)).toEqual(DONE);
  });

  test('an unsupported URL is a USAGE error', () => {
    for (const url of ['', 'sqlite:', 'sqlite::memory:', 'mysql://x', '/a/path', 'sqlite:a\0b', ' postgres://x']) {
      expect(() => sqlDatabase({ url })).toThrow(code('USAGE'));
    }
  });
});
