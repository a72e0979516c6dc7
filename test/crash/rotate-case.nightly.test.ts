// A rotation of case keys that is killed before its disk operations and its transactions: all content stays readable at
// once, and the same command finishes it. KILLS=all kills before each operation of the rotation.
// K5 is an invariant of case-keys.ts, C1 to C3 are those of rotate-case-keys.ts.

import { beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { caseCipher } from '../../src/stores/keys/case-keys.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { finish, initialised, jsonLines, read, turnpike, write } from '../interfaces/cli/fake-io.js';
import { builtCommand } from '../fixtures/build.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

const MS_MAX = 900_000;
const HOOK = pathToFileURL(join(ROOT, 'test/crash/kill-at.mjs')).href;
const BY = ['--actor', 'otto operator', '--role', 'operator'];
const ROTATE = ['keys', 'rotate', '--cases', ...BY];
/** Operations between two kills of the short form. */
const STRIDE = 5;
const JOINED_COMMITS = 4;
const LARGE = Array.from({ length: 3 }, (_, at) => `large ${at} ${'x'.repeat(270_000)}`);
const folder = diskFolder('rotate-case-crash');
let program: string;
let model: string;
/** What large contents look like under the first key of `case-kept`. */
let sealed: readonly Buffer[];

/** Two cases with small and large content, one with an erasure before, and one that is erased. */
beforeAll(async () => {
  program = await builtCommand(folder);
  model = await initialised();
  for (const name of ['case-erased', 'case-again', 'case-kept']) {
    const steps = LARGE.flatMap((text, at) => [write(`/sandbox/${at}.txt`, text), read(`/sandbox/${at}.txt`)]);
    const stdin = [...steps, finish()].join('\n');
    expect(await turnpike(model, ['run', '-', '--case', name], { stdin })).toMatchObject({ code: 0 });
    if (name === 'case-kept') continue;
    const erased = await turnpike(model, ['ledger', 'erase', name, '--actor', 'otto operator', '--yes']);
    expect(erased).toMatchObject({ code: 0 });
  }
  const stdin = [write('/sandbox/b.txt', 'again'), finish()].join('\n');
  expect(await turnpike(model, ['run', '-', '--case', 'case-again'], { stdin })).toMatchObject({ code: 0 });
  const line = readFileSync(join(model, '.turnpike/keys/cases/case-kept.1.key'), 'utf8').trim();
  const cipher = caseCipher(Buffer.from(line.split(' ')[1] ?? '', 'base64'));
  sealed = LARGE.map((text) => cipher.seal(Buffer.from(text), Buffer.from(sha256(text), 'hex')).subarray(0, 24));
}, MS_MAX);

function rotate(name: string, env: Readonly<Record<string, string>>) {
  const place = join(folder, name);
  cpSync(model, place, { recursive: true });
  const argv = ['--import', HOOK, program, ...ROTATE];
  const { signal, status, stderr } = spawnSync(process.execPath, argv, { cwd: place, env: { ...process.env, ...env } });
  return { place, signal, status, stderr: stderr.toString() };
}

const keysIn = (place: string): readonly string[] =>
  readdirSync(join(place, '.turnpike/keys/cases')).filter((name) => /\.(?:key|replaced)$/.test(name));

/** Whether any file of the home has content under the first key. */
const hasOld = (place: string): boolean =>
  readdirSync(join(place, '.turnpike'), { recursive: true, encoding: 'utf8' }).some((name) => {
    const path = join(place, '.turnpike', name);
    if (!statSync(path).isFile()) return false;
    const bytes = readFileSync(path);
    return sealed.some((part) => bytes.includes(part));
  });

/** The contents that the ledger shows, by hash alone where they are erased. */
async function exported(place: string): Promise<readonly unknown[]> {
  const name = `export-${Math.random()}`;
  expect(await turnpike(place, ['ledger', 'export', name])).toMatchObject({ code: 0 });
  const lines = jsonLines(readFileSync(join(place, name), 'utf8'));
  rmSync(join(place, name));
  return lines.filter((line) => 'entry' in line);
}

test(
  'K5 C1-C3: killed before any of its steps, a rotation of case keys loses nothing, and the same command finishes it',
  async () => {
    const file = join(folder, 'steps');
    const whole = rotate('whole', { STEPS: file });
    expect([whole.status, whole.stderr]).toEqual([0, '']);
    expect(keysIn(whole.place).filter((name) => name.endsWith('.key'))).toEqual([
      'case-again.3.key',
      'case-kept.2.key',
    ]);
    expect(hasOld(whole.place)).toBe(false);
    const steps = JSON.parse(readFileSync(file, 'utf8')) as string[];
    const all = [...steps.keys()].map((index) => index + 1);
    const chosen = process.env['KILLS'] === 'all' ? all : all.filter((at) => at % STRIDE === steps.length % STRIDE);
    const before = await exported(model);
    const found = { before: 0, unfinished: 0, after: 0 };
    for (const at of chosen) {
      const { place, signal, status } = rotate(`killed-${at}`, { KILL_AT: String(at) });
      const label = `killed before ${steps[at - 1]} (${at} of ${steps.length})`;
      // Entries that are committed together differ from run to run, so a run may end in fewer steps.
      const hasEnded = at > steps.length - JOINED_COMMITS && status === 0;
      expect([label, hasEnded ? 'SIGKILL' : signal]).toEqual([label, 'SIGKILL']);
      const look = async (...argv: string[]): Promise<unknown> => {
        const said = await turnpike(place, argv);
        return [label, said.code, said.code === 0 || said.code === 4 ? '' : said.stdout + said.stderr];
      };
      const keys = keysIn(place);
      const isBegun = keys.some((name) => name.endsWith('.replaced'));
      const isLeft = keys.includes('case-kept.1.key') || keys.includes('case-again.2.key');
      found[!isBegun ? 'before' : isLeft ? 'unfinished' : 'after'] += 1;
      // Readers first: they change nothing.
      expect(await look('ledger', 'verify')).toEqual([label, 4, '']);
      expect(await look('replay')).toEqual([label, 4, '']);
      expect([label, (await exported(place)).slice(0, before.length)]).toEqual([label, before]);
      expect(await look('keys', 'list')).toEqual([label, 0, '']);
      const stdin = [write('/sandbox/c.txt', `after ${at}`), read('/sandbox/c.txt'), finish()].join('\n');
      const { code } = await turnpike(place, ['run', '-', '--case', 'case-kept'], { stdin });
      expect([label, code]).toEqual([label, 0]);
      expect(await look('ledger', 'verify')).toEqual([label, 4, '']);
      expect(await look(...ROTATE)).toEqual([label, 0, '']);
      expect([label, hasOld(place)]).toEqual([label, false]);
      const left = keysIn(place).filter((name) => name.endsWith('.key'));
      expect([label, left.map((name) => name.replace(/\.\d+\.key$/, ''))]).toEqual([
        label,
        ['case-again', 'case-kept'],
      ]);
      expect(await look('ledger', 'verify')).toEqual([label, 4, '']);
      expect(await look('replay')).toEqual([label, 4, '']);
      expect([label, (await exported(place)).slice(0, before.length)]).toEqual([label, before]);
      expect((await turnpike(place, ['doctor'])).stdout).toContain('no replaced key of a case exists');
      rmSync(place, { recursive: true });
    }
    process.stdout.write(
      `case key rotation: ${chosen.length} kills of ${steps.length} steps: ${JSON.stringify(found)}\n`,
    );
    expect(found.before).toBeGreaterThan(1);
    expect(found.unfinished).toBeGreaterThan(1);
  },
  MS_MAX,
);
