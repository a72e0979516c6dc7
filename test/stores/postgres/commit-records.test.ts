// The records of a commit: one list of columns for the SQL types, the functions that read them, and the parameters.

import { expect, test } from '@jest/globals';
import { COMMIT_RECORDS, recordArray } from '../../../src/stores/postgres/commit-records.js';
import { createLedgerSql } from '../../../src/stores/postgres/postgres-schema.js';

const SQL = createLedgerSql();

test('a record type has its columns in order, without what JSON may leave empty', () => {
  expect(SQL).toContain('CREATE TYPE commit_case AS (case_id text, key_no integer);');
  expect(SQL).toContain('CREATE TYPE label_change AS (append integer, case_id text, version bigint, raised boolean);');
});

test.each(Object.entries(COMMIT_RECORDS))('a function reads every column of %s', (_type, columns) => {
  for (const column of Object.keys(columns)) expect(SQL).toMatch(new RegExp(`\\b[a-z]\\.${column}\\b`));
});

test('an array has the columns in the order of the list, whatever the order of a record', () => {
  const cases = [
    { key_no: 1, case_id: 'case-1' },
    { case_id: 'a, (b)', key_no: 0 },
  ];
  expect(recordArray('commit_case', cases)).toBe('{"(case-1,1)","(\\"a, (b)\\",0)"}');
  expect(recordArray('commit_case', [])).toBe('{}');
});

test('null is nothing, and what a record or an array gives a meaning is quoted', () => {
  const mark = { append: 1, scope: '', name: 'i"\\\\x"', seq: 2, run_id: null, step_index: null, payload_sha256: null };
  expect(recordArray('commit_mark', [mark])).toBe(String.raw`{"(1,\"\",\"i\\\"\\\\\\\\x\\\"\",2,,,)"}`);
});
