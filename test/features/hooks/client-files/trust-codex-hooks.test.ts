// Hooks that Codex is made to trust, by a program in its place.

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { trustCodexHooks } from '../../../../src/features/hooks/client-files/trust-codex-hooks.js';
import { diskFolder } from '../../../fixtures/temp-folder.js';

/** Answers as `codex app-server` does, and writes what it is asked into a file. */
const SERVER = `#!${process.execPath}
const { appendFileSync } = require('node:fs');
const trusted = new Set();
const hook = (key, command) =>
  ({ key, command, currentHash: 'h' + key, trustStatus: trusted.has(key) ? 'trusted' : 'untrusted' });
const ANSWERS = {
  initialize: () => ({}),
  'hooks/list': () => ({ data: [{ hooks: [hook('a', 'own'), hook('b', 'other\\u2028'), { key: 7 }] }] }),
  'config/batchWrite': ({ edits }) => Object.keys(edits[0].value).forEach((key) => trusted.add(key)),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  appendFileSync(process.env.SEEN, method + ' ');
  if (method === process.env.ENDS_AT) process.exit(1);
  if (id === undefined) return;
  console.log('no JSON');
  if (method === process.env.FLOODS_AT) return process.stdout.write('x'.repeat(5e6));
  console.log(JSON.stringify({ method: 'a/notification' }));
  console.log(JSON.stringify({ id, result: ANSWERS[method](params) ?? null }));
});
`;

const folder = diskFolder('codex');
const program = join(folder, 'codex');
writeFileSync(program, SERVER);
chmodSync(program, 0o755);
/** Ends as the program does. The process that it starts keeps the output open for longer than the test waits. */
const wrapper = join(folder, 'wrapper');
writeFileSync(wrapper, `#!/bin/sh\nsleep 200 &\necho $! > "$SEEN.pid"\n"${program}"\n`);
chmodSync(wrapper, 0o755);
afterAll(() => void process.kill(Number(readFileSync(join(folder, 'seen.pid'), 'utf8')), 'SIGKILL'));
const trust = (environment: Record<string, string>, command = program) =>
  trustCodexHooks(command, {
    cwd: folder,
    commands: ['own'],
    environment: { SEEN: join(folder, 'seen'), ...environment },
  });

test('0064: those of an installation are trusted, and no others', async () => {
  expect(await trust({})).toEqual([{ key: 'a', command: 'own', hash: 'ha', isTrusted: true }]);
  expect(readFileSync(join(folder, 'seen'), 'utf8')).toBe(
    'initialize initialized hooks/list config/batchWrite hooks/list ',
  );
});

test.each([
  ['ends', { ENDS_AT: 'config/batchWrite' }, program],
  ['is not there', {}, join(folder, 'none')],
  ['ends, and leaves a process with its output', { ENDS_AT: 'initialize' }, wrapper],
  ['answers with a line without end', { FLOODS_AT: 'hooks/list' }, program],
])('0064: a program that %s is an error', async (_what, environment, command) => {
  await expect(trust(environment, command)).rejects.toThrow('gives no answer to');
});
