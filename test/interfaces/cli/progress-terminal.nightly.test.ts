// The progress bar of the built command on a real pseudo-terminal.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { builtCommand } from '../../fixtures/build.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { put, think, turnpike } from './fake-io.js';
import { terminalScreen } from './terminal-screen.js';

/** A proposal that changes nothing has two entries. */
const PROPOSALS = 6_000;
const BAR = /reading the ledger: \d+ of \d+ entries, \d+ %, \d+\/s, .* left \[/;

const work = tempFolder('terminal');
let command = '';

beforeAll(async () => {
  command = await builtCommand(tempFolder('terminal-build'));
  expect(await turnpike(work, ['init'])).toMatchObject({ code: 0 });
  const stdin = Array.from({ length: PROPOSALS }, think).join('\n');
  expect(await turnpike(work, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
}, 300_000);

/**
 * Runs a line of shell on a pseudo-terminal, with `turnpike` in it as the command.
 * @param onText receives all output so far, and a function that types on the terminal
 */
async function onTerminal(
  line: string,
  onText: (text: string, type: (keys: string) => void) => void = () => undefined,
): Promise<string> {
  const script = put(work, 'line.sh', `turnpike() { ${process.execPath} ${command} "$@"; }\n${line}\n`);
  const child = spawn('script', ['-qec', `sh ${script}`, '/dev/null'], {
    cwd: work,
    env: { PATH: process.env['PATH'], TERM: 'xterm' },
  });
  let text = '';
  const type = (keys: string): void => void child.stdin.write(keys);
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
    onText(text, type);
  });
  await once(child, 'close');
  return text;
}

describe('turnpike ledger verify on a terminal', () => {
  test('shows how far it is, and then only its result', async () => {
    const text = await onTerminal('turnpike ledger verify');
    expect(text).toMatch(BAR);
    expect(terminalScreen(text)).toEqual([expect.stringMatching(/^ok: \d+ entries of 1 run tree, root [0-9a-f]{64}$/)]);
  }, 120_000);

  test('shows it while the result goes to a file, which gets nothing of it', async () => {
    const text = await onTerminal('turnpike ledger verify > result.txt');
    expect(text).toMatch(BAR);
    expect(terminalScreen(text)).toEqual([]);
    expect(readFileSync(join(work, 'result.txt'), 'utf8')).toMatch(/^ok: \d+ entries [^\r\u001b]*\n$/u);
  }, 120_000);

  test('shows nothing of it with --json, on a dumb terminal, and where stderr is a file', async () => {
    const calls = [
      'turnpike ledger verify --json',
      'TERM=dumb; export TERM; turnpike ledger verify',
      'turnpike ledger verify 2> errors.txt',
    ];
    for (const call of calls) expect(await onTerminal(call)).not.toMatch(/reading the ledger|\u001b/u);
    expect(readFileSync(join(work, 'errors.txt'), 'utf8')).toBe('');
  }, 240_000);

  test('^C ends it as a signal does, and leaves the terminal clean', async () => {
    let isTyped = false;
    const text = await onTerminal('trap : INT; turnpike ledger verify; echo "code $?"', (shown, type) => {
      if (!isTyped && BAR.test(shown)) type('\u0003');
      isTyped ||= BAR.test(shown);
    });
    expect(isTyped).toBe(true);
    expect(terminalScreen(text)).toEqual(['code 130']);
  }, 120_000);
});
