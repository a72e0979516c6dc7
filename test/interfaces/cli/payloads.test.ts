// The files of payloads that a command opens.

import { expect, test } from '@jest/globals';
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder, turnpike } from './fake-io.js';

const THINK = {
  schema_version: '1.0.0',
  id: '00000000-0000-4000-8000-000000000001',
  reasoning: 'A test.',
  action: 'THINK',
  args: {},
};

/** Whether this process has the file open. */
const isOpen = (path: string): boolean =>
  readdirSync('/proc/self/fd').some((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`) === path;
    } catch {
      return false;
    }
  });

test.each([
  { when: 'the run has ended', options: [], code: 0 },
  { when: 'a scope field is wrong', options: ['--scope', 'nothing'], code: 2 },
])('`turnpike run` closes its file when $when', async ({ options, code }) => {
  const folder = tempFolder();
  const path = join(folder, 'payloads.jsonl');
  writeFileSync(path, `${JSON.stringify(THINK)}\n`);
  expect((await turnpike(folder, ['init'])).code).toBe(0);
  expect((await turnpike(folder, ['run', 'payloads.jsonl', ...options])).code).toBe(code);
  // A stream closes its file in the background.
  while (isOpen(path)) await new Promise((next) => setTimeout(next, 1));
});
