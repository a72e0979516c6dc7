// Heads in a table of another database: what it takes, what it believes, and what a worker does while it is away.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { sendOn } from '../../../src/stores/postgres/postgres-connection.js';
import { openHeadTable } from '../../../src/stores/postgres/workers/postgres-head-table.js';
import { createPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import type { HeadSeal } from '../../../src/engine/ports/ledger/ledger-store.js';
import { createHeadSeal, generateLedgerKey } from '../../../src/home/ledger-key.js';
import { noteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { random } from '../../fixtures/random.js';
import { execute, ledgerPlace } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });
const other = await startPostgres({ isDurable: true });

const LEDGER = 'log+00000000+key';
const ROWS = 'SELECT ledger, worker, size::int AS size FROM turnpike_heads.heads ORDER BY ledger, worker';
const headAt = (size: number) => ({ size, root: sha256(String(size)) });

(server === null || other === null ? describe.skip : describe)('heads in a table', () => {
  const seal = newSeal();
  const url = other?.url ?? '';
  let client: pg.Client;
  beforeAll(async () => {
    client = new pg.Client({ connectionString: server?.url ?? '' });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await server?.stop();
    await other?.stop();
  });
  const open = (isReader = false) => openHeadTable(url, sendOn(client), isReader);
  const empty = () => execute(url, 'TRUNCATE turnpike_heads.heads');

  test('a reader makes no table, and several workers make it once', async () => {
    const reader = await open(true);
    expect(await reader.open({ ledger: () => LEDGER, worker: 'a' }, seal).read()).toBeNull();
    await reader.close();
    expect(await execute(url, `SELECT to_regclass('turnpike_heads.heads') AS found`)).toEqual([{ found: null }]);
    const tables = await Promise.all([open(), open(), open()]);
    for (const table of tables) await table.close();
    expect(await execute(url, ROWS)).toEqual([]);
  });

  test('the highest head of 4 workers counts after 200 writes in any order, and no row falls', async () => {
    const draw = random(19);
    const table = await open();
    const workers = ['a', 'b', 'c', 'd'].map((worker) => table.open({ ledger: () => LEDGER, worker }, seal));
    let highest = 0;
    for (let n = 0; n < 200; n += 1) {
      const size = 1 + Math.floor(draw() * 1_000);
      highest = Math.max(highest, size);
      await workers[Math.floor(draw() * 4)]?.write(headAt(size));
    }
    for (const worker of workers) await worker.close();
    expect(await workers[0]?.read()).toMatchObject(headAt(highest));
    await table.raise(LEDGER, 'a', 1, seal.seal(headAt(1)));
    const rows = (await execute(url, ROWS)) as readonly { readonly worker: string; readonly size: number }[];
    expect(rows.map(({ worker }) => worker)).toEqual(['a', 'b', 'c', 'd']);
    expect(Math.min(...rows.map(({ size }) => size))).toBeGreaterThan(1);
    await expect(execute(url, 'UPDATE turnpike_heads.heads SET size = 1')).rejects.toThrow('older head');
    // Another ledger sees none of them.
    expect(await table.open({ ledger: () => 'other+00000000+key', worker: 'a' }, seal).read()).toBeNull();
    await table.close();
  });

  test('a row that the key has not signed, or of another size, is refused and never believed', async () => {
    const table = await open();
    const heads = table.open({ ledger: () => LEDGER, worker: 'a' }, seal);
    for (const note of [newSeal().seal(headAt(5_000)), seal.seal(headAt(4_999)), '', 'x'.repeat(1_000)]) {
      await empty();
      await execute(url, `INSERT INTO turnpike_heads.heads VALUES ('${LEDGER}', 'b', 5000, '${note}')`);
      await expect(heads.read()).rejects.toMatchObject({
        code: 'LEDGER_TAMPERED',
        message: expect.stringContaining('row of worker b'),
      });
    }
    await empty();
    await table.close();
  });

  test('after the first worker, a user who may only use the table is enough', async () => {
    await execute(
      url,
      `CREATE ROLE user_of_heads LOGIN; GRANT USAGE ON SCHEMA turnpike_heads TO user_of_heads;
       GRANT SELECT, INSERT, UPDATE ON turnpike_heads.heads TO user_of_heads`,
    );
    const narrow = new URL(url);
    narrow.username = 'user_of_heads';
    const table = await openHeadTable(narrow.href, sendOn(client), false);
    const heads = table.open({ ledger: () => LEDGER, worker: 'a' }, seal);
    await heads.write(headAt(7));
    await heads.close();
    expect(await heads.read()).toMatchObject(headAt(7));
    await empty();
    await table.close();
  });

  test('puts aside exactly the heads that the ledger does not contain, over several pages', async () => {
    const table = await open();
    for (let n = 0; n < 250; n += 1) await table.raise(LEDGER, `w${n}`, 1 + n, seal.seal(headAt(1 + n)));
    const moved = await table.putAside(LEDGER, 'lost-1', seal, ({ size }) => Promise.resolve(size <= 120));
    expect(moved).toHaveLength(130);
    expect(moved).toContain('row w249.lost-1 of turnpike_heads.heads');
    expect(await table.open({ ledger: () => LEDGER, worker: 'x' }, seal).read()).toMatchObject(headAt(120));
    expect(await execute(url, ROWS)).toHaveLength(250);
    await empty();
    await table.close();
  });

  test('puts a row of the lost log aside again, if a worker wrote it after the acceptance', async () => {
    const table = await open();
    const names: (readonly string[])[] = [];
    for (let n = 0; n < 3; n += 1) {
      await table.raise(LEDGER, 'a', 9, seal.seal(headAt(9)));
      names.push(await table.putAside(LEDGER, 'lost-1', seal, () => Promise.resolve(false)));
    }
    expect(names).toEqual(['', '.1', '.2'].map((end) => [`row a.lost-1${end} of turnpike_heads.heads`]));
    expect(await execute(url, ROWS)).toHaveLength(3);
    await empty();
    await table.close();
  });

  test('refuses the server of the ledger under each of its names, also for another database', async () => {
    const place = ledgerPlace(server?.url ?? '');
    await execute(server?.url ?? '', 'CREATE DATABASE second');
    const named = [(one: URL) => one, (one: URL) => Object.assign(one, { hostname: 'localhost' })];
    for (const database of ['postgres', 'second'])
      for (const rename of named) {
        const heads = rename(new URL(server?.url ?? ''));
        heads.pathname = `/${database}`;
        await expect(createPostgresStore({ ...place, heads: heads.href })).rejects.toMatchObject({
          code: 'LEDGER_CONFLICT',
          message: expect.stringContaining('name a database of another server'),
        });
        await execute(server?.url ?? '', `DROP SCHEMA IF EXISTS ${place.schema} CASCADE`);
      }
    await place.remove();
  });

  test('while the database is away a running worker goes on and says so, and no worker joins', async () => {
    const table = await open();
    const running = table.open({ ledger: () => LEDGER, worker: 'a' }, seal);
    expect(running.problem?.()).toBeNull();
    await other?.restart(async () => {
      await running.write(headAt(2));
      while (running.problem?.() === null) await sleep(10);
      expect(running.problem?.()).toContain('cannot be written to the other database');
      await running.write(headAt(3));
      await expect(running.read()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      const secret = new URL(url);
      secret.password = 'hidden-secret';
      for (const isReader of [false, true]) {
        const opening: unknown = await openHeadTable(secret.href, sendOn(client), isReader).catch(
          (error: unknown) => error,
        );
        expect(opening).toMatchObject({
          code: 'LEDGER_UNAVAILABLE',
          message: expect.stringMatching(/^the database of heads cannot be used.*start it, or correct its URL/),
        });
        expect((opening as Error).message).not.toContain('hidden-secret');
      }
    });
    // It repeats the write, and needs no further step for that.
    while (running.problem?.() !== null) await sleep(10);
    expect(await running.read()).toMatchObject(headAt(3));
    await running.close();
    await table.close();
  }, 60_000);
});

function newSeal(): HeadSeal {
  const signer = noteSigner(generateLedgerKey());
  if (signer === null) throw new Error('the generated key cannot sign');
  return createHeadSeal(signer);
}
