// Run records in a SQLite ledger: what guards them, what an older ledger has of them, and what they leave alone.
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { readFileSync } from 'node:fs';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { CaseKeys } from '../../src/adapters/case-keys.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { SqliteArtifacts } from '../../src/adapters/sqlite-artifacts.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { openDatabase, type Connection } from '../../src/adapters/sqlite-database.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { createSqliteStore, openSqliteStore } from '../../src/adapters/sqlite-ledger-store.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { SqliteMarkNumbers } from '../../src/adapters/sqlite-mark-numbers.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { SqliteReader } from '../../src/adapters/sqlite-reader.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { SqliteTail } from '../../src/adapters/sqlite-tail.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { SqliteWriter } from '../../src/adapters/sqlite-writer.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import type { LedgerStore } from '../../src/ports/ledger-store.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import type { WrittenRecord } from '../../src/ports/run-records.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { all, audited, opening, scribeOf, treeId, type Scribe } from '../fixtures/entries.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { NOTES, writeOf } from './sql-harness.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
const [A, B] = [treeId(1), treeId(2)];
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
const code = (name: string) => expect.objectContaining({ code: name });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
const rowOf = (tree_id: string): WrittenRecord => ({ tree_id, run_id: tree_id, text: '{}' });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
let at: LedgerFolder;
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
let store: LedgerStore;
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
let scribe: Scribe;
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
let opened: LedgerStore[];
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
const keep = (one: LedgerStore): LedgerStore => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  opened.push(one);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  return one;
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
};
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
const unrecorded = async (of = store): Promise<readonly string[]> =>
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  (await all(of.runRecords.unrecorded())).map(({ tree_id }) => tree_id);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
const exec = (sql: string) => withDatabase(at.file, (db) => void db.exec(sql));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
beforeEach(async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  at = ledgerFolder();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  opened = [];
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  store = keep(createSqliteStore(at));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  scribe = await scribeOf(store);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  await scribe.write(store, [opening(A), opening(B)], { trees: [{ tree_id: A, state: 'ended' }] });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
});
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
afterEach(async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  for (const one of opened) await one.close();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  at.remove();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
});
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
describe('a ledger that is older than run records', () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  /** The same ledger, as the format before had it. */
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  const asBefore = async (): Promise<void> => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await store.close();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    exec('DROP TABLE run_records; DROP TABLE recorded_trees; PRAGMA user_version = 2');
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    exec('ALTER TABLE artifacts DROP COLUMN sealed');
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  };
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  const formatOf = () => withDatabase(at.file, (db) => db.pragma('user_version', { simple: true }));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test('is read as it is: it has none, and nothing is written to it', async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await asBefore();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    const before = readFileSync(at.file);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    const reader = keep(openSqliteStore({ ...at, readOnly: true }));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await all(reader.log())).toHaveLength(2);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await unrecorded(reader)).toEqual([]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await all(reader.runRecords.trees())).toEqual([]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await reader.runRecords.recorded(A)).toBeNull();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await reader.runRecords.load(A, A)).toBeNull();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await reader.runRecords.count(A)).toBe(0);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    // Nor by who could write and does not.
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await unrecorded(keep(openSqliteStore(at)))).toEqual([]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(readFileSync(at.file).equals(before)).toBe(true);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(formatOf()).toBe(2);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test('has tables of them as soon as it is written, for what has ended before, and for readers that are open', async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await asBefore();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    const reader = keep(openSqliteStore({ ...at, readOnly: true }));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await unrecorded(reader)).toEqual([]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    const writer = keep(openSqliteStore(at));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    scribe.epoch = await writer.acquire();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(formatOf()).toBe(FORMAT_VERSION);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await unrecorded(writer)).toEqual([A]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await unrecorded(reader)).toEqual([A]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await scribe.write(writer, [audited(B)], { trees: [{ tree_id: B, state: 'ended' }] });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await unrecorded(writer)).toEqual([A, B]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await writer.close();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    // It is what a new one is, table by table.
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    keep(openSqliteStore(at));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test('and whose tables were changed is LEDGER_TAMPERED', async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await asBefore();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    exec('DROP INDEX first_blocks');
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(() => openSqliteStore(at)).toThrow(code('LEDGER_TAMPERED'));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
});
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
describe('S4-70: the tables refuse what changes the records of a recorded tree', () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  const RECORD = `SELECT tree_id, run_id, '[]' FROM run_records`;
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test.each([
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['another record', `INSERT INTO run_records VALUES ('${A}', '${A}.7', '{}')`],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['a record for another', `INSERT OR REPLACE INTO run_records ${RECORD}`],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['a record that says something else', `UPDATE run_records SET record = '[]'`],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['a record of another run', `UPDATE run_records SET run_id = run_id || 'x'`],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['no record', 'DELETE FROM run_records'],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['another end', 'UPDATE recorded_trees SET seq = seq + 1'],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['an end for another', `INSERT OR REPLACE INTO recorded_trees VALUES ('${A}', 0, 9)`],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    ['no end', 'DELETE FROM recorded_trees'],
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  ])('%s', async (_what, sql) => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await store.runRecords.save({ records: [rowOf(A)], trees: [{ tree_id: A, place: 0, seq: 1 }] });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    for (const recursive of ['ON', 'OFF']) {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
      expect(() => exec(`PRAGMA recursive_triggers = ${recursive}; ${sql}`)).toThrow(/never change/);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    }
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await store.runRecords.load(A, A)).toBe('{}');
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
});
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
describe('the writer of run records and of the ledger are one', () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  const BATCH = { records: [rowOf(A)], trees: [{ tree_id: A, place: 0, seq: 1 }] };
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test('while records of targets wait for their commit, none is written, and theirs is not either', async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    store.records!.open([NOTES]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    store.records!.write(writeOf({ id: 'a', text: '' }));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await store.runRecords.save(BATCH)).toBe(false);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(store.records!.dirty).toBe(true);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await store.runRecords.count(A)).toBe(0);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await scribe.write(store, [audited(B)]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await store.runRecords.save(BATCH)).toBe(true);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(withDatabase(at.file, (db) => db.prepare('SELECT id FROM records_notes').pluck().all())).toEqual(['a']);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test('when the table is gone that is told, and the ledger goes on', async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    exec('DROP TABLE run_records');
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await expect(store.runRecords.save(BATCH)).rejects.toEqual(code('LEDGER_TAMPERED'));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await scribe.write(store, [audited(B)]);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(await all(store.log())).toHaveLength(3);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
});
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
describe('D2: what goes wrong with what is only derived', () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  let db: Connection;
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  let writer: SqliteWriter;
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  beforeEach(async () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    await store.close();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    db = openDatabase(at.file, false);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    const artifacts = new SqliteArtifacts(db, at.artifactsDir, new CaseKeys(`${at.artifactsDir}-keys`, () => null));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    const tail = new SqliteTail(db);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    const markNumbers = new SqliteMarkNumbers(db, tail);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    writer = new SqliteWriter({ db, artifacts, tail, markNumbers, reader: new SqliteReader(db, tail, markNumbers) });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    scribe.epoch = writer.beginEpoch();
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  afterEach(() => void db.close());
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  const failingAs = (sqliteCode: string) => (): never => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    db.exec(`INSERT INTO recorded_trees VALUES ('${B}', 0, 1)`);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    throw Object.assign(new Error('the test broke this'), { code: sqliteCode });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  };
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test('is taken back, and does not keep the ledger from being written', () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(() => writer.derive(failingAs('SQLITE_FULL'))).toThrow('the test broke this');
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(db.prepare('SELECT count(*) FROM recorded_trees').pluck().get()).toBe(0);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    writer.commit(scribe.next([audited(B)]));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(writer.derive(() => undefined)).toBe(true);
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';

import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  test('unless it is the disk: then nobody knows what lies there, and nothing is written any more', () => {
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(() => writer.derive(failingAs('SQLITE_IOERR_FSYNC'))).toThrow('the test broke this');
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(() => writer.commit(scribe.prepare([audited(B)]))).toThrow(code('LEDGER_UNAVAILABLE'));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
    expect(() => writer.derive(() => undefined)).toThrow(code('LEDGER_UNAVAILABLE'));
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
  });
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
});
import { FORMAT_VERSION } from '../../src/adapters/sqlite-schema.js';
