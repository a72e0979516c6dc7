// What the PostgreSQL store refuses: changes of stored rows, unsafe servers, other schemas, tampered rows.

import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { FORMAT_VERSION } from '../../../src/stores/postgres/postgres-tables.js';
import { APPEND_ONLY_TABLES, ERASABLE_TABLES } from '../../../src/stores/postgres/postgres-schema.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { requireContent } from '../../../src/core/ledger/require-content.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, answered, audited, content, opening, proposalId, scribeOf, type Scribe } from '../../fixtures/entries.js';
import { inputOf, proposalOf } from '../../fixtures/marks.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { A, at, B, bytesOf, code, mark, stepOf } from '../ledger/ledger-bench.js';
import { execute, ledgerPlace, type LedgerPlace } from './postgres-harness.js';
import { TransactionPooler } from './transaction-pooler.js';

const server = await startPostgres({ isDurable: true });

afterAll(() => server?.stop());

(server === null ? describe.skip : describe)('the PostgreSQL store', () => {
  let place: LedgerPlace;
  let opened: { close(): unknown }[];

  const keep = <T extends { close(): unknown }>(one: T): T => {
    opened.push(one);
    return one;
  };
  const create = async (): Promise<LedgerStore> => keep(await createPostgresStore(place));
  const open = async (options = {}): Promise<LedgerStore> => keep(await openPostgresStore({ ...place, ...options }));
  /** A ledger with a step of a case, an ended tree, content above one chunk, a snapshot and marks. */
  const lay = async (): Promise<{ readonly store: LedgerStore; readonly scribe: Scribe }> => {
    const store = await create();
    const scribe = await scribeOf(store);
    const text = 'state of a tree';
    await scribe.write(store, [opening(A), ...stepOf(A), answered(A, LARGE)], {
      proposals: [mark(1)],
      inputs: [{ tree_id: A, input_id: 'mine', seq: 1 }],
      snapshots: [{ tree_id: A, seq: 1, text, mac: sha256(text) }],
    });
    return { store, scribe };
  };

  beforeEach(() => {
    opened = [];
    place = ledgerPlace(server?.url ?? '');
  });
  afterEach(async () => {
    for (const one of opened.toReversed()) await one.close();
    await place.remove();
  });

  describe('stored rows', () => {
    test.each([...APPEND_ONLY_TABLES, ...ERASABLE_TABLES])('%s: no row is changed or removed', async (table) => {
      await lay();
      const [column] = (await place.exec(
        `SELECT attname AS name FROM pg_attribute WHERE attrelid = '${table}'::regclass AND attnum = 1`,
      )) as [{ name: string }];
      for (const change of [
        `UPDATE ${table} SET ${column.name} = ${column.name}`,
        `DELETE FROM ${table}`,
        `TRUNCATE ${table}`,
      ]) {
        await expect(place.exec(change)).rejects.toEqual(code('TP003'));
      }
    });

    test.each(['sha256', 'case_id', 'kind', 'byte_size', 'key_no'])(
      'the %s of a content is not changed, not even together with its bytes',
      async (column) => {
        await lay();
        const value = column === 'sha256' ? `'\\x00'` : column === 'case_id' || column === 'kind' ? `'other'` : '99';
        for (const more of ['', ', bytes = NULL']) {
          await expect(place.exec(`UPDATE artifacts SET ${column} = ${value}${more}`)).rejects.toEqual(code('TP003'));
        }
        await expect(place.exec(`UPDATE artifacts SET bytes = 'other'`)).rejects.toEqual(code('TP003'));
      },
    );

    test('S4-86: a ledger without one of its triggers is not opened for writing, but can be read', async () => {
      await lay();
      await place.exec('ALTER TABLE blocks DISABLE TRIGGER guard_rows');
      await expect(open()).rejects.toEqual(code('LEDGER_TAMPERED'));
      expect(await all((await open({ readOnly: true })).log())).toHaveLength(11);
    });
  });

  describe('servers', () => {
    const setting = (name: string, value: string) =>
      execute(server?.url ?? '', `ALTER SYSTEM SET ${name} = ${value}`).then(() =>
        execute(server?.url ?? '', 'SELECT pg_reload_conf(), pg_sleep(0.3)'),
      );

    test.each(['full_page_writes', 'synchronous_commit'])('%s = off is refused, except for readers', async (name) => {
      await lay();
      await setting(name, 'off');
      try {
        await expect(open()).rejects.toMatchObject({
          code: 'LEDGER_UNAVAILABLE',
          message: expect.stringContaining(`set ${name} = on`),
        });
        await open({ readOnly: true });
      } finally {
        await setting(name, 'on');
      }
      await open();
    });

    test('fsync = off is refused', async () => {
      const careless = await startPostgres();
      try {
        const refusal = createPostgresStore({ ...place, url: careless?.url ?? '' });
        await expect(refusal).rejects.toMatchObject({
          code: 'LEDGER_UNAVAILABLE',
          message: expect.stringContaining('set fsync = on'),
        });
      } finally {
        await careless?.stop();
      }
    });

    test('a pooler that gives each transaction another session is refused', async () => {
      await lay();
      const pooler = keep(new TransactionPooler(Number(new URL(place.url).port)));
      const url = new URL(place.url);
      url.port = String(await pooler.port());
      await expect(open({ url: url.href })).rejects.toMatchObject({
        code: 'LEDGER_UNAVAILABLE',
        message: expect.stringContaining('session pooling'),
      });
    });

    test('a missing server is LEDGER_UNAVAILABLE', async () => {
      await expect(open({ url: 'postgres://127.0.0.1:1/missing' })).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    });

    test('the session of the writer has a limit for everything, and the server notices within 3 s that it is lost', async () => {
      const { store, scribe } = await lay();
      const names = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'tcp_user_timeout'];
      const probes = ['tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count'];
      await place.exec(`CREATE TABLE settings (name text, value text);
        CREATE FUNCTION read_settings() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO settings SELECT n, current_setting(n)
          FROM unnest('{${[...names, ...probes].join()}}'::text[]) AS n; RETURN NEW; END $$;
        CREATE TRIGGER settings BEFORE INSERT ON pending FOR EACH ROW EXECUTE FUNCTION read_settings()`);
      await store.commit(scribe.next([audited(A)]));
      const rows = (await place.exec('SELECT name, value FROM settings')) as { name: string; value: string }[];
      const values = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
      for (const name of names) expect(values[name]).toMatch(/^[1-9]\d*(?:ms|s|min)?$/);
      const [idle, interval, count] = probes.map((name) => Number(values[name]));
      expect(idle! + interval! * count!).toBe(3);
    });
  });

  describe('schemas', () => {
    test('a missing ledger is not opened, and opening does not create it', async () => {
      for (const readOnly of [true, false]) {
        await expect(open({ readOnly })).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
      }
      const schemas = `SELECT count(*) AS n FROM pg_namespace WHERE nspname = '${place.schema}'`;
      expect(await execute(place.url, schemas)).toEqual([{ n: '0' }]);
    });

    test('an existing ledger is not created again', async () => {
      const { store } = await lay();
      await expect(create()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
      expect(await store.head()).toMatchObject({ size: 11 });
    });

    test('of two processes that create a ledger at once, one succeeds', async () => {
      const ends = await Promise.allSettled([create(), create(), create()]);
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const end of ends) {
        if (end.status === 'fulfilled') continue;
        expect(end.reason).toMatchObject({ message: expect.stringContaining('has tables already') });
      }
    });

    test('the tables of another program are neither used nor changed', async () => {
      await execute(place.url, `CREATE SCHEMA ${place.schema}; CREATE TABLE ${place.schema}.meta (version text)`);
      await expect(open()).rejects.toEqual(code('LEDGER_TAMPERED'));
      await expect(create()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
      const columns = `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = '${place.schema}'`;
      expect(await execute(place.url, columns)).toEqual([{ name: 'version' }]);
    });

    test('a ledger of a newer format is refused, and the message says what to do', async () => {
      await lay();
      await place.exec(`UPDATE meta SET ledger_format = ${FORMAT_VERSION + 1}`);
      for (const readOnly of [true, false]) {
        await expect(open({ readOnly })).rejects.toMatchObject({
          code: 'LEDGER_UNSUPPORTED',
          message: expect.stringContaining('use the version that wrote it'),
        });
      }
    });

    test.each(['', 'Upper', '1st', 'a-b', 'a"b', 'pg_own', 'x'.repeat(64)])('schema %j is refused', async (schema) => {
      await expect(open({ schema })).rejects.toEqual(code('USAGE'));
    });
  });

  describe('rows that were tampered with', () => {
    const tamper = (sql: string) => place.exec(`SET session_replication_role = replica; ${sql}`);

    test.each<[string, string, (store: LedgerStore) => Promise<unknown>]>([
      ['the head is missing', 'DELETE FROM head', (store) => store.head()],
      [
        'the root of the head is empty',
        `ALTER TABLE head ALTER root DROP NOT NULL; UPDATE head SET root = NULL`,
        (store) => store.head(),
      ],
      ['a block is missing', 'DELETE FROM blocks', (store) => all(store.log())],
      ['a position is negative', 'UPDATE blocks SET seq = -1', (store) => all(store.tree(A))],
      ['entries of contents are missing', `UPDATE blocks SET artifact_entries = '{}'`, (store) => all(store.tree(A))],
      ['a content is missing', 'DELETE FROM artifacts', (store) => store.artifactsOf(at(A, 0))],
      ['a content has changed', `UPDATE artifacts SET bytes = 'x'`, (store) => store.artifactsOf(at(A, 0))],
      [
        'a content has other bytes of the same size',
        'UPDATE artifacts SET bytes = set_byte(bytes, 0, get_byte(bytes, 0) # 1)',
        (store) => store.artifactsOf(at(A, 0)),
      ],
      ['a content has another size', 'UPDATE artifacts SET byte_size = 1', (store) => store.artifactsOf(at(A, 0))],
      ['a content has an unknown kind', `UPDATE artifacts SET kind = 'x'`, (store) => store.artifactsOf(at(A, 0))],
      ['a content has lost its bytes', 'UPDATE artifacts SET bytes = NULL', (store) => store.artifactsOf(at(A, 1))],
      ['a content names a missing key', 'UPDATE artifacts SET key_no = 7', (store) => store.artifactsOf(at(A, 1))],
      ['a content names a path', `UPDATE artifacts SET case_id = '../../etc'`, (store) => store.artifactsOf(at(A, 1))],
      ['a chunk is missing', 'DELETE FROM artifact_chunks', (store) => store.artifactsOf(at(A, 10))],
      ['a mark has lost its run', 'UPDATE marks SET run_id = NULL', (store) => proposalOf(store, A, proposalId(1))],
      ['a mark of an input has a run', `UPDATE marks SET run_id = 'x'`, (store) => inputOf(store, A, 'mine')],
      ['a table is missing', 'DROP TABLE marks', (store) => inputOf(store, A, 'mine')],
    ])('%s: LEDGER_TAMPERED', async (_what, sql, read) => {
      const { store } = await lay();
      await read(store);
      await tamper(sql);
      await expect(read(await open({ readOnly: true }))).rejects.toEqual(code('LEDGER_TAMPERED'));
    });

    test('a block that lost entries, or has too many, is read to its end, once', async () => {
      const { store } = await lay();
      await tamper(`UPDATE blocks SET texts = 'x', types = 'input', leaf_hashes = substring(leaf_hashes FOR 32)`);
      expect(await all(store.log())).toHaveLength(1);
      expect(await all(store.tree(A))).toHaveLength(1);
      await tamper(`UPDATE blocks SET texts = repeat(E'x\\n', 50)`);
      expect(await all(store.log())).toHaveLength(51);
      expect(await all(store.tree(A))).toHaveLength(51);
    });

    test('a snapshot that cannot be decrypted or has other bytes is not the snapshot of its hash', async () => {
      const { store } = await lay();
      await tamper(`UPDATE snapshots SET bytes = 'forged'`);
      const found = await store.snapshots.load(A);
      expect(found === null ? null : sha256(found.text) === found.mac).not.toBe(true);
    });
  });

  describe('content at rest', () => {
    test('the database has neither the content nor the snapshot of a case in plain text, nor a key', async () => {
      const { store, scribe } = await lay();
      await scribe.write(store, [answered(A, content('result', 'top secret'))]);
      for (const table of ['artifacts', 'artifact_chunks', 'snapshots']) {
        for (const text of ['top secret', 'state of a tree', 'result 0']) {
          const found = `SELECT count(*) AS n FROM ${table} WHERE position(convert_to('${text}', 'UTF8') IN bytes) > 0`;
          expect(await place.exec(found)).toEqual([{ n: '0' }]);
        }
      }
      expect(existsSync(`${place.caseKeysDir}/case-0001.1.key`)).toBe(true);
      expect(await store.snapshots.load(A)).toMatchObject({ text: 'state of a tree' });
    });

    test('D14: an erasure leaves no bytes of the case, and the numbers of later contents are higher', async () => {
      const { store, scribe } = await lay();
      const erasure = { case_id: 'case-0001', tree_ids: [A], at: '2026-01-01T00:00:00.000Z', by: 'operator' };
      expect(await store.erase(erasure)).toMatchObject({ contents: 3 });
      const left = `SELECT count(*) AS n FROM artifacts WHERE case_id IS NOT NULL AND bytes IS NOT NULL`;
      expect(await place.exec(left)).toEqual([{ n: '0' }]);
      expect(await place.exec('SELECT count(*) AS n FROM artifact_chunks WHERE bytes IS NOT NULL')).toEqual([
        { n: '0' },
      ]);
      expect(await place.exec('SELECT erased_key FROM cases')).toEqual([{ erased_key: 1 }]);
      await scribe.write(store, [answered(A, content('result', 'later'))]);
      expect(bytesOf(requireContent(await store.artifactsOf(at(A, 11))))).toEqual(['later']);
    });

    test('D14: an erasure that fails before the key is destroyed erases nothing', async () => {
      const { store } = await lay();
      await place.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
        CREATE TRIGGER refuse BEFORE DELETE ON snapshots FOR EACH ROW EXECUTE FUNCTION refuse()`);
      const erasure = { case_id: 'case-0001', tree_ids: [A], at: '2026-01-01T00:00:00.000Z', by: 'operator' };
      await expect(store.erase(erasure)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
      expect(bytesOf(requireContent(await store.artifactsOf(at(A, 1))))).toEqual(['{"n":0}']);
      await place.exec('DROP TRIGGER refuse ON snapshots');
      expect(await store.erase(erasure)).toMatchObject({ contents: 3 });
      expect(await store.artifactsOf(at(A, 1))).toMatchObject([{ withheld: 'erased' }]);
    });

    test('the policies of many trees are stored once', async () => {
      const { store, scribe } = await lay();
      for (let n = 0; n < 3; n += 1) await scribe.write(store, n === 0 ? [opening(B)] : [audited(B)]);
      expect(await place.exec('SELECT count(*) AS n FROM artifacts WHERE case_id IS NULL')).toEqual([{ n: '4' }]);
    });
  });

  test('ids and texts with any characters come back as they were', async () => {
    const { store, scribe } = await lay();
    const ids = ['\0', '\ud800', '\ufffd', 'ü "\\{},', '\n'];
    const inputs = ids.map((input_id, n) => ({ tree_id: A, input_id, seq: n }));
    await scribe.write(store, [audited(A)], { inputs });
    expect(await store.marks(inputs)).toEqual(inputs);
    expect(await all(store.tree('\0'))).toEqual([]);
    expect(await store.artifact('\0', sha256(''))).toBeNull();
  });

  test('a store that was opened for reading refuses to write', async () => {
    await lay();
    const reader = await open({ readOnly: true });
    await expect(reader.acquire()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await expect(reader.integrate({ from: 0, appends: [], head: await reader.head() })).rejects.toEqual(
      code('LEDGER_CONFLICT'),
    );
  });
});

/** Above one chunk of a content. */
const LARGE = content('file_content', new Uint8Array(1_100_000).fill(7));
