// Commands that only read, on a ledger in PostgreSQL over a role that may only SELECT, as an auditor gets one. They
// print what the owner of the tables sees, and change nothing: no row of a table, no byte of the home directory.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { readBuiltPage, readBuiltTemplate } from '../../../../src/interfaces/inspector/page-folder.js';
import { COMMANDS } from '../../../../src/interfaces/cli/turnpike-command.js';
import { folderState } from '../../../fixtures/folder-state.js';
import { startPostgres, type Postgres } from '../../../fixtures/postgres.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { fastClock, finish, jsonLines, think, turnpike, write, type Said } from '../fake-io.js';
import { CALLS, isReading } from '../reading-calls.js';
import { PLAIN, putSpec } from '../session-fixture.js';

const SCHEMA = 'turnpike';
const server = await startPostgres({ isDurable: true });
const describeOnPostgres = server === null ? describe.skip : describe;
afterAll(() => server?.stop());

/** Calls that other commands of this suite prepare, and an examination of the installation. */
const MORE: readonly (readonly string[])[] = [
  ['doctor'],
  ['doctor', '--json'],
  ['ledger', 'verify', 'bundle'],
  ['replay', 'bundle'],
  ...(readBuiltTemplate() === null ? [] : [['inspect', 'bundle', '--html', 'OUT']]),
];
const ROWS = [...Object.values(CALLS).flat(), ...MORE].map((call) => [call.join(' '), call] as const);
const isServing = ([first, second]: readonly string[]): boolean => first === 'inspect' && second !== 'bundle';

describeOnPostgres('a role that may only read', () => {
  const work = tempFolder('select-only');
  const at = (...path: string[]): string => join(work, ...path);
  const owner = new pg.Client({ connectionString: server?.url });
  let run = '';
  let outs = 0;

  beforeAll(async () => {
    const { url } = server as Postgres;
    const done = async (argv: readonly string[], stdin = ''): Promise<Said> => {
      const said = await turnpike(work, [...argv, '--home', 'home'], { stdin });
      if (said.code !== 0) throw new Error(`${argv.join(' ')}: ${said.stderr}${said.log.join()}`);
      return said;
    };
    await done(['init', '--store', url]);
    await done(['run', '-'], [think(), write('/sandbox/a.md', 'first'), finish()].join('\n'));
    putSpec(work, PLAIN);
    await done(['session', 'start', 'plain.json']);
    await done(['token', '--actor', 'anna', '--role', 'reader', '--right', 'observe']);
    run = jsonLines<{ run_id: string }>((await done(['runs', '--json'])).stdout)[0]?.run_id ?? '';
    await done(['ledger', 'export', 'bundle']);
    await owner.connect();
    for (const statement of [
      'CREATE ROLE auditor LOGIN',
      `GRANT USAGE ON SCHEMA ${SCHEMA} TO auditor`,
      `GRANT SELECT ON ALL TABLES IN SCHEMA ${SCHEMA} TO auditor`,
    ])
      await owner.query(statement);
    cpSync(at('home'), at('audited'), { recursive: true, preserveTimestamps: true });
    const store = at('audited/store.json');
    writeFileSync(store, readFileSync(store, 'utf8').replace('postgres://postgres@', 'postgres://auditor@'));
  }, 120_000);
  afterAll(() => owner.end());

  /** Every row of every table, as one hash for each table. */
  async function tables(): Promise<Readonly<Record<string, string>>> {
    const names = `SELECT tablename FROM pg_tables WHERE schemaname = '${SCHEMA}' ORDER BY tablename`;
    const { rows } = await owner.query<{ tablename: string }>(names);
    const hashes: Record<string, string> = {};
    for (const { tablename } of rows) {
      const all = `string_agg(t::text, E'\\n' ORDER BY t::text)`;
      const query = `SELECT coalesce(md5(${all}), '') AS hash FROM ${SCHEMA}."${tablename}" t`;
      hashes[tablename] = (await owner.query<{ hash: string }>(query)).rows[0]?.hash ?? '';
    }
    return hashes;
  }

  const callOn = (home: string, call: readonly string[]): Promise<Said> => {
    const names: Readonly<Record<string, string>> = { RUN: run, OUT: `out-${(outs += 1)}` };
    const argv = call.map((part) => part.replace(/RUN|OUT/, (name) => names[name] ?? name));
    return turnpike(work, [...argv, '--home', home], { stop: AbortSignal.abort() });
  };

  test('every command with a reading form is called here', () => {
    const reading = COMMANDS.filter(isReading).map(({ name }) => name);
    expect(Object.keys(CALLS).sort()).toEqual(reading.sort());
  });

  test('the server refuses it to write, whatever a command would send', async () => {
    const { url } = server as Postgres;
    const auditor = new pg.Client({ connectionString: url.replace('postgres@', 'auditor@') });
    await auditor.connect();
    try {
      for (const table of Object.keys(await tables())) {
        const name = `${SCHEMA}."${table}"`;
        await expect(auditor.query(`DELETE FROM ${name}`)).rejects.toThrow('permission denied');
        await expect(auditor.query(`INSERT INTO ${name} DEFAULT VALUES`)).rejects.toThrow('permission denied');
        await expect(auditor.query(`SELECT * FROM ${name} LIMIT 1 FOR UPDATE`)).rejects.toThrow('permission denied');
      }
      await expect(auditor.query(`CREATE TABLE ${SCHEMA}.other (a int)`)).rejects.toThrow('permission denied');
    } finally {
      await auditor.end();
    }
  });

  test.each(ROWS)('%s shows what the owner sees, and changes nothing', async (_title, call) => {
    if (isServing(call) && readBuiltPage() === null) return;
    const before = { tables: await tables(), home: folderState(at('audited')) };
    const [audited, owned] = [await callOn('audited', call), await callOn('home', call)];
    expect(audited.log).toEqual([]);
    expect([audited.code, owned.code]).toEqual([0, 0]);
    // The time, the address of a service, and the free space differ.
    const isSame = call[0] !== 'doctor' && call[0] !== 'cluster' && call[0] !== 'inspect' && !call.includes('OUT');
    if (isSame) expect(audited.stdout).toBe(owned.stdout);
    expect({ tables: await tables(), home: folderState(at('audited')) }).toEqual(before);
  });

  test('decision 0050: a reader and a writer of the database show how far they are on a terminal', async () => {
    const onTerminal = (home: string, argv: readonly string[], stdin = ''): Promise<Said> =>
      turnpike(work, [...argv, '--home', home], { stdin, stderrTTY: true, clock: fastClock() });
    const verified = await onTerminal('audited', ['ledger', 'verify']);
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok: /) });
    expect(verified.stderr).toMatch(/reading the ledger: (\d+) of \1 entries, 100 %/);
    const ran = await onTerminal('home', ['run', '-'], [think(), finish()].join('\n'));
    expect(ran).toMatchObject({ code: 0, log: [], stderr: expect.stringContaining('opening the home directory: ') });
  });

  test('a command that writes is refused, and writes nothing', async () => {
    const before = await tables();
    const said = await turnpike(work, ['run', '-', '--home', 'audited'], { stdin: think() });
    expect(said).toMatchObject({ code: 3, stderr: expect.stringMatching(/^LEDGER_UNAVAILABLE: /), stdout: '' });
    expect(await tables()).toEqual(before);
  });
});
