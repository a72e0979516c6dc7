// What every record database must do, of whatever kind.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Json, JsonObject } from '../../../src/core/contract/json.js';
import { A, B, code, DONE, failedWith, NOTES, readOf, recordsOf, targetOf, TEXT, writeOf } from './sql-harness.js';
import type { RecordsUnderTest } from './sql-harness.js';

/** Keys with a special meaning for a database that interprets them, or that look like other keys. */
export const CRAFTED = [
  `'; DROP TABLE notes; --`,
  `" OR "1"="1`,
  `' OR case_id <> '`,
  '$1',
  '?',
  ':id',
  '${id}',
  '\\',
  '%',
  '_',
  '',
  ' ',
  '7',
  '07',
  '7.0',
  '7e0',
  'NULL',
  'null',
  'true',
  '__proto__',
  'constructor',
  'a',
  'A',
  'a ',
  'é',
  'e\u0301',
  'а',
  'ａ',
  'ﬁ',
  'fi',
  '\u202ea',
  '\u200b',
  '💥',
  'k'.repeat(2_000),
] as const;

interface Bench {
  readonly records: RecordsUnderTest;
}

/** Runs the suite over one kind of database. */
export function recordsContract(name: string, make: () => Promise<RecordsUnderTest>): void {
  describe(`a record database: ${name}`, () => {
    let records: RecordsUnderTest | null = null;
    beforeEach(async () => {
      records = await make();
    });
    afterEach(async () => {
      await records?.close();
      records = null;
    });
    const bench: Bench = {
      get records() {
        if (records === null) throw new Error('no test runs');
        return records;
      },
    };
    describe('writing', () => writingContract(bench));
    describe('cases', () => caseContract(bench));
    describe('reading', () => readingContract(bench));
    describe('refused calls', () => refusalContract(bench));
    describe('tables', () => tableContract(bench));
  });
}

const EVERYTHING = targetOf(
  {
    id: { type: 'integer' },
    text: { type: 'string' },
    amount: { type: 'number' },
    open: { type: 'boolean' },
    tags: { type: 'array' },
    state: { anyOf: [{ const: 'new' }, { const: 'old' }] },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    maybe: { type: 'integer' },
    constructor: {},
  },
  {},
  ['maybe', 'constructor'],
);

function writingContract(bench: Bench): void {
  test('values of every kind come back unchanged', async () => {
    await bench.records.open([EVERYTHING]);
    const full: JsonObject = {
      id: Number.MAX_SAFE_INTEGER,
      text: `'"\\ é e\u0301 💥 \n\t`,
      amount: -1.5e-300,
      open: true,
      tags: [1, 2.5, null, 'x', { __proto: [], b: { c: false } }],
      state: 'new',
      note: null,
      maybe: -7,
      constructor: null,
    };
    const bare = { id: -3_000_000_000, text: '', amount: 3e300, open: false, state: 'old', note: 'null', tags: [] };
    for (const record of [full, bare]) {
      expect(await bench.records.write(writeOf(record, { target: EVERYTHING }))).toEqual(DONE);
    }
    expect(await recordsOf(bench.records, { target: EVERYTHING })).toEqual([bare, full]);
  });

  test('append inserts, and leaves an existing row unchanged: ALREADY_EXISTS', async () => {
    await bench.records.open([NOTES]);
    expect(await bench.records.write(writeOf({ id: 'n', text: 'first' }))).toEqual(DONE);
    expect(await bench.records.write(writeOf({ id: 'n', text: 'second' }))).toEqual(failedWith('ALREADY_EXISTS'));
    expect(await recordsOf(bench.records)).toEqual([{ id: 'n', text: 'first' }]);
  });

  test('upsert inserts, and replaces an existing record as a whole', async () => {
    const target = targetOf({ id: TEXT, text: TEXT, maybe: TEXT }, {}, ['maybe']);
    await bench.records.open([target]);
    const put = (record: JsonObject) => bench.records.write(writeOf(record, { target, mode: 'upsert' }));
    expect(await put({ id: 'n', text: 'first', maybe: 'yes' })).toEqual(DONE);
    expect(await put({ id: 'n', text: 'second' })).toEqual(DONE);
    expect(await recordsOf(bench.records, { target })).toEqual([{ id: 'n', text: 'second' }]);
  });

  test('a target with only key columns can be upserted twice and appended once', async () => {
    const target = targetOf({ id: TEXT });
    await bench.records.open([target]);
    const write = (mode: 'append' | 'upsert') => bench.records.write(writeOf({ id: 'n' }, { target, mode }));
    expect([await write('upsert'), await write('upsert')]).toEqual([DONE, DONE]);
    expect(await write('append')).toEqual(failedWith('ALREADY_EXISTS'));
  });

  test('a mode that the target does not have is refused', async () => {
    const target = { ...NOTES, modes: ['append' as const] };
    await bench.records.open([target]);
    const put = await bench.records.write(writeOf({ id: 'n', text: '' }, { target, mode: 'upsert' }));
    expect(put).toEqual(failedWith('INTERNAL'));
    expect(await recordsOf(bench.records)).toEqual([]);
  });
}

function caseContract(bench: Bench): void {
  test('S4-84: equal keys in two cases are two records, however they are written', async () => {
    await bench.records.open([NOTES]);
    for (const case_id of [A, B]) {
      for (const id of CRAFTED) {
        for (const text of ['draft', `of ${case_id}`]) {
          const write = writeOf({ id, text }, { case_id, mode: 'upsert' });
          expect(await bench.records.write(write)).toEqual(DONE);
        }
      }
    }
    for (const case_id of [A, B]) {
      const found = (await recordsOf(bench.records, { case_id })) as readonly JsonObject[];
      expect(found.map(({ id }) => id).sort()).toEqual([...CRAFTED].sort());
      expect(new Set(found.map(({ text }) => text))).toEqual(new Set([`of ${case_id}`]));
      for (const id of CRAFTED) expect(await recordsOf(bench.records, { case_id, where: { id } })).toHaveLength(1);
    }
  });

  test('S4-84: if keys are unique without their case, an upsert leaves the row of the other case unchanged', async () => {
    await bench.records.exec(
      'create table TABLE_NAME (case_id text not null, id text primary key, text text not null)',
    );
    await bench.records.open([NOTES]);
    for (const id of CRAFTED) expect(await bench.records.write(writeOf({ id, text: 'of A' }))).toEqual(DONE);
    for (const id of CRAFTED) {
      const taken = await bench.records.write(writeOf({ id, text: 'of B' }, { case_id: B, mode: 'upsert' }));
      expect(taken).toEqual(failedWith('ALREADY_EXISTS'));
    }
    expect(await recordsOf(bench.records, { case_id: B })).toEqual([]);
    await bench.records.commit();
    const all = await bench.records.rows('select distinct case_id, text from TABLE_NAME');
    expect(all).toEqual([{ case_id: A, text: 'of A' }]);
  });

  test('S4-84: a case with a similar id has none of the rows', async () => {
    if (bench.records.dialect === 'sqlite') {
      const columns = 'case_id text collate nocase, id text collate rtrim, text text, unique (case_id, id)';
      await bench.records.exec(`create table TABLE_NAME (${columns})`);
    }
    await bench.records.open([NOTES]);
    await bench.records.write(writeOf({ id: 'n', text: 'of A' }));
    for (const case_id of ['CASE-0001', 'case-0001 ', 'case-000_', 'case%', '', `' or '1'='1`]) {
      expect(await recordsOf(bench.records, { case_id })).toEqual([]);
    }
    await bench.records.write(writeOf({ id: 'n', text: 'of B' }, { case_id: 'CASE-0001', mode: 'upsert' }));
    expect(await recordsOf(bench.records)).toEqual([{ id: 'n', text: 'of A' }]);
  });

  test('S4-85: a shared target has no case, and a case-scoped one has one', async () => {
    const shared = targetOf({ id: { type: 'integer' }, text: TEXT }, { name: 'known', plane: 'shared' });
    await bench.records.open([NOTES, shared]);
    const write = writeOf({ id: 1, text: 'all' }, { target: shared, case_id: null });
    expect(await bench.records.write(write)).toEqual(DONE);
    expect(await bench.records.write(writeOf({ id: 2, text: '' }, { target: shared }))).toEqual(failedWith('INTERNAL'));
    expect(await bench.records.write(writeOf({ id: 'n', text: '' }, { case_id: null }))).toEqual(
      failedWith('INTERNAL'),
    );
    expect(await recordsOf(bench.records, { target: shared, case_id: null })).toEqual([{ id: 1, text: 'all' }]);
    expect(await bench.records.read(readOf({ target: shared }))).toEqual(failedWith('INTERNAL'));
    expect(await bench.records.read(readOf({ case_id: null }))).toEqual(failedWith('INTERNAL'));
  });
}

function readingContract(bench: Bench): void {
  test('pages follow each other in key order, without a gap', async () => {
    const target = targetOf({ kind: TEXT, no: { type: 'integer' } }, { key: ['kind', 'no'] });
    await bench.records.open([target]);
    const all = ['A', 'a', 'b', 'é'].flatMap((kind) => [-2, 0, 5, 10, 11].map((no) => ({ kind, no })));
    for (const record of all.toReversed()) await bench.records.write(writeOf(record, { target }));
    const found: Json[] = [];
    let after: JsonObject | null = null;
    do {
      const page = await bench.records.read(readOf({ target, after, limit: 7 }));
      if (page.status !== 'done') throw new Error('a page was not read');
      found.push(...(page.result['records'] as Json[]));
      after = page.result['next'] as JsonObject | null;
    } while (after !== null);
    expect(found).toEqual(all);
    expect(await bench.records.read(readOf({ target, limit: 20 }))).toMatchObject({ result: { next: null } });
    expect(await bench.records.read(readOf({ target, limit: 19 }))).toMatchObject({
      result: { next: { kind: 'é', no: 10 } },
    });
  });

  test('`where` compares columns for equality, also with null', async () => {
    const target = targetOf({ id: TEXT, done: { type: 'boolean' }, owner: { type: ['string', 'null'] } });
    await bench.records.open([target]);
    const rows = [
      { id: 'a', done: true, owner: null },
      { id: 'b', done: false, owner: 'x' },
      { id: 'c', done: true, owner: 'x' },
    ];
    for (const row of rows) await bench.records.write(writeOf(row, { target }));
    const idsOf = async (where: JsonObject) =>
      ((await recordsOf(bench.records, { target, where })) as readonly JsonObject[]).map(({ id }) => id);
    expect(await idsOf({ done: true })).toEqual(['a', 'c']);
    expect(await idsOf({ owner: null })).toEqual(['a']);
    expect(await idsOf({ owner: 'x', done: true })).toEqual(['c']);
    expect(await idsOf({ id: `a' or 'a'='a` })).toEqual([]);
  });

  test('a query that no column can answer is refused', async () => {
    await bench.records.open([EVERYTHING]);
    const asks: readonly JsonObject[] = [
      { nothing: 1 },
      { case_id: B },
      { 'id" or 1=1 --': 1 },
      { tags: [] },
      { id: '7' },
      { id: 1.5 },
      { text: 7 },
      { open: 1 },
      { text: null },
      JSON.parse('{"__proto__":1}') as JsonObject,
    ];
    for (const where of asks) {
      expect(await bench.records.read(readOf({ target: EVERYTHING, where }))).toEqual(failedWith('INTERNAL'));
    }
    const afters: readonly JsonObject[] = [{}, { id: 'x' }, { text: 'x' }, { id: 1, text: 'x' }];
    for (const after of afters) {
      expect(await bench.records.read(readOf({ target: EVERYTHING, after }))).toEqual(failedWith('INTERNAL'));
    }
    for (const limit of [0, -1, 1.5, NaN, 10_001]) {
      expect(await bench.records.read(readOf({ target: EVERYTHING, limit }))).toEqual(failedWith('INTERNAL'));
    }
  });

  test('more than 16 MiB are TOO_LARGE, and fewer of the same rows are not', async () => {
    await bench.records.open([NOTES]);
    const text = 'é'.repeat(2 * 1_024 * 1_024 + 1_000);
    for (const id of ['a', 'b', 'c', 'd']) expect(await bench.records.write(writeOf({ id, text }))).toEqual(DONE);
    expect(await bench.records.read(readOf())).toEqual(failedWith('TOO_LARGE'));
    expect(await bench.records.read(readOf({ limit: 2 }))).toMatchObject({
      status: 'done',
      result: { next: { id: 'b' } },
    });
    // A newline is two characters of JSON.
    await bench.records.write(writeOf({ id: 'e', text: '\n'.repeat(9 * 1_024 * 1_024) }));
    expect(await bench.records.read(readOf({ where: { id: 'e' } }))).toEqual(failedWith('TOO_LARGE'));
  });
}

function refusalContract(bench: Bench): void {
  const GOOD: JsonObject = { id: 1, text: '', amount: 0, open: true, tags: [], state: 'new', note: null };

  test('a record that does not match its schema is INVALID_RECORD, and not written', async () => {
    await bench.records.open([EVERYTHING]);
    const bad: readonly JsonObject[] = [
      { ...GOOD, id: 2 ** 53 },
      { ...GOOD, id: '1' },
      { ...GOOD, id: 1.5 },
      { ...GOOD, text: '\ud800' },
      { ...GOOD, text: null },
      { ...GOOD, amount: '1' },
      { ...GOOD, amount: Infinity },
      { ...GOOD, open: 1 },
      { ...GOOD, tags: [1e20] },
      { ...GOOD, tags: ['\udc00'] },
      { ...GOOD, maybe: null },
      { ...GOOD, more: 1 },
      { ...GOOD, case_id: B },
      { id: 1 },
      {},
    ];
    for (const record of bad) {
      const answer = await bench.records.write(writeOf(record, { target: EVERYTHING }));
      expect([record, answer]).toEqual([record, failedWith('INVALID_RECORD')]);
    }
    expect(await recordsOf(bench.records, { target: EVERYTHING })).toEqual([]);
  });

  test('a row that the table itself rejects is INVALID_RECORD', async () => {
    await bench.records.exec(
      `create table TABLE_NAME (case_id text, id text, text text check (text <> 'bad'), primary key (case_id, id))`,
    );
    await bench.records.open([NOTES]);
    expect(await bench.records.write(writeOf({ id: 'n', text: 'bad' }))).toEqual(failedWith('INVALID_RECORD'));
    expect(await bench.records.write(writeOf({ id: 'n', text: 'good' }))).toEqual(DONE);
    const put = writeOf({ id: 'n', text: 'bad' }, { mode: 'upsert' });
    expect(await bench.records.write(put)).toEqual(failedWith('INVALID_RECORD'));
    expect(await recordsOf(bench.records)).toEqual([{ id: 'n', text: 'good' }]);
  });

  test('a NUL is stored or refused, and never truncates a text', async () => {
    await bench.records.open([NOTES]);
    const answers = [
      await bench.records.write(writeOf({ id: 'n', text: '' })),
      await bench.records.write(writeOf({ id: 'n\0b', text: '' }, { mode: 'upsert' })),
      await bench.records.write(writeOf({ id: 'n\0c', text: '' }, { mode: 'upsert' })),
    ];
    const kept = bench.records.dialect === 'sqlite';
    const refused = failedWith('INVALID_RECORD');
    expect(answers).toEqual(kept ? [DONE, DONE, DONE] : [DONE, refused, refused]);
    expect(await recordsOf(bench.records)).toHaveLength(kept ? 3 : 1);
  });

  test('a stored value that does not match the schema is INTERNAL, and never another value', async () => {
    const target = targetOf({ id: TEXT, no: { type: 'integer' }, data: {} }, {}, ['no', 'data']);
    await bench.records.open([target]);
    const rows = [
      `insert into TABLE_NAME (case_id, id, no) values ('${A}', 'x', 9007199254740993)`,
      `insert into TABLE_NAME (case_id, id, data) values ('${A}', 'x', '[9007199254740993]')`,
      `insert into TABLE_NAME (case_id, id, data) values ('${A}', 'x', '${'['.repeat(200)}${']'.repeat(200)}')`,
    ];
    if (bench.records.dialect === 'sqlite') {
      rows.push(`insert into TABLE_NAME (case_id, id, data) values ('${A}', 'x', '{')`);
    }
    for (const row of rows) {
      await bench.records.exec(row);
      expect(await bench.records.read(readOf({ target }))).toEqual(failedWith('INTERNAL'));
      await bench.records.exec('delete from TABLE_NAME');
    }
    await bench.records.exec(`insert into TABLE_NAME (case_id, id, no) values ('${A}', 'x', 9007199254740991)`);
    expect(await recordsOf(bench.records, { target })).toMatchObject([{ id: 'x', no: Number.MAX_SAFE_INTEGER }]);
  });

  test('stored JSON that two readers can understand differently is INTERNAL', async () => {
    const target = targetOf({ id: TEXT, data: {} });
    const type = bench.records.dialect === 'sqlite' ? 'text' : 'json';
    await bench.records.exec(`create table TABLE_NAME (case_id text, id text, data ${type}, primary key (id))`);
    await bench.records.open([target]);
    for (const [data, answer] of [
      ['{"to":"anna","copy":"otto"}', expect.objectContaining({ status: 'done' })],
      ['{"to":"anna","to":"otto"}', failedWith('INTERNAL')],
      ['[{"to":"anna","\\u0074o":"otto"}]', failedWith('INTERNAL')],
      ['{"a":{"__proto__":{}}}', failedWith('INTERNAL')],
    ] as const) {
      await bench.records.exec(`insert into TABLE_NAME values ('${A}', 'x', '${data}')`);
      expect([data, await bench.records.read(readOf({ target }))]).toEqual([data, answer]);
      await bench.records.exec('delete from TABLE_NAME');
    }
  });

  test('a stored number that JSON cannot represent exactly is INTERNAL', async () => {
    const target = targetOf({ id: TEXT, no: { type: 'integer' }, size: { type: 'number' } });
    await bench.records.exec(
      'create table TABLE_NAME (case_id text, id text, no numeric, size numeric, primary key (id))',
    );
    await bench.records.open([target]);
    for (const [no, size, answer] of [
      ['7', '0.5', { status: 'done', result: { records: [{ id: 'x', no: 7, size: 0.5 }], next: null } }],
      ['1.5', '0', failedWith('INTERNAL')],
      ['7', '9007199254740993', failedWith('INTERNAL')],
    ] as const) {
      await bench.records.exec(`insert into TABLE_NAME values ('${A}', 'x', ${no}, ${size})`);
      expect(await bench.records.read(readOf({ target }))).toEqual(answer);
      await bench.records.exec('delete from TABLE_NAME');
    }
  });

  test('if a key is not unique any more, nothing is changed', async () => {
    await bench.records.exec('create table TABLE_NAME (case_id text, id text, text text)');
    await bench.records.exec('create unique index the_key on TABLE_NAME (case_id, id)');
    await bench.records.open([NOTES]);
    await bench.records.exec('drop index the_key');
    for (const text of ['1', '2']) await bench.records.write(writeOf({ id: 'n', text }));
    const put = await bench.records.write(writeOf({ id: 'n', text: '3' }, { mode: 'upsert' }));
    expect(put).toEqual(failedWith('INTERNAL'));
    await bench.records.commit();
    expect(await bench.records.rows('select text from TABLE_NAME order by text')).toEqual([
      { text: '1' },
      { text: '2' },
    ]);
  });

  test('a missing table is INTERNAL for calls that need it', async () => {
    await bench.records.open([NOTES]);
    await bench.records.exec('drop table TABLE_NAME');
    expect(await bench.records.write(writeOf({ id: 'n', text: '' }))).toEqual(failedWith('INTERNAL'));
    expect(await bench.records.read(readOf())).toEqual(failedWith('INTERNAL'));
  });
}

function tableContract(bench: Bench): void {
  test('a target that no table can store is RECORDS_TARGET', async () => {
    const names = [
      'turnpike_effects',
      'sqlite_schema',
      'pg_class',
      'Notes',
      'a.b.c',
      'no"tes',
      'x'.repeat(64),
      'a.',
      '.a',
    ];
    const bad = [
      ...names.map((name) => ({ ...NOTES, name })),
      ...['case_id', 'turnpike_bytes', 'Text', 'a b', 'a"b', '__proto__', '', 'é', 'x'.repeat(64)].map((name) =>
        targetOf(JSON.parse(`{"id":{"type":"string"},${JSON.stringify(name)}:{}}`) as JsonObject),
      ),
      { ...NOTES, key: ['nothing'] },
      { ...NOTES, key: ['id', 'id'] },
      targetOf({ id: TEXT }, {}, ['id']),
      targetOf({ id: {} }),
      targetOf({ id: { type: ['string', 'null'] } }),
      { ...NOTES, record: {} },
      { ...NOTES, record: { type: 'object', properties: { id: TEXT }, required: ['id'] } },
    ];
    for (const target of bad) await expect(bench.records.open([target])).rejects.toEqual(code('RECORDS_TARGET'));
    await expect(bench.records.open([NOTES, { ...NOTES }])).rejects.toEqual(code('RECORDS_TARGET'));
  });

  test('a table without a column, a type or the unique constraint is RECORDS_MISMATCH, with a statement that would fit', async () => {
    const bad = [
      ['case_id text, id text, primary key (case_id, id)', 'no column text'],
      ['id text primary key, text text', 'no column case_id'],
      ['case_id text, id text, text text', 'no unique constraint'],
      ['case_id text, id text, text text, unique (case_id, text)', 'no unique constraint'],
      ['case_id text, id text, text text, unique (case_id, id, text)', 'no unique constraint'],
      ['case_id text, id integer, text text, unique (case_id, id)', 'column id'],
      ['case_id text, id text, text integer, unique (case_id, id)', 'column text'],
    ] as const;
    for (const [columns, what] of bad) {
      await bench.records.exec(`create table TABLE_NAME (${columns})`);
      const error: unknown = await bench.records.open([NOTES]).catch((reason: unknown) => reason);
      expect(error).toEqual(code('RECORDS_MISMATCH'));
      expect(String(error)).toMatch(new RegExp(`${what}.*create table .*"case_id".*primary key`));
      await bench.records.exec('drop table TABLE_NAME');
    }
  });

  test('a partial index, or one over an expression, makes nothing unique', async () => {
    for (const index of [`(case_id, id) where id <> 'x'`, '(case_id, lower(id))']) {
      await bench.records.exec('create table TABLE_NAME (case_id text, id text, text text)');
      await bench.records.exec(`create unique index whatever on TABLE_NAME ${index}`);
      await expect(bench.records.open([NOTES])).rejects.toEqual(code('RECORDS_MISMATCH'));
      await bench.records.exec('drop table TABLE_NAME');
    }
  });

  test('opening again finds the tables, and creates new ones', async () => {
    await bench.records.open([NOTES]);
    await bench.records.write(writeOf({ id: 'n', text: 'kept' }));
    await bench.records.commit();
    await bench.records.open([NOTES, { ...NOTES, name: 'others' }]);
    expect(await recordsOf(bench.records)).toEqual([{ id: 'n', text: 'kept' }]);
  });
}
