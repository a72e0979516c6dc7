// Records in the ledger's own database: they do what any record database does, and rows exist exactly if the ledger
// says so.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openSqliteRecords } from '../../../src/stores/records/sqlite-ledger-records.js';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { LedgerRecords } from '../../../src/engine/ports/effects/records.js';
import { all, audited, content, opening, proposed, scribeOf, treeId, type Scribe } from '../../fixtures/entries.js';
import {
  code,
  DONE,
  failedWith,
  NOTES,
  readOf,
  targetOf,
  TEXT,
  writeOf,
  type RecordsUnderTest,
} from './sql-harness.js';
import { recordsContract } from './sql-records.contract.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from '../sqlite/sqlite-harness.js';

const A = treeId(1);

recordsContract("the ledger's own database", async (): Promise<RecordsUnderTest> => {
  const at = ledgerFolder();
  const store = createSqliteStore({ ...at, records: openSqliteRecords });
  const scribe = await scribeOf(store);
  const records = ownOf(store);
  const named = (sql: string): string => sql.replaceAll('TABLE_NAME', 'records_notes');
  const commit = () => scribe.write(store, []).then(() => undefined);
  return {
    dialect: 'sqlite',
    open: (targets) => Promise.resolve().then(() => records.open(targets)),
    write: (write) => Promise.resolve(records.write(write)),
    read: (read) => Promise.resolve(records.read(read)),
    exec: async (sql) => {
      await commit();
      withDatabase(at.file, (db) => void db.exec(named(sql)));
    },
    rows: (sql) => Promise.resolve(withDatabase(at.file, (db) => db.prepare(named(sql)).all())),
    commit,
    close: async () => {
      await store.close();
      at.remove();
    },
  };
});

function ownOf({ records }: LedgerStore): LedgerRecords {
  if (records === null) throw new Error('this store has no records');
  return records;
}

describe('records and the ledger are one transaction', () => {
  let at: LedgerFolder;
  let store: LedgerStore;
  let scribe: Scribe;
  let records: LedgerRecords;

  const note = (id: string) => records.write(writeOf({ id, text: '' }));
  /** The state that another process sees. */
  const durable = () =>
    withDatabase(at.file, (db) => db.prepare('select id from records_notes order by id').pluck().all());
  const exec = (sql: string) => withDatabase(at.file, (db) => void db.exec(sql));

  beforeEach(async () => {
    at = ledgerFolder();
    store = createSqliteStore({ ...at, records: openSqliteRecords });
    scribe = await scribeOf(store);
    records = ownOf(store);
    records.open([NOTES]);
  });
  afterEach(async () => {
    await store.close();
    at.remove();
  });

  test('rows become durable with the batch, and not before', async () => {
    expect(records.dirty).toBe(false);
    expect([note('a'), note('b')]).toEqual([DONE, DONE]);
    expect(records.dirty).toBe(true);
    expect(durable()).toEqual([]);
    expect(records.read(readOf())).toMatchObject({ result: { records: [{ id: 'a' }, { id: 'b' }] } });
    await scribe.write(store, [opening(A)]);
    expect(records.dirty).toBe(false);
    expect(durable()).toEqual(['a', 'b']);
    expect(await all(store.log())).toHaveLength(1);
    await scribe.write(store, [audited(A)]);
    expect(await all(store.log())).toHaveLength(2);
  });

  test('`abandon` rolls back rows written since the last commit', async () => {
    note('a');
    await scribe.write(store, [opening(A)]);
    note('b');
    records.abandon();
    records.abandon();
    expect(records.dirty).toBe(false);
    await scribe.write(store, [audited(A)]);
    expect(durable()).toEqual(['a']);
    expect(note('b')).toEqual(DONE);
  });

  test('tables are created before rows are pending, and not while they are', () => {
    note('a');
    expect(() => records.open([{ ...NOTES, name: 'others' }])).toThrow(/while rows/);
    records.open([NOTES]);
    expect(records.dirty).toBe(true);
  });

  test('a refused row is rolled back alone', async () => {
    expect(records.write(writeOf({ id: 'x', text: 7 }))).toEqual(failedWith('INVALID_RECORD'));
    expect(records.dirty).toBe(false);
    note('a');
    expect(note('a')).toEqual(failedWith('ALREADY_EXISTS'));
    expect(records.write(writeOf({ id: 'x', text: 7 }))).toEqual(failedWith('INVALID_RECORD'));
    expect(records.write(writeOf({ id: 'x' }, { target: { ...NOTES, name: 'Wrong' } }))).toEqual(
      failedWith('INTERNAL'),
    );
    note('b');
    await scribe.write(store, [opening(A)]);
    expect(durable()).toEqual(['a', 'b']);
  });

  test('a batch that another writer has preceded leaves no row', async () => {
    const late = scribe.prepare([opening(A)]);
    await store.acquire();
    note('a');
    await expect(store.commit(late)).rejects.toEqual(code('LEDGER_CONFLICT'));
    expect(records.dirty).toBe(false);
    expect([durable(), await all(store.log())]).toEqual([[], []]);
  });

  test('an invalid batch leaves no row', async () => {
    note('a');
    const batch = scribe.prepare([opening(A)]);
    const trees = batch.trees.map((append) => ({ ...append, entries: [] }));
    await expect(store.commit({ ...batch, trees })).rejects.toThrow();
    expect(records.dirty).toBe(false);
    expect(durable()).toEqual([]);
  });

  for (const [what, breakage] of [
    ['an insert', `CREATE TRIGGER breakage BEFORE INSERT ON blocks BEGIN SELECT RAISE(ABORT, 'broken'); END`],
    [
      'the COMMIT',
      `CREATE TABLE a (x INTEGER PRIMARY KEY);
       CREATE TABLE b (x INTEGER REFERENCES a DEFERRABLE INITIALLY DEFERRED);
       CREATE TRIGGER breakage AFTER INSERT ON blocks BEGIN INSERT INTO b VALUES (1); END`,
    ],
  ] as const) {
    test(`a commit that fails at ${what} leaves no row, and the store commits nothing more until it is reopened`, async () => {
      exec(breakage);
      note('a');
      await expect(scribe.write(store, [opening(A)])).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
      expect(durable()).toEqual([]);
      expect(note('b')).toEqual(failedWith('IO_ERROR'));
      records.abandon();
      await expect(scribe.write(store, [opening(A)])).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
      exec('DROP TRIGGER breakage; DROP TABLE IF EXISTS b; DROP TABLE IF EXISTS a');
      await store.reopen();
      scribe.epoch = await store.acquire();
      expect(note('c')).toEqual(DONE);
      await scribe.write(store, [opening(A)]);
      expect(durable()).toEqual(['c']);
    });
  }

  test('an error that rolls back the whole transaction leaves no row, and prevents further commits', async () => {
    exec(`CREATE TRIGGER all_back BEFORE INSERT ON records_notes WHEN NEW.id = 'b'
          BEGIN SELECT RAISE(ROLLBACK, 'gone'); END`);
    expect([note('a'), note('b'), note('c')]).toEqual([DONE, failedWith('INVALID_RECORD'), failedWith('IO_ERROR')]);
    await expect(scribe.write(store, [opening(A)])).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    expect([durable(), await all(store.log())]).toEqual([[], []]);
  });

  test('closing rolls back pending rows, and so does acquiring again', async () => {
    note('a');
    scribe = await scribeOf(store);
    expect(records.dirty).toBe(false);
    note('b');
    await store.close();
    expect(durable()).toEqual([]);
    expect(() => note('c')).toThrow(code('LEDGER_CONFLICT'));
    records.abandon();
  });

  test('a search by hash does not commit pending rows', async () => {
    await scribe.write(store, [opening(A), proposed(A, content('raw_payload', 'p'))]);
    note('a');
    const { sha256 } = await import('../../../src/core/contract/hash.js');
    expect(await store.artifact('case-0001', sha256('p'))).not.toBeNull();
    expect(durable()).toEqual([]);
    await scribe.write(store, [audited(A)]);
    expect(durable()).toEqual(['a']);
  });

  test('a target cannot reach a table of the ledger, and a reader has no records', async () => {
    const targets = ['blocks', 'meta', 'marks'].map((name) => targetOf({ id: TEXT }, { name }));
    records.open(targets);
    for (const target of targets) expect(records.write(writeOf({ id: 'x' }, { target }))).toEqual(DONE);
    await scribe.write(store, [opening(A)]);
    expect(withDatabase(at.file, (db) => db.prepare('select size from meta').pluck().get())).toBe(1);
    expect(withDatabase(at.file, (db) => db.prepare('select id from records_meta').pluck().all())).toEqual(['x']);
    const reader = openSqliteStore({ ...at, readOnly: true });
    expect(reader.records).toBeNull();
    await reader.close();
    for (const name of ['a.b', 'sqlite_schema', 'main.blocks']) {
      expect(() => records.open([{ ...NOTES, name }])).toThrow(code('RECORDS_TARGET'));
    }
  });

  test('a ledger with records opens again; a trigger or view added to their tables is LEDGER_TAMPERED', async () => {
    note('a');
    await scribe.write(store, [opening(A)]);
    await store.close();
    store = openSqliteStore({ ...at, records: openSqliteRecords });
    await store.close();
    for (const [make, drop] of [
      ['CREATE TRIGGER records_t AFTER INSERT ON records_notes BEGIN SELECT 1; END', 'DROP TRIGGER records_t'],
      ['CREATE VIEW records_v AS SELECT 1', 'DROP VIEW records_v'],
      ['CREATE TABLE recordsxy (x)', 'DROP TABLE recordsxy'],
    ] as const) {
      exec(make);
      expect(() => openSqliteStore(at)).toThrow(code('LEDGER_TAMPERED'));
      exec(drop);
    }
    store = openSqliteStore({ ...at, records: openSqliteRecords });
    scribe = await scribeOf(store);
    records = ownOf(store);
    records.open([NOTES]);
    expect(records.read(readOf())).toMatchObject({ result: { records: [{ id: 'a' }] } });
  });
});
