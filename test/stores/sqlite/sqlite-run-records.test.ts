// Run records in a SQLite ledger: their triggers, and that they do not affect the ledger.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CaseKeys } from '../../../src/stores/keys/case-keys.js';
import { openSqliteRecords } from '../../../src/stores/records/sqlite-ledger-records.js';
import type { SqliteConnection } from '../../../src/stores/sqlite/sqlite-binding.js';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { componentsOf, ledgerFile } from '../../../src/stores/sqlite/sqlite-medium.js';
import { SqliteWriter } from '../../../src/stores/sqlite/sqlite-writer.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { WrittenRecord } from '../../../src/engine/ports/ledger/run-record-table.js';
import { all, audited, opening, scribeOf, treeId, type Scribe } from '../../fixtures/entries.js';
import { NOTES, writeOf } from '../records/sql-harness.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const [A, B] = [treeId(1), treeId(2)];
const code = (name: string) => expect.objectContaining({ code: name });
const rowOf = (tree_id: string): WrittenRecord => ({ tree_id, run_id: tree_id, text: '{}' });

let at: LedgerFolder;
let store: LedgerStore;
let scribe: Scribe;
let opened: LedgerStore[];
const keep = (one: LedgerStore): LedgerStore => {
  opened.push(one);
  return one;
};
const exec = (sql: string) => withDatabase(at.file, (db) => void db.exec(sql));

beforeEach(async () => {
  at = ledgerFolder();
  opened = [];
  store = keep(createSqliteStore({ ...at, records: openSqliteRecords }));
  scribe = await scribeOf(store);
  await scribe.write(store, [opening(A), opening(B)], { ended: [A] });
});
afterEach(async () => {
  for (const one of opened) await one.close();
  at.remove();
});

describe('S4-70: the tables reject changes to the records of a recorded tree', () => {
  const RECORD = `SELECT tree_id, run_id, '[]' FROM run_records`;
  test.each([
    ['another record', `INSERT INTO run_records VALUES ('${A}', '${A}.7', '{}')`],
    ['a record for another', `INSERT OR REPLACE INTO run_records ${RECORD}`],
    ['a record with another content', `UPDATE run_records SET record = '[]'`],
    ['a record of another run', `UPDATE run_records SET run_id = run_id || 'x'`],
    ['no record', 'DELETE FROM run_records'],
    ['another end', 'UPDATE recorded_trees SET seq = seq + 1'],
    ['an end for another', `INSERT OR REPLACE INTO recorded_trees VALUES ('${A}', 0, 9)`],
    ['no end', 'DELETE FROM recorded_trees'],
  ])('%s', async (_what, sql) => {
    await store.runRecords.save({ records: [rowOf(A)], trees: [{ tree_id: A, place: 0, seq: 1 }] });
    for (const recursive of ['ON', 'OFF']) {
      expect(() => exec(`PRAGMA recursive_triggers = ${recursive}; ${sql}`)).toThrow(/never change/);
    }
    expect(await store.runRecords.load(A, A)).toBe('{}');
  });
});

describe('run records and the ledger have one writer', () => {
  const BATCH = { records: [rowOf(A)], trees: [{ tree_id: A, place: 0, seq: 1 }] };

  test('while records of targets are pending, no run record is written, and the pending ones are not committed', async () => {
    store.records!.open([NOTES]);
    store.records!.write(writeOf({ id: 'a', text: '' }));
    expect(await store.runRecords.save(BATCH)).toBe(false);
    expect(store.records!.dirty).toBe(true);
    expect(await store.runRecords.count(A)).toBe(0);
    await scribe.write(store, [audited(B)]);
    expect(await store.runRecords.save(BATCH)).toBe(true);
    expect(withDatabase(at.file, (db) => db.prepare('SELECT id FROM records_notes').pluck().all())).toEqual(['a']);
  });

  test('if the table is missing, an error is reported and the ledger continues', async () => {
    exec('DROP TABLE run_records');
    await expect(store.runRecords.save(BATCH)).rejects.toEqual(code('LEDGER_TAMPERED'));
    await scribe.write(store, [audited(B)]);
    expect(await all(store.log())).toHaveLength(3);
  });
});

describe('D2: a failure while writing derived data', () => {
  let db: SqliteConnection;
  let writer: SqliteWriter;

  beforeEach(async () => {
    await store.close();
    const storage = { directory: at.artifactsDir, keys: new CaseKeys(`${at.artifactsDir}-keys`, () => null) };
    const file = ledgerFile(at.file, storage, {});
    const parts = componentsOf(file, file.connect());
    db = parts.db;
    writer = new SqliteWriter(parts);
    scribe.epoch = writer.beginEpoch();
  });
  afterEach(() => void db.close());

  const failingAs = (sqliteCode: string) => (): never => {
    db.exec(`INSERT INTO recorded_trees VALUES ('${B}', 0, 1)`);
    throw Object.assign(new Error('the test broke this'), { code: sqliteCode });
  };

  test('is rolled back, and does not prevent further commits', () => {
    expect(() => writer.writeDerived(failingAs('SQLITE_FULL'))).toThrow('the test broke this');
    expect(db.prepare('SELECT count(*) FROM recorded_trees').pluck().get()).toBe(0);
    writer.commit(scribe.next([audited(B)]));
    expect(writer.writeDerived(() => undefined)).toBe(true);
  });

  test('prevents further commits if the disk failed, because its content is unknown', () => {
    expect(() => writer.writeDerived(failingAs('SQLITE_IOERR_FSYNC'))).toThrow('the test broke this');
    expect(() => writer.commit(scribe.prepare([audited(B)]))).toThrow(code('LEDGER_UNAVAILABLE'));
    expect(() => writer.writeDerived(() => undefined)).toThrow(code('LEDGER_UNAVAILABLE'));
  });
});
