// What `turnpike init --template` creates works with the packed package: each printed command and each step of
// TURNPIKE.md, pasted into a shell in an empty folder.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { TEMPLATES } from '../../src/interfaces/cli/templates.js';
import { installedPackage } from '../fixtures/installed-package.js';
import { diskFolder } from '../fixtures/temp-folder.js';

const MS_MAX = 300_000;
const packed = diskFolder('packed');

/** Programs in `packed` find the package and its dependencies. */
beforeAll(async () => {
  symlinkSync(join(await installedPackage(), 'node_modules'), join(packed, 'node_modules'));
}, MS_MAX);

/** Pastes a line into a shell. @throws if it fails */
function paste(line: string, cwd: string): string {
  const env = { PATH: `${join(packed, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}` };
  const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd, env, encoding: 'utf8', timeout: 60_000 });
  expect({ line, status, stderr: status === 0 ? '' : stderr + stdout }).toEqual({ line, status: 0, stderr: '' });
  return stdout;
}

/** The indented lines of the printed text. */
const commandsIn = (text: string): readonly string[] =>
  text.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.slice(2)] : []));

/** The lines of the shell blocks of a page. */
const stepsOf = (page: string): readonly string[] =>
  [...page.matchAll(/^```sh\n([^]*?)^```/gm)].flatMap(([, block = '']) => block.trim().split('\n'));

describe.each(Object.keys(TEMPLATES))('the template %s', (name) => {
  const folder = join(packed, name);
  const init = `turnpike init --template ${name}`;

  test(
    'every command that init prints works when it is pasted',
    () => {
      mkdirSync(folder);
      const commands = commandsIn(paste(init, folder));
      expect(commands.length).toBe(4);
      for (const command of commands) paste(command, folder);
    },
    MS_MAX,
  );

  test(
    'every step of TURNPIKE.md works when it is pasted, in order',
    () => {
      if (name === 'reference') return;
      const fresh = join(packed, `${name}-steps`);
      mkdirSync(fresh);
      paste(init, fresh);
      const steps = stepsOf(readFileSync(join(fresh, 'TURNPIKE.md'), 'utf8'));
      expect(steps.length).toBeGreaterThan(5);
      for (const step of steps) paste(step, fresh);
    },
    MS_MAX,
  );
});
