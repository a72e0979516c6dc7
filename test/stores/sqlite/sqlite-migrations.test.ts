// The migrations of a SQLite ledger, with a planted second format.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { newestFormat, pendingMigrations } from '../../../src/stores/ledger/migrations.js';
import { openDatabase } from '../../../src/stores/sqlite/sqlite-database.js';
import { openUntouchedDatabase, sqliteFormat } from '../../../src/stores/sqlite/untouched-file.js';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { MIGRATIONS, type SqliteMigration } from '../../../src/stores/sqlite/sqlite-schema.js';
import { lockWriter } from '../../../src/stores/sqlite/writer-lock.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, audited, opening, scribeOf, treeId } from '../../fixtures/entries.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const A = treeId(1);
const code = (name: string) => expect.objectContaining({ code: name });
/** The second format: a table with one row for each mark. */
const SECOND: SqliteMigration = {
  from: 1,
  to: 2,
  apply: (db) =>
    void db.exec(`CREATE TABLE planted (mark_no INTEGER PRIMARY KEY) STRICT;
      INSERT INTO planted SELECT mark_no FROM marks`),
};
const PLANTED = [...MIGRATIONS, SECOND];
/** Fails after it has changed the tables. */
const FAILING: readonly SqliteMigration[] = [
  ...MIGRATIONS,
  {
    ...SECOND,
    apply: (db) => {
      SECOND.apply(db);
      db.exec('CREATE TABLE planted (x)');
    },
  },
];

let at: LedgerFolder;
let opened: LedgerStore[];
const keep = (store: LedgerStore): LedgerStore => {
  opened.push(store);
  return store;
};
const entriesOf = async (store: LedgerStore) => (await all(store.log())).map(({ text }) => text);

beforeEach(async () => {
  at = ledgerFolder();
  opened = [];
  const store = createSqliteStore(at);
  const scribe = await scribeOf(store);
  await scribe.write(store, [opening(A), audited(A)], { ended: [A] });
  await store.close();
});
afterEach(async () => {
  for (const store of opened) await store.close();
  at.remove();
});

test('the migrations of this version lead to format 1', () => {
  expect(newestFormat(MIGRATIONS)).toBe(1);
  expect(sqliteFormat(at.file)).toBe(1);
});

test('migrations that do not follow each other are refused', () => {
  expect(() => pendingMigrations([...MIGRATIONS, { ...SECOND, from: 2, to: 3 }], 1)).toThrow(code('INVARIANT'));
});

describe('a ledger of format 1, opened by code that knows format 2', () => {
  test('is migrated by an opening for writing, keeps its entries, and goes on', async () => {
    const before = await entriesOf(keep(openSqliteStore({ ...at, readOnly: true })));
    const store = keep(openSqliteStore({ ...at, migrations: PLANTED }));
    expect(sqliteFormat(at.file)).toBe(2);
    expect(withDatabase(at.file, (db) => db.prepare('SELECT * FROM planted').all())).toEqual([{ mark_no: 0 }]);
    expect(await entriesOf(store)).toEqual(before);
    const scribe = await scribeOf(store);
    await scribe.write(store, [opening(treeId(2))]);
    expect(await entriesOf(store)).toHaveLength(before.length + 1);
  });

  test('is refused by an opening for reading, which changes nothing', () => {
    const bytes = readFileSync(at.file);
    for (const access of [{ readOnly: true }, { untouched: openUntouchedDatabase }]) {
      const open = () => openSqliteStore({ ...at, ...access, migrations: PLANTED });
      expect(open).toThrow(code('LEDGER_UNSUPPORTED'));
      expect(open).toThrow(/has format 1.*reads 2: open it for writing once/);
    }
    expect(readFileSync(at.file).equals(bytes)).toBe(true);
  });

  test('stays as it is while another process writes', () => {
    const lock = lockWriter(at.file);
    expect(() => openDatabase(at.file, false, PLANTED)).toThrow(code('LEDGER_LOCKED'));
    lock.release();
    expect(sqliteFormat(at.file)).toBe(1);
  });

  test('stays as it is if the migration fails in the middle', async () => {
    expect(() => openDatabase(at.file, false, FAILING)).toThrow(code('LEDGER_TAMPERED'));
    expect(sqliteFormat(at.file)).toBe(1);
    expect(withDatabase(at.file, (db) => db.pragma('table_info(planted)'))).toEqual([]);
    expect(await entriesOf(keep(openSqliteStore(at)))).toHaveLength(2);
  });

  test('is LEDGER_TAMPERED, and not migrated, if its tables were changed', () => {
    withDatabase(at.file, (db) => void db.exec('DROP INDEX first_blocks'));
    expect(() => openDatabase(at.file, false, PLANTED)).toThrow(code('LEDGER_TAMPERED'));
    expect(sqliteFormat(at.file)).toBe(1);
  });
});

test('code that knows format 1 refuses a ledger of format 2, and a writer that is open when it is migrated', async () => {
  const open = keep(openSqliteStore(at));
  openDatabase(at.file, false, PLANTED).close();
  for (const readOnly of [true, false])
    expect(() => openSqliteStore({ ...at, readOnly })).toThrow(/has format 2.*knows 1/);
  await expect(open.acquire()).rejects.toEqual(code('LEDGER_UNSUPPORTED'));
});

test('a new ledger has the newest format at once', async () => {
  const other = ledgerFolder();
  await createSqliteStore({ ...other, migrations: PLANTED }).close();
  expect(sqliteFormat(other.file)).toBe(2);
  other.remove();
});
