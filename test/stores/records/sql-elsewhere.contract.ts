// What a database other than the ledger's must do: run each effect once, and report its outcome truthfully afterwards.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { sqlDatabase } from '../../../src/stores/records/sql-database.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { code, DONE, failedWith, NOTES, recordsOf, writeOf, type ElsewhereUnderTest } from './sql-harness.js';

export function elsewhereContract(name: string, make: (create?: boolean) => Promise<ElsewhereUnderTest>): void {
  describe(`effects in ${name}`, () => {
    let records: ElsewhereUnderTest;
    beforeEach(async () => {
      records = await make();
      await records.open([NOTES]);
    });
    afterEach(() => records.close());

    const write = writeOf({ id: 'n', text: 'once' }, { idempotency_key: `'"; é __proto__` });

    test('D8: a repeated key returns the first result, and writes nothing', async () => {
      expect(await records.write(write)).toEqual(DONE);
      await records.exec('delete from TABLE_NAME');
      expect(await records.write(write)).toEqual(DONE);
      expect(await records.database.settle(write)).toEqual(DONE);
      expect(await recordsOf(records)).toEqual([]);
    });

    test('a key is never used for another request', async () => {
      const other = { ...write, request_hash: sha256('another') };
      await records.write(write);
      expect(await records.write(other)).toEqual(failedWith('INTERNAL'));
      expect(await records.database.settle(other)).toEqual(failedWith('INTERNAL'));
      expect(await recordsOf(records)).toHaveLength(1);
    });

    test('D8: a write that was settled before it happened never happens', async () => {
      expect(await records.database.settle(write)).toEqual(failedWith('INTERRUPTED'));
      expect(await records.write(write)).toEqual(failedWith('INTERRUPTED'));
      expect(await records.database.settle(write)).toEqual(failedWith('INTERRUPTED'));
      expect(await recordsOf(records)).toEqual([]);
    });

    test('a refused row leaves no note: its key can be used again', async () => {
      await records.write(writeOf({ id: 'n', text: 'there' }));
      expect(await records.write(write)).toEqual(failedWith('ALREADY_EXISTS'));
      expect(await records.rows(`select 1 from turnpike_effects where idempotency_key like '%proto%'`)).toEqual([]);
      await records.exec('delete from TABLE_NAME');
      expect(await records.write(write)).toEqual(DONE);
    });

    test('concurrent writes with one key through several databases are written once', async () => {
      const others = Array.from({ length: 4 }, () => sqlDatabase({ url: records.url }));
      const answers = await Promise.all([...others, ...others].map((one) => one.write(write)));
      for (const other of others) await other.close();
      expect(answers).toEqual(answers.map(() => DONE));
      expect(await recordsOf(records)).toHaveLength(1);
    });

    test('concurrent upserts of one new row all succeed, and leave one row', async () => {
      const ids = Array.from({ length: 40 }, (_, n) => `${n % 4}`);
      const puts = ids.map((id, n) => writeOf({ id, text: `${n}` }, { mode: 'upsert' }));
      expect(await Promise.all(puts.map((put) => records.write(put)))).toEqual(puts.map(() => DONE));
      expect(await recordsOf(records)).toHaveLength(4);
    });

    test('a note that another program changed gives an unknown outcome', async () => {
      await records.write(write);
      for (const change of [`result = 'null'`, `result = '{'`, `result = '{"a":1,"a":2}'`, `state = 'perhaps'`]) {
        await records.exec(`update turnpike_effects set ${change}`);
        expect(await records.database.settle(write)).toEqual({ status: 'unknown' });
      }
    });

    test('without `create` a missing table is RECORDS_MISMATCH; the effect table is created', async () => {
      const strict = await make(false);
      await expect(strict.open([NOTES])).rejects.toEqual(code('RECORDS_MISMATCH'));
      await strict.exec('create table TABLE_NAME (case_id text, id text, text text, unique (case_id, id))');
      await strict.open([NOTES]);
      expect(await strict.rows('select * from turnpike_effects')).toEqual([]);
      await strict.close();
    });

    test('an effect table whose key is not unique is RECORDS_MISMATCH', async () => {
      await records.exec('drop table turnpike_effects');
      await records.exec(
        'create table turnpike_effects (idempotency_key text, request_hash text, state text, result text)',
      );
      await expect(records.open([NOTES])).rejects.toEqual(code('RECORDS_MISMATCH'));
    });

    test('after `close` a write has failed, and its settlement is unknown', async () => {
      const { database } = records;
      await database.close();
      expect(await database.write(write)).toEqual(failedWith('IO_ERROR'));
      await expect(database.open([NOTES])).rejects.toEqual(code('RECORDS_UNREACHABLE'));
      expect(await database.settle(write)).toEqual({ status: 'unknown' });
    });
  });
}
