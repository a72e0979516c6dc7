// PostgreSQL over a failing network, and with concurrent clients: every reported outcome must be true.

import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { sqlDatabase } from '../../../src/stores/records/sql-database.js';
import type { RecordDatabase } from '../../../src/engine/ports/effects/records.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { A, code, DONE, failedWith, NOTES, postgresUnderTest, readOf, recordsOf } from './sql-harness.js';
import { writeOf, type ElsewhereUnderTest } from './sql-harness.js';
import { Network } from '../postgres/network.js';

const server = await startPostgres();
const UNKNOWN = { status: 'unknown' };

afterAll(() => server?.stop());

(server === null ? describe.skip : describe)('records in PostgreSQL', () => {
  let records: ElsewhereUnderTest;
  let opened: { close(): unknown }[];
  const write = writeOf({ id: 'n', text: 'once' });

  /** Another database of the same server, with more settings. */
  const another = (more: string): RecordDatabase => {
    const database = sqlDatabase({ url: `${records.url}${more}` });
    opened.push(database);
    return database;
  };
  const behind = async (): Promise<{ network: Network; database: RecordDatabase }> => {
    const network = new Network(Number(new URL(records.url).port), 'COMMIT\0');
    const url = new URL(records.url);
    url.port = String(await network.port());
    const database = sqlDatabase({ url: `${url.href}&query_timeout=1500` });
    opened.push(database, network);
    return { network, database };
  };
  const client = async (): Promise<pg.Client> => {
    const one = new pg.Client({ connectionString: records.url });
    await one.connect();
    opened.push({ close: () => one.end() });
    return one;
  };
  const NOTE = `insert into turnpike_effects values ($1, $2, 'done', '{"written":1}')`;

  beforeEach(async () => {
    opened = [];
    records = await postgresUnderTest(server?.url ?? '');
    await records.open([NOTES]);
  });
  afterEach(async () => {
    for (const one of opened) await one.close();
    await records.close();
  });

  test('D8: a COMMIT whose answer is lost is unknown, and settled as done', async () => {
    const { network, database } = await behind();
    network.loss = 'of its answer';
    expect(await database.write(write)).toEqual(UNKNOWN);
    network.loss = 'none';
    expect(await database.settle(write)).toEqual(DONE);
    expect(await recordsOf(records)).toEqual([{ id: 'n', text: 'once' }]);
  });

  test.each([
    ['40003', UNKNOWN],
    ['40001', failedWith('IO_ERROR')],
  ])('D8: a COMMIT that is answered with %s', async (sqlstate, answer) => {
    const one = await client();
    await one.query(`create function late() returns trigger language plpgsql as
      $$ begin raise exception 'late' using errcode = '${sqlstate}'; end $$`);
    await one.query(`create constraint trigger late after insert on notes deferrable initially deferred
      for each row execute function late()`);
    expect(await records.database.write(write)).toMatchObject(answer);
  });

  test('D8: a lost COMMIT is unknown, and settled as INTERRUPTED', async () => {
    const { network, database } = await behind();
    network.loss = 'of the commit';
    expect(await database.write(write)).toEqual(UNKNOWN);
    network.loss = 'none';
    expect(await database.settle(write)).toEqual(failedWith('INTERRUPTED'));
    expect(await database.write(write)).toEqual(failedWith('INTERRUPTED'));
    expect(await recordsOf(records)).toEqual([]);
  });

  test('a settlement whose COMMIT is lost is unknown, and can be repeated', async () => {
    const { network, database } = await behind();
    for (const loss of ['of the commit', 'of its answer'] as const) {
      network.loss = loss;
      expect(await database.settle(write)).toEqual(UNKNOWN);
    }
    network.loss = 'none';
    expect(await database.settle(write)).toEqual(failedWith('INTERRUPTED'));
  });

  test('a network that drops everything leads to timeouts: no write is sent, no settlement succeeds', async () => {
    const { network, database } = await behind();
    await database.open([NOTES]);
    network.loss = 'of everything';
    const [written, settled, read] = await Promise.all([
      database.write(write),
      database.settle(write),
      database.read(readOf()),
    ]);
    expect([written, settled, read]).toEqual([failedWith('IO_ERROR'), UNKNOWN, failedWith('IO_ERROR')]);
    network.loss = 'none';
    expect(await database.write(write)).toEqual(DONE);
  });

  test('a missing server: RECORDS_UNREACHABLE at open, failed at write, unknown at settle', async () => {
    const database = sqlDatabase({ url: 'postgres://unknown@127.0.0.1:1/none' });
    await expect(database.open([NOTES])).rejects.toEqual(code('RECORDS_UNREACHABLE'));
    expect(await database.write(write)).toEqual(failedWith('IO_ERROR'));
    expect(await database.settle(write)).toEqual(UNKNOWN);
    expect(await database.read(readOf())).toEqual(failedWith('IO_ERROR'));
    await database.close();
  });

  for (const [end, answer] of [
    ['commit', DONE],
    ['rollback', failedWith('INTERRUPTED')],
  ] as const) {
    test(`D8: a settlement waits for a first attempt in flight, and returns its outcome: ${end}`, async () => {
      const first = await client();
      await first.query('begin');
      await first.query(NOTE, [write.idempotency_key, write.request_hash]);
      let settled = false;
      const settling = another('').settle(write);
      void settling.then(() => (settled = true));
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(settled).toBe(false);
      await first.query(end);
      expect(await settling).toEqual(answer);
    });
  }

  test('D8: a first attempt that arrives after its settlement fails at the primary key', async () => {
    const first = await client();
    await first.query('begin');
    await first.query(`insert into notes values ('${A}', 'n', 'late')`);
    expect(await another('').settle(write)).toEqual(failedWith('INTERRUPTED'));
    await expect(first.query(NOTE, [write.idempotency_key, write.request_hash])).rejects.toEqual(code('23505'));
    await first.query('commit');
    expect(await recordsOf(records)).toEqual([]);
  });

  test('while a first attempt does not end, a write with its key and a settlement are unknown', async () => {
    const first = await client();
    await first.query('begin');
    await first.query(NOTE, [write.idempotency_key, write.request_hash]);
    const impatient = another('&statement_timeout=500');
    expect(await Promise.all([impatient.write(write), impatient.settle(write)])).toEqual([UNKNOWN, UNKNOWN]);
    await first.query('commit');
    expect(await impatient.settle(write)).toEqual(DONE);
  });

  test('an upsert that collides with a concurrent one of the same new row replaces the row', async () => {
    const other = await client();
    for (const [case_id, answer] of [
      [A, DONE],
      ['case-0002', failedWith('ALREADY_EXISTS')],
    ] as const) {
      await records.exec('truncate notes; create unique index if not exists of_all on notes (id)');
      await other.query('begin');
      await other.query(`insert into notes values ('${case_id}', 'n', 'theirs')`);
      const ours = writeOf({ id: 'n', text: 'ours' }, { mode: 'upsert' });
      const writing = records.write(ours);
      await new Promise((resolve) => setTimeout(resolve, 300));
      await other.query('commit');
      expect(await writing).toEqual(answer);
      const [row] = await records.rows('select case_id, text from notes');
      expect(row).toEqual({ case_id, text: case_id === A ? 'ours' : 'theirs' });
    }
  });

  test('a row that another transaction locks is TIMEOUT: it was certainly not written', async () => {
    await records.write(writeOf({ id: 'n', text: 'there' }));
    const other = await client();
    await other.query('begin');
    await other.query('select * from notes for update');
    const impatient = another('&statement_timeout=500');
    expect(await impatient.write({ ...write, mode: 'upsert' })).toEqual(failedWith('TIMEOUT'));
    await other.query('rollback');
    expect(await impatient.write({ ...write, mode: 'upsert' })).toEqual(DONE);
  });

  test('a deferred constraint that fails at the COMMIT is failed, and not unknown', async () => {
    await records.exec(`create table owners (id text primary key);
      alter table notes add foreign key (text) references owners deferrable initially deferred`);
    expect(await records.write(write)).toEqual(failedWith('INVALID_RECORD'));
    expect(await records.rows('select * from turnpike_effects')).toEqual([]);
  });

  test('connections that the server ends are replaced', async () => {
    const killer = await client();
    await killer.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'turnpike'`);
    const answers = [await records.write(write), await records.write(write)];
    expect(answers.at(-1)).toEqual(DONE);
    expect(await recordsOf(records)).toHaveLength(1);
  });

  test('S4-84: a column that compares different case ids or keys as equal is RECORDS_MISMATCH', async () => {
    await records.exec(`create collation blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`);
    await records.exec('create domain caseless as text');
    for (const columns of [
      'case_id text collate blind, id text, text text',
      'case_id text, id text collate blind, text text',
      'case_id char(20), id text, text text',
      'case_id caseless, id text, text text',
      `case_id text, id text, text text generated always as ('x') stored`,
    ]) {
      await records.exec(`drop table notes; create table notes (${columns}, unique (case_id, id))`);
      await expect(records.open([NOTES])).rejects.toEqual(code('RECORDS_MISMATCH'));
    }
  });

  test('a target may name a schema, and values may be too large for a column or an index', async () => {
    await records.exec('create schema if not exists apart');
    await records.exec('create table apart.notes (case_id text, id text, text varchar(3), primary key (case_id, id))');
    const target = { ...NOTES, name: 'apart.notes' };
    await records.open([target]);
    const put = (id: string, text: string) => records.write(writeOf({ id, text }, { target, mode: 'upsert' }));
    const noise = Array.from({ length: 9_000 }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7_919) % 20_000))).join(
      '',
    );
    expect(await put('n', 'four')).toEqual(failedWith('INVALID_RECORD'));
    expect(await put(noise, 'abc')).toEqual(failedWith('INVALID_RECORD'));
    expect(await put('n', 'abc')).toEqual(DONE);
    expect(await recordsOf(records, { target })).toEqual([{ id: 'n', text: 'abc' }]);
    await records.exec('drop schema apart cascade');
  });

  test('a user who may not write is PERMISSION_DENIED', async () => {
    await records.exec('drop role if exists reader; create role reader login');
    const [schema] = /test_\w+/.exec(records.url) ?? [];
    await records.exec(`grant usage on schema ${schema} to reader; grant select, insert on turnpike_effects to reader`);
    const database = sqlDatabase({ url: records.url.replace('postgres@', 'reader@') });
    opened.push(database);
    expect(await database.write(write)).toEqual(failedWith('PERMISSION_DENIED'));
    expect(await database.read(readOf())).toEqual(failedWith('PERMISSION_DENIED'));
    await records.exec('drop owned by reader; drop role reader');
  });

  test('settings of the server change neither texts nor durability', async () => {
    const odd = another(
      '%20-c%20datestyle%3DGerman%20-c%20extra_float_digits%3D-10%20-c%20synchronous_commit%3Doff' +
        '%20-c%20default_transaction_isolation%3Dserializable',
    );
    await records.exec(`create table days (case_id text, id date, no float8, primary key (case_id, id),
      sync text default current_setting('synchronous_commit'))`);
    const properties = { id: { type: 'string' }, no: { type: 'number' } };
    const record = { type: 'object', properties, required: ['id', 'no'], additionalProperties: false };
    const target = { ...NOTES, name: 'days', record };
    await odd.open([target]);
    const day = { id: '2026-02-01', no: 0.1 + 0.2 };
    expect(await odd.write(writeOf(day, { target }))).toEqual(DONE);
    expect(await odd.read(readOf({ target }))).toMatchObject({ result: { records: [day] } });
    expect(await records.rows('select sync from days')).toEqual([{ sync: 'on' }]);
  });
});
