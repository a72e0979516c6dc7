// Random rotations, of which many are killed, between work, erasures and exports. After each, the ledger verifies, and
// every bundle that was ever exported verifies with the key of its time, and with every other key through the history.

import { beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { finish, initialised, turnpike, write, type Said } from '../interfaces/cli/fake-io.js';
import { builtCommand } from '../fixtures/build.js';
import { random as createRandom } from '../fixtures/random.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

const MS_MAX = 600_000;
const ROUNDS = 12;
/** Operations of the disk in a rotation, with some to spare: a kill after the last one does not happen. */
const STEPS_MAX = 64;
const HOOK = pathToFileURL(join(ROOT, 'test/crash/kill-at.mjs')).href;
const ROTATE = ['keys', 'rotate', '--signing', '--actor', 'otto operator', '--role', 'operator'];
let program: string;
let home: string;

beforeAll(async () => {
  program = await builtCommand(diskFolder('rotations'));
  home = await initialised();
}, MS_MAX);

const here = (...argv: string[]): Promise<Said> => turnpike(home, argv);
const keysIn = (name: string): string => join(home, '.turnpike/keys', name);
const vkey = (): string => readFileSync(keysIn('ledger.vkey'), 'utf8').trim();

test(
  'C97 D15: after random rotations and kills, every bundle verifies with every key of its log',
  async () => {
    const seed = Number(process.env['SEED'] ?? 58);
    const random = createRandom(seed);
    const keys = [vkey()];
    const bundles: { readonly name: string; readonly key: string }[] = [];
    let killed = 0;
    for (let round = 1; round <= ROUNDS; round += 1) {
      const label = `seed ${seed}, round ${round}`;
      const at = 1 + Math.floor(random() * STEPS_MAX);
      const argv = ['--import', HOOK, program, ...ROTATE];
      const env = { ...process.env, KILL_AT: String(at) };
      const { signal, status } = spawnSync(process.execPath, argv, { cwd: home, env });
      expect([label, signal ?? status]).toEqual([label, signal === null ? 0 : 'SIGKILL']);
      killed += signal === null ? 0 : 1;
      expect([label, (await here('ledger', 'verify')).code]).toEqual([label, round > 2 ? 4 : 0]);
      const name = `case-${round}`;
      const stdin = [write('/sandbox/a.txt', label), finish()].join('\n');
      expect([label, (await turnpike(home, ['run', '-', '--case', name], { stdin })).code]).toEqual([label, 0]);
      if (round === 2 || random() < 0.3) {
        const erased = await here('ledger', 'erase', name, '--actor', 'otto operator', '--yes');
        expect([label, erased.code, erased.stderr]).toEqual([label, 0, '']);
      }
      if (!keys.includes(vkey())) keys.push(vkey());
      expect([label, (await here('ledger', 'export', `bundle-${round}`)).code]).toEqual([label, 0]);
      bundles.push({ name: `bundle-${round}`, key: vkey() });
    }
    expect(killed).toBeGreaterThan(ROUNDS / 3);
    expect(keys.length).toBeGreaterThan(2);
    for (const { name, key } of bundles) {
      const verify = ['ledger', 'verify', name, '--no-replay', '--key'];
      const own = await here(...verify, key);
      expect([seed, name, own.code === 0 || own.code === 4]).toEqual([seed, name, true]);
      for (const other of keys) {
        const said = await here(...verify, other, '--key-history', keysIn('key-history.list'));
        expect([seed, name, said.code, said.stdout]).toEqual([seed, name, own.code, own.stdout]);
      }
    }
  },
  MS_MAX,
);
