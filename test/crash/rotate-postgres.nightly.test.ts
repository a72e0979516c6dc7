// A rotation of the key of a ledger in PostgreSQL that is killed before its operations of the disk and of the database:
// either the old or the new key holds, for readers at once, and the next worker finishes what counts. KILLS=all kills
// before each operation.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { execute } from '../stores/postgres/postgres-harness.js';
import { finish, think, turnpike, write } from '../interfaces/cli/fake-io.js';
import { builtCommand } from '../fixtures/build.js';
import { startPostgres } from '../fixtures/postgres.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';
import { copySite, createDatabase, dropSite, type Site } from './postgres-site.js';

const MS_MAX = 1_800_000;
const HOOK = pathToFileURL(join(ROOT, 'test/crash/kill-at.mjs')).href;
const IN_HOME = ['--home', 'home'];
const ROTATE = ['keys', 'rotate', '--signing', '--actor', 'otto operator', '--role', 'operator', ...IN_HOME];
/** Operations between two kills of the short form. */
const STRIDE = 12;
const server = await startPostgres({ isDurable: true });
const folder = diskFolder('rotate-pg-crash');
let program: string;
let model: Site;
let old: string;

const vkeyIn = (place: string): string => readFileSync(join(place, 'home/keys/ledger.vkey'), 'utf8').trim();
afterAll(() => server?.stop());

/** Two run trees, an erased case, and a rotation before. */
beforeAll(async () => {
  if (server === null) return;
  program = await builtCommand(folder);
  model = { folder: diskFolder('rotate-pg-model'), url: await createDatabase(server.url, 'model') };
  const here = async (argv: readonly string[], stdin = ''): Promise<void> => {
    const { code, stderr } = await turnpike(model.folder, argv, { stdin });
    expect([argv, code, code === 0 ? '' : stderr]).toEqual([argv, 0, '']);
  };
  await here(['init', '--store', model.url, ...IN_HOME]);
  const stdin = [write('/sandbox/a.txt', 'a note'), finish()].join('\n');
  for (const name of ['case-erased', 'case-kept']) await here(['run', '-', '--case', name, ...IN_HOME], stdin);
  await here(['ledger', 'erase', 'case-erased', '--actor', 'otto operator', '--yes', ...IN_HOME]);
  await here(ROTATE);
  await here(['ledger', 'export', 'before', ...IN_HOME]);
  old = vkeyIn(model.folder);
}, MS_MAX);

async function rotate(name: string, env: Readonly<Record<string, string>>) {
  const site = await copySite(server?.url ?? '', model, join(folder, name));
  const argv = ['--import', HOOK, program, ...ROTATE];
  const options = { cwd: site.folder, env: { ...process.env, ...env } };
  const { signal, status, stderr } = spawnSync(process.execPath, argv, options);
  return { site, signal, status, stderr: stderr.toString() };
}

(server === null ? test.skip : test)(
  'C97 D15: killed before any of its steps, a rotation on PostgreSQL has happened or not, and every command works',
  async () => {
    const file = join(folder, 'steps');
    const whole = await rotate('whole', { STEPS: file });
    expect([whole.status, whole.stderr]).toEqual([0, '']);
    const steps = JSON.parse(readFileSync(file, 'utf8')) as string[];
    expect(steps).toContain('UPDATE meta SET is_rotating = false WHER');
    const all = [...steps.keys()].map((index) => index + 1);
    const chosen = process.env['KILLS'] === 'all' ? all : all.filter((at) => at % STRIDE === steps.length % STRIDE);
    const found = { before: 0, unfinished: 0, after: 0 };
    for (const at of chosen) {
      const { site, signal, status } = await rotate(`killed-${at}`, { KILL_AT: String(at) });
      const place = site.folder;
      const label = `killed before ${steps[at - 1]} (${at} of ${steps.length})`;
      // What runs in the background may do less before the end.
      expect([label, signal ?? status]).toEqual([label, signal === null && at > steps.length - 8 ? 0 : 'SIGKILL']);
      const look = async (...argv: string[]): Promise<unknown> => {
        const said = await turnpike(place, argv);
        return [label, said.code, said.code === 0 || said.code === 4 ? '' : said.stdout + said.stderr];
      };
      const keys = join(place, 'home/keys');
      const rotations = readFileSync(join(keys, 'key-history.list'), 'utf8').trimEnd().split('\n').length - 1;
      const isDone = vkeyIn(place) !== old;
      found[rotations === 1 ? 'before' : isDone ? 'after' : 'unfinished'] += 1;
      // Readers first: they change nothing, and see the old or the new state. The erased case is by hash alone.
      expect(await look('ledger', 'verify', ...IN_HOME)).toEqual([label, 4, '']);
      for (const argv of [['runs'], ['keys', 'list'], ['ledger', 'checkpoint']]) {
        expect(await look(...argv, ...IN_HOME)).toEqual([label, 0, '']);
      }
      const { code, stderr } = await turnpike(place, ['run', '-', ...IN_HOME], {
        stdin: [think(), finish()].join('\n'),
      });
      expect([label, code, code === 0 ? '' : stderr]).toEqual([label, 0, '']);
      expect([label, vkeyIn(place) !== old]).toEqual([label, rotations === 2]);
      const [state] = await execute(site.url, 'SELECT is_rotating, vkey FROM turnpike.meta, turnpike.installation');
      expect([label, state]).toEqual([label, { is_rotating: false, vkey: vkeyIn(place) }]);
      for (const name of ['ledger.next.key', 'ledger.retired.key']) {
        expect([label, existsSync(join(keys, name))]).toEqual([label, false]);
      }
      expect(await look('ledger', 'verify', ...IN_HOME)).toEqual([label, 4, '']);
      expect(await look('replay', ...IN_HOME)).toEqual([label, 4, '']);
      expect(await look(...ROTATE)).toEqual([label, 0, '']);
      expect(await look('ledger', 'verify', ...IN_HOME)).toEqual([label, 4, '']);
      expect(await look('ledger', 'verify', 'before', '--key', old)).toEqual([label, 4, '']);
      rmSync(place, { recursive: true });
      await dropSite(server?.url ?? '', site);
    }
    expect(found.before).toBeGreaterThan(1);
    expect(found.unfinished).toBeGreaterThan(1);
  },
  MS_MAX,
);
