// A reader that changes nothing: which state of a file it sees, and when it has to open the file again.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { cpSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import {
  openUntouched,
  openUntouchedDatabase,
  type UntouchedFile,
  type UntouchedOptions,
} from '../../../src/stores/sqlite/untouched-file.js';
import { openSqliteStore, createSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { lockWriter } from '../../../src/stores/sqlite/writer-lock.js';
import { opening, scribeOf, treeId } from '../../fixtures/entries.js';
import { folderState } from '../../fixtures/folder-state.js';
import { ledgerFolder, type LedgerFolder } from './sqlite-harness.js';

let at: LedgerFolder;
let opened: { close(): unknown }[];
beforeEach(() => {
  at = ledgerFolder();
  opened = [];
});
afterEach(async () => {
  for (const each of opened.reverse()) await each.close();
  at.remove();
});

/** A database with one row, open for writing. */
function writer(): Database.Database {
  const db = new Database(at.file);
  opened.push(db);
  db.pragma('journal_mode = WAL');
  db.exec('CREATE TABLE IF NOT EXISTS t (x); INSERT INTO t VALUES (1)');
  return db;
}

function reader(file = at.file, options: UntouchedOptions = {}): UntouchedFile {
  const untouched = openUntouched(file, (db) => void db.pragma('query_only = ON'), options);
  opened.push(untouched.db);
  return untouched;
}

const rowsOf = ({ db }: UntouchedFile): unknown => db.prepare('SELECT count(*) FROM t').pluck().get();

/** Copies the files as SIGKILL leaves them: with commits that only the WAL has. */
function killed(rows = 2): string {
  const db = writer();
  for (let row = 2; row <= rows; row += 1) db.exec('INSERT INTO t VALUES (1)');
  mkdirSync(join(at.folder, 'killed'));
  for (const end of ['', '-wal', '-shm']) cpSync(`${at.file}${end}`, join(at.folder, `killed/ledger.db${end}`));
  return join(at.folder, 'killed/ledger.db');
}

describe('openUntouched', () => {
  test('reads a closed file in place, and notices a later writer', () => {
    writer().close();
    const before = folderState(at.folder);
    const untouched = reader();
    expect([rowsOf(untouched), untouched.isCurrent()]).toEqual([1, true]);
    expect(folderState(at.folder)).toEqual(before);
    writer();
    expect(untouched.isCurrent()).toBe(false);
  });

  test('reads the commits in a WAL that no process writes, and changes neither the WAL nor its index', () => {
    const file = killed(5);
    const before = folderState(join(at.folder, 'killed'));
    expect(rowsOf(reader(file))).toBe(5);
    expect(folderState(join(at.folder, 'killed'))).toEqual(before);
  });

  test('refuses a copy above its limit, and says what to do', () => {
    const file = killed();
    const bytes = statSync(file).size + statSync(`${file}-wal`).size;
    expect(rowsOf(reader(file, { copyBytesMax: bytes }))).toBe(2);
    expect(() => reader(file, { copyBytesMax: bytes - 1 })).toThrow(
      /LEDGER_UNAVAILABLE|open the home for writing once/,
    );
  });

  test('reads what a writer commits while it has the lock', () => {
    const lock = lockWriter(at.file);
    opened.push({ close: () => lock.release() });
    const db = writer();
    const untouched = reader();
    expect(rowsOf(untouched)).toBe(1);
    db.exec('INSERT INTO t VALUES (2)');
    expect([rowsOf(untouched), untouched.isCurrent()]).toEqual([2, true]);
  });

  test('takes no lock that could refuse a writer', () => {
    writer().close();
    lockWriter(at.file).release();
    const untouched = reader();
    expect(() => lockWriter(at.file).release()).not.toThrow();
    expect(rowsOf(untouched)).toBe(1);
  });
});

test('a ledger that was opened untouched shows what a later writer commits, also after it closed', async () => {
  const [a, b] = [treeId(1), treeId(2)];
  const first = createSqliteStore(at);
  await (await scribeOf(first)).write(first, [opening(a)]);
  await first.close();
  const before = folderState(at.folder);
  const store = openSqliteStore({ ...at, untouched: openUntouchedDatabase });
  opened.push(store);
  expect((await store.head()).size).toBe(1);
  expect(folderState(at.folder)).toEqual(before);
  const later = openSqliteStore(at);
  await (await scribeOf(later)).write(later, [opening(b)]);
  expect((await store.head()).size).toBe(2);
  await later.close();
  expect((await store.head()).size).toBe(2);
  await expect(store.acquire()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
});
