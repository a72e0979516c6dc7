// A rotation of the ledger key that is killed before its disk operations: either the old or the new key holds, for
// readers at once, and the next opening finishes what counts. KILLS=all kills before each operation of the rotation.

import { beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { finish, initialised, think, turnpike, write } from '../interfaces/cli/fake-io.js';
import { builtCommand } from '../fixtures/build.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

const MS_MAX = 600_000;
const HOOK = pathToFileURL(join(ROOT, 'test/crash/kill-at.mjs')).href;
const BY = ['--actor', 'otto operator', '--role', 'operator'];
const ROTATE = ['keys', 'rotate', '--signing', ...BY];
/** Operations between two kills of the short form. */
const STRIDE = 5;
const folder = diskFolder('rotate-crash');
let program: string;
let model: string;
let old: string;

const vkeyIn = (place: string): string => readFileSync(join(place, '.turnpike/keys/ledger.vkey'), 'utf8').trim();

/** Two run trees, an erased case, and a rotation before. */
beforeAll(async () => {
  program = await builtCommand(folder);
  model = await initialised();
  const stdin = [write('/sandbox/a.txt', 'a note'), finish()].join('\n');
  for (const name of ['case-erased', 'case-kept']) {
    expect(await turnpike(model, ['run', '-', '--case', name], { stdin })).toMatchObject({ code: 0 });
  }
  const erased = await turnpike(model, ['ledger', 'erase', 'case-erased', '--actor', 'otto operator', '--yes']);
  expect(erased).toMatchObject({ code: 0 });
  expect(await turnpike(model, ROTATE)).toMatchObject({ code: 0 });
  expect(await turnpike(model, ['ledger', 'export', 'before'])).toMatchObject({ code: 0 });
  old = vkeyIn(model);
}, MS_MAX);

/** How many of the last steps may be missing in another run. */
const COMMITS_BY_TIMER = 2;

function rotate(name: string, env: Readonly<Record<string, string>>) {
  const place = join(folder, name);
  cpSync(model, place, { recursive: true });
  const argv = ['--import', HOOK, program, ...ROTATE];
  const { signal, status, stderr } = spawnSync(process.execPath, argv, { cwd: place, env: { ...process.env, ...env } });
  return { place, signal, status, stderr: stderr.toString() };
}

test(
  'C97 D15: killed before any of its steps, a rotation has happened or not, and every command opens the home directory',
  async () => {
    const file = join(folder, 'steps');
    const whole = rotate('whole', { STEPS: file });
    expect([whole.status, whole.stderr]).toEqual([0, '']);
    const steps = JSON.parse(readFileSync(file, 'utf8')) as string[];
    const all = [...steps.keys()].map((index) => index + 1);
    const chosen = process.env['KILLS'] === 'all' ? all : all.filter((at) => at % STRIDE === steps.length % STRIDE);
    const found = { before: 0, unfinished: 0, after: 0 };
    for (const at of chosen) {
      const { place, signal } = rotate(`killed-${at}`, { KILL_AT: String(at) });
      const label = `killed before ${steps[at - 1]} (${at} of ${steps.length})`;
      // A commit more or less: the timer of the store may make the last one of a run.
      if (signal !== null || at <= steps.length - COMMITS_BY_TIMER) expect([label, signal]).toEqual([label, 'SIGKILL']);
      const look = async (...argv: string[]): Promise<unknown> => {
        const said = await turnpike(place, argv);
        return [label, said.code, said.code === 0 || said.code === 4 ? '' : said.stdout + said.stderr];
      };
      const keys = join(place, '.turnpike/keys');
      const rotations = readFileSync(join(keys, 'key-history.list'), 'utf8').trimEnd().split('\n').length - 1;
      const isDone = vkeyIn(place) !== old;
      found[rotations === 1 ? 'before' : isDone ? 'after' : 'unfinished'] += 1;
      // Readers first: they change nothing, and see the old or the new state. The erased case is by hash alone.
      expect(await look('ledger', 'verify')).toEqual([label, 4, '']);
      for (const argv of [['runs'], ['keys', 'list'], ['ledger', 'checkpoint']]) {
        expect(await look(...argv)).toEqual([label, 0, '']);
      }
      const { code } = await turnpike(place, ['run', '-'], { stdin: [think(), finish()].join('\n') });
      expect([label, code]).toEqual([label, 0]);
      expect([label, vkeyIn(place) !== old]).toEqual([label, rotations === 2]);
      for (const name of ['ledger.next.key', 'ledger.retired.key']) {
        expect([label, existsSync(join(keys, name))]).toEqual([label, false]);
      }
      expect(await look('ledger', 'verify')).toEqual([label, 4, '']);
      expect(await look(...ROTATE)).toEqual([label, 0, '']);
      expect(await look('ledger', 'verify')).toEqual([label, 4, '']);
      expect(await look('ledger', 'verify', 'before', '--key', old)).toEqual([label, 4, '']);
      rmSync(place, { recursive: true });
    }
    expect(found.before).toBeGreaterThan(1);
    expect(found.unfinished).toBeGreaterThan(1);
  },
  MS_MAX,
);
