// An erasure that is killed before each of its disk operations: the case is erased or not, the home opens and verifies,
// and repeating the erasure completes it.

import { beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { finish, initialised, think, turnpike, write } from '../interfaces/cli/fake-io.js';
import { builtCommand } from '../fixtures/build.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

const MS_MAX = 300_000;
const HOOK = pathToFileURL(join(ROOT, 'test/crash/kill-at.mjs')).href;
const SECRET = 'in confidence, and for nobody else';
const folder = diskFolder('erase-crash');
const ERASE = ['ledger', 'erase', 'case-local', '--actor', 'a person', '--yes'];
let program: string;
let model: string;

beforeAll(async () => {
  program = await builtCommand(folder);
  model = await initialised();
  for (const size of [1, 10_000]) {
    const stdin = [write('/sandbox/a.txt', SECRET.repeat(size)), think(), finish()].join('\n');
    expect(await turnpike(model, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
  }
}, MS_MAX);

function erase(name: string, env: Readonly<Record<string, string>>) {
  const place = join(folder, name);
  cpSync(model, place, { recursive: true });
  const argv = ['--import', HOOK, program, ...ERASE];
  const { signal, status } = spawnSync(process.execPath, argv, { cwd: place, env: { ...process.env, ...env } });
  return { place, signal, status };
}

/** The files of the home, without the sandbox, that contain the plaintext. */
const telling = (place: string): readonly string[] =>
  readdirSync(join(place, '.turnpike'), { recursive: true, encoding: 'utf8' }).filter((name) => {
    const path = join(place, '.turnpike', name);
    return !name.startsWith('sandbox') && statSync(path).isFile() && readFileSync(path).includes(SECRET);
  });

test(
  'D14 C35: killed before any of its steps, an erasure has erased the case or not, and repeating it completes it',
  async () => {
    const steps = join(folder, 'steps');
    const whole = erase('whole', { STEPS: steps });
    expect(whole).toMatchObject({ status: 0 });
    const names = JSON.parse(readFileSync(steps, 'utf8')) as string[];
    const begin = names.findIndex((name) => name.startsWith('BEGIN IMMEDIATE; UPDATE wipes'));
    const end = names.findLastIndex((name) => name.startsWith('VACUUM')) + 1;
    expect(begin).toBeGreaterThan(0);
    const found = { before: 0, after: 0 };
    for (let at = begin + 1; at <= end; at += 1) {
      const { place, signal } = erase(`killed-${at}`, { KILL_AT: String(at) });
      const label = `killed before ${names[at - 1]} (${at})`;
      expect([label, signal]).toEqual([label, 'SIGKILL']);
      const verified = await turnpike(place, ['ledger', 'verify']);
      const erased = verified.stdout.includes('by hash alone');
      expect([label, verified.code]).toEqual([label, erased ? 4 : 0]);
      found[erased ? 'after' : 'before'] += 1;
      const keys = readdirSync(join(place, '.turnpike/keys/cases'));
      expect([label, keys.includes('case-local.1.erased')]).toEqual([label, erased]);
      expect([label, (await turnpike(place, ERASE)).code]).toEqual([label, 0]);
      const left = readdirSync(join(place, '.turnpike/keys/cases'));
      expect([label, left.filter((name) => name.endsWith('.key')), telling(place)]).toEqual([label, [], []]);
      expect([label, (await turnpike(place, ['ledger', 'verify'])).code]).toEqual([label, 4]);
      rmSync(place, { recursive: true });
    }
    expect(found.before).toBeGreaterThan(3);
    expect(found.after).toBeGreaterThan(3);
  },
  MS_MAX,
);
