// The key of a ledger in PostgreSQL is replaced: no worker runs meanwhile, and none continues with the old key.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readHistoryFile, writeHistoryFile } from '../../../../../src/stores/keys/key-history-file.js';
import { openPostgresStore } from '../../../../../src/stores/postgres/postgres-ledger-store.js';
import { lockRotation } from '../../../../../src/stores/sqlite/writer-lock.js';
import { openTurnpike, winstonLog } from '../../../../../src/index.js';
import { execute, END_WRITER } from '../../../../stores/postgres/postgres-harness.js';
import { Network } from '../../../../stores/postgres/network.js';
import { copySite, createDatabase, type Site } from '../../../../crash/postgres-site.js';
import { editedHistories, type EditedHistory } from '../../../../fixtures/edited-histories.js';
import { startPostgres } from '../../../../fixtures/postgres.js';
import { finish, linesOf, tempFolder, turnpike, write, type Said } from '../../fake-io.js';

const MS_MAX = 120_000;
const ROTATE = ['keys', 'rotate', '--signing', '--actor', 'otto operator', '--role', 'operator'];
const server = await startPostgres({ isDurable: true });
const url = server?.url ?? '';
const describeOnPostgres = server === null ? describe.skip : describe;
afterAll(() => server?.stop());

let folder: string;
/** The keys in their order, the first one first. */
const keys: string[] = [];

const at = (...path: string[]): string => join(folder, ...path);
const here = (...argv: string[]): Promise<Said> => turnpike(folder, argv);
const inHome = (home: string, ...argv: string[]): Promise<Said> => here(...argv, '--home', home);
const vkey = (): string => readFileSync(at('home/keys/ledger.vkey'), 'utf8').trim();
const sql = (text: string) => execute(url, `SET search_path TO turnpike; SET client_min_messages TO error; ${text}`);
const work = (home = 'home'): Promise<Said> =>
  turnpike(folder, ['run', '-', '--home', home], { stdin: [write('/sandbox/a.txt', 'a'), finish()].join('\n') });
const DONE = { code: 0, stderr: '' };

/** A worker of the ledger in this process, as an embedding service is one. */
const openService = async (from = url) =>
  openTurnpike({
    store: await openPostgresStore({ url: from, caseKeysDir: at('home/keys/cases') }),
    keys: at('home/keys'),
    sandbox: at('home/sandbox'),
    control: false,
    log: winstonLog('silent'),
  });

async function collect(name: string): Promise<void> {
  expect(await inHome('home', 'ledger', 'export', `bundle-${name}`)).toMatchObject({ code: 0 });
  writeFileSync(at(`checkpoint-${name}`), (await inHome('home', 'ledger', 'checkpoint')).stdout);
  expect(await inHome('home', 'ledger', 'prove', '@0', '--out', `proof-${name}`)).toMatchObject({ code: 0 });
}

describeOnPostgres('keys rotate --signing on PostgreSQL', () => {
  beforeAll(async () => {
    folder = tempFolder('rotate-pg');
    expect(await here('init', '--store', url, '--home', 'home')).toMatchObject({ code: 0 });
    expect(await work()).toMatchObject({ code: 0 });
    keys.push(vkey());
    await collect('0');
    const joined = ['init', '--store', url, '--keys', at('home/keys')];
    expect(await here(...joined, '--home', 'front', '--without-volume')).toMatchObject({ code: 0 });
    cpSync(at('home/keys'), at('copied-keys'), { recursive: true });
    const copied = ['init', '--store', url, '--keys', at('copied-keys'), '--sandbox', at('home/sandbox')];
    expect(await here(...copied, '--home', 'copied')).toMatchObject({ code: 0 });
    expect(await inHome('copied', 'runs')).toMatchObject({ code: 0 });
    expect(await sql('SELECT rotations FROM meta')).toEqual([{ rotations: 0 }]);
  }, MS_MAX);

  test(
    'C97: is refused while a worker has the ledger open, names it, and changes nothing',
    async () => {
      const service = await openService();
      const said = await inHome('home', ...ROTATE);
      expect([said.code, said.stderr]).toEqual([
        3,
        expect.stringContaining(`process ${process.pid} has the ledger open`),
      ]);
      expect(said.stderr).toContain('stop every worker');
      await expect(service.rotateLedgerKey({ actor: 'otto operator', role: 'operator' })).rejects.toMatchObject({
        code: 'USAGE',
        message: expect.stringContaining('stop all workers'),
      });
      await service.close();
      expect(vkey()).toBe(keys[0]);
      expect(readdirSync(at('home/keys'))).not.toContain('ledger.next.key');
      expect(await sql('SELECT rotations FROM meta')).toEqual([{ rotations: 0 }]);
    },
    MS_MAX,
  );

  test(
    'C97: replaces the key, and a worker whose session was lost meanwhile is refused for good',
    async () => {
      const network = new Network(Number(new URL(url).port));
      const service = await openService(url.replace(/:\d+/, `:${await network.port()}`));
      network.loss = 'of everything';
      await sql(END_WRITER);
      expect(await inHome('home', ...ROTATE)).toMatchObject(DONE);
      keys.push(vkey());
      expect(keys[1]).not.toBe(keys[0]);
      network.loss = 'none';
      await expect(service.startAgent({ case: 'case-local' })).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      await expect(service.restart()).rejects.toMatchObject({
        code: 'LEDGER_CONFLICT',
        message: expect.stringContaining('the key of the ledger was rotated'),
      });
      await service.close();
      network.close();
      const [meta] = await sql('SELECT rotations, is_rotating, vkey FROM meta, installation');
      expect(meta).toEqual({ rotations: 1, is_rotating: false, vkey: keys[1] });
      expect(await inHome('home', 'ledger', 'verify')).toMatchObject(DONE);
    },
    MS_MAX,
  );

  test(
    'C97: a worker with a copy of the old key folder is refused, and one that shares the folder goes on',
    async () => {
      const refused = { code: 3, stderr: expect.stringContaining('is a copy of the key folder from before') };
      for (const argv of [['run', '-'], ['runs'], ['ledger', 'verify'], ROTATE])
        expect(await inHome('copied', ...argv)).toMatchObject(refused);
      expect(await inHome('front', 'runs')).toMatchObject({ code: 0 });
      expect(await inHome('front', 'ledger', 'verify')).toMatchObject(DONE);
      cpSync(at('home/keys'), at('copied-keys'), { recursive: true });
      expect(await work('copied')).toMatchObject({ code: 0 });
      await collect('1');
    },
    MS_MAX,
  );

  test(
    'C97: a process without the volume rotates the key, too',
    async () => {
      expect(await inHome('front', ...ROTATE)).toMatchObject(DONE);
      keys.push(vkey());
      expect(new Set(keys).size).toBe(3);
      expect(await work()).toMatchObject({ code: 0 });
      await collect('2');
      for (const home of ['home', 'front']) expect(await inHome(home, 'ledger', 'verify')).toMatchObject(DONE);
      expect(await inHome('home', 'replay')).toMatchObject({ code: 0 });
      const runs = linesOf((await inHome('home', 'runs', '--json')).stdout);
      expect(runs.filter((line) => line.includes('key-rotation-'))).toHaveLength(2);
      const left = readdirSync(at('home/keys')).filter((name) => /^ledger|^rotation/.test(name));
      expect(left).toEqual(['ledger.key', 'ledger.vkey', 'rotation.lock']);
    },
    MS_MAX,
  );

  test(
    'C97: while a rotation is unfinished no worker joins, unless it is alone and no process is at it',
    async () => {
      await sql('UPDATE meta SET is_rotating = true');
      await expect(openService()).rejects.toMatchObject({
        code: 'LEDGER_UNAVAILABLE',
        message: expect.stringContaining('a rotation of the key of the ledger is not finished'),
      });
      const lock = lockRotation(at('home/keys'));
      const said = await work();
      lock.release();
      expect([said.code, said.stderr]).toEqual([3, expect.stringContaining('wait until the rotation has ended')]);
      expect(await sql('SELECT is_rotating FROM meta')).toEqual([{ is_rotating: true }]);
      expect(await inHome('front', 'runs')).toMatchObject({ code: 0 });
      expect(await work()).toMatchObject({ code: 0 });
      expect(await sql('SELECT is_rotating FROM meta')).toEqual([{ is_rotating: false }]);
      await (await openService()).close();
    },
    MS_MAX,
  );

  test(
    'D15: every bundle, inclusion proof and consistency proof verifies with every key of the history',
    async () => {
      const history = ['--key-history', at('home/keys/key-history.list')];
      expect(await inHome('home', 'ledger', 'prove', '--from', 'checkpoint-0', '--out', 'extends')).toMatchObject({
        code: 0,
      });
      for (const key of keys) {
        const verify = (...argv: string[]) => here(...argv, '--key', key);
        expect(await verify('ledger', 'verify', 'bundle-2', '--no-replay')).toMatchObject(DONE);
        expect(await verify('ledger', 'check-proof', 'extends')).toMatchObject({ code: 0 });
        for (const name of ['0', '1', '2']) {
          expect(await verify('ledger', 'verify', `bundle-${name}`, ...history)).toMatchObject(DONE);
          expect(await verify('ledger', 'check-proof', `proof-${name}`, ...history)).toMatchObject({ code: 0 });
        }
      }
      const later = ['ledger', 'verify', 'bundle-0', '--no-replay', '--key', keys[2] ?? ''];
      expect(await here(...later)).toMatchObject({ code: 1 });
    },
    MS_MAX,
  );

  test(
    'D15: no edited key history is accepted, by a reader or by a worker',
    async () => {
      const file = at('home/keys/key-history.list');
      const notes = readHistoryFile(file);
      const edited: EditedHistory[] = [
        ...editedHistories(notes),
        ['without its end', notes.slice(0, -1)],
        ['missing', []],
      ];
      expect(edited.length).toBeGreaterThan(30);
      for (const [name, forged] of edited) {
        writeHistoryFile(file, forged);
        for (const argv of [
          ['ledger', 'verify'],
          ['run', '-'],
          ['keys', 'list'],
        ]) {
          const { code } = await inHome('home', ...argv);
          // The list reads no ledger, so it cannot know that the history lacks all of its notes.
          const isRefused = code !== 0 || (name === 'missing' && argv[0] === 'keys');
          expect([name, argv, isRefused]).toEqual([name, argv, true]);
        }
      }
      writeHistoryFile(file, notes);
      expect(await inHome('home', 'ledger', 'verify')).toMatchObject(DONE);
    },
    MS_MAX,
  );

  test(
    'C97: a database from before a rotation, with the key folder from after it, continues once its loss is accepted',
    async () => {
      const source = { folder: at('early'), url: await createDatabase(url, 'early') };
      mkdirSync(source.folder);
      const run = (site: Site, ...argv: string[]): Promise<Said> =>
        turnpike(site.folder, [...argv, '--home', 'home'], { stdin: finish() });
      expect(await run(source, 'init', '--store', source.url)).toMatchObject({ code: 0 });
      expect(await run(source, 'run', '-')).toMatchObject({ code: 0 });
      const rotated = await copySite(url, source, at('rotated'));
      expect(await run(rotated, ...ROTATE)).toMatchObject(DONE);
      cpSync(join(rotated.folder, 'home/keys'), join(source.folder, 'home/keys'), { recursive: true });
      // The heads in the key folder are those of the later ledger, and so is the head that the rotation vouches for.
      expect((await run(source, 'run', '-')).stderr).toContain('LEDGER_BELOW_HEAD');
      rmSync(join(source.folder, 'home/keys/heads'), { recursive: true });
      expect((await run(source, 'ledger', 'verify')).stdout).toContain('the log does not record it');
      expect((await run(source, 'run', '-')).stderr).toContain('LEDGER_BELOW_HEAD');
      expect(await run(source, 'failover', 'accept', '--actor', 'otto', '--yes')).toMatchObject({ code: 0 });
      expect(await run(source, 'restore', 'acknowledge', '--actor', 'otto', '--yes')).toMatchObject({ code: 0 });
      expect(await run(source, 'run', '-')).toMatchObject({ code: 0 });
      expect(await run(source, 'ledger', 'verify')).toMatchObject(DONE);
      expect((await run(source, 'runs', '--json')).stdout).toContain('key-rotation-1');
      expect(await run(source, ...ROTATE)).toMatchObject(DONE);
    },
    MS_MAX,
  );
});
