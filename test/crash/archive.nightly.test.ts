// Archiving that is killed before each of its disk operations: the entries are in the ledger, or in the file.

import { beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { finish, initialised, think, turnpike, write } from '../interfaces/cli/fake-io.js';
import { builtCommand } from '../fixtures/build.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

const MS_MAX = 300_000;
const HOOK = pathToFileURL(join(ROOT, 'test/crash/kill-at.mjs')).href;
const folder = diskFolder('archive-crash');
let program: string;
let model: string;

/** Two run trees, with content in rows and in files. */
beforeAll(async () => {
  program = await builtCommand(folder);
  model = await initialised();
  for (const size of [10, 400_000]) {
    const stdin = [write('/sandbox/a.txt', 'x'.repeat(size)), think(), finish()].join('\n');
    expect(await turnpike(model, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
  }
}, MS_MAX);

/** Archives in a separate process, in a copy of the model. */
function archive(name: string, env: Readonly<Record<string, string>>) {
  const place = join(folder, name);
  cpSync(model, place, { recursive: true });
  const argv = ['--import', HOOK, program, 'ledger', 'archive', 'one'];
  const { signal, status, stderr } = spawnSync(process.execPath, argv, { cwd: place, env: { ...process.env, ...env } });
  return { place, signal, status, stderr: stderr.toString() };
}

/** The tested kill points: around every operation that changes the state of the disk. */
function moments(steps: readonly string[]): readonly number[] {
  const first = (name: string): number => steps.findIndex((step) => step.startsWith(name)) + 1;
  const last = (name: string): number => steps.findLastIndex((step) => step.startsWith(name)) + 1;
  const committed = first('INSERT INTO archives') + 1;
  return [
    ...['file appendFile', 'file sync', 'linkSync', 'rmSync', 'fsyncSync'].map(first),
    ...['INSERT INTO archived_trees', 'DELETE FROM blocks', 'CREATE TRIGGER'].map(first),
    ...[last('rmSync'), committed, committed + 1, last('unlinkSync'), last('VACUUM')],
  ];
}

const contents = (place: string): readonly string[] =>
  readdirSync(join(place, '.turnpike/artifacts'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /[0-9a-f]{64}/.test(name),
  );

test(
  'C35 D2 D15: killed before any of its steps, archiving leaves a home that opens and verifies, and a whole FILE or none',
  async () => {
    const steps = join(folder, 'steps');
    const whole = archive('whole', { STEPS: steps });
    expect(whole).toMatchObject({ status: 0 });
    expect(contents(whole.place)).toEqual([]);
    const names = JSON.parse(readFileSync(steps, 'utf8')) as string[];
    expect(names).toEqual(expect.arrayContaining(['linkSync', 'unlinkSync', 'COMMIT', 'VACUUM', 'file sync']));
    const tried = moments(names);
    const found = { before: 0, after: 0 };
    for (const at of tried) {
      const { place, signal } = archive(`killed-${at}`, { KILL_AT: String(at) });
      const label = `killed before ${names[at - 1]} (${at})`;
      expect([label, signal]).toEqual([label, 'SIGKILL']);
      const look = async (...argv: string[]) => [label, (await turnpike(place, argv)).code];
      const { code: verified, stdout } = await turnpike(place, ['ledger', 'verify']);
      const gone = stdout.includes('are archived');
      expect([label, verified]).toEqual([label, gone ? 4 : 0]);
      const key = join(place, '.turnpike/keys/ledger.vkey');
      if (existsSync(join(place, 'one')))
        expect(await look('ledger', 'verify', 'one', '--key', key)).toEqual([label, 0]);
      // Removed entries are in the file; the next archiving archives the present ones, and removes leftover files.
      found[gone ? 'after' : 'before'] += 1;
      expect(await look('ledger', 'archive', 'two')).toEqual([label, 0]);
      expect([label, existsSync(join(place, 'two'))]).toEqual([label, !gone]);
      expect([label, contents(place)]).toEqual([label, []]);
      const { code } = await turnpike(place, ['run', '-'], { stdin: [think(), finish()].join('\n') });
      expect([label, code]).toEqual([label, 0]);
      expect(await look('ledger', 'verify', '--archive', gone ? 'one' : 'two')).toEqual([label, 0]);
      rmSync(place, { recursive: true });
    }
    expect(found.before).toBeGreaterThan(5);
    expect(found.after).toBeGreaterThan(1);
  },
  MS_MAX,
);
