// `turnpike ledger erase`, and the output of every other command for the erased case.

import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { printWithheld } from '../../../../../src/interfaces/cli/commands/ledger/ledger-verify-command.js';
import { openTurnpike } from '../../../../../src/host/turnpike.js';
import {
  copyOf,
  finish,
  initialised,
  linesOf,
  read,
  tempFolder,
  think,
  turnpike,
  write,
  type Said,
} from '../../fake-io.js';

const KEY_FILES = ['case-local.1.erased', 'erasures.list', 'erasures.list.lock', 'ledger.origin'];

let folder: string;
const home = (name = ''): string => join(folder, '.turnpike', name);
const look = (...argv: string[]): Promise<Said> => turnpike(folder, argv);
const erase = (...argv: string[]): Promise<Said> =>
  look('ledger', 'erase', 'case-local', '--actor', 'me myself', ...argv);

let model: string;
beforeAll(async () => {
  model = await initialised();
  const stdin = [write('/sandbox/a.txt', 'in confidence'), read('/sandbox/a.txt'), think(), finish()].join('\n');
  expect(await turnpike(model, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
});
beforeEach(() => {
  folder = copyOf(model);
});

describe('ledger erase', () => {
  test('D14: destroys the content of a case, and reports what remains', async () => {
    const entries = (await look('ledger', 'export', '--entries', 'before')).code;
    const { code, stdout } = await erase('--yes');
    expect([entries, code]).toEqual([0, 0]);
    expect(stdout).toMatch(/^erased 6 contents of case-local, \d+ bytes; .*\/sandbox\/case-local is unchanged\n$/);
    expect(readdirSync(home('keys/cases'))).toEqual(KEY_FILES);
    expect(readFileSync(home('keys/cases/case-local.1.erased'), 'utf8')).toMatch(
      /^turnpike erasure\ncase-local\n1\n\d+\n\d{4}-.*Z\nme myself\n\n— turnpike\//,
    );
    await look('ledger', 'export', '--entries', 'after');
    // The run of the erasure follows.
    const [before, after] = ['before', 'after'].map((name) => readFileSync(join(folder, name), 'utf8'));
    expect(after!.startsWith(before!)).toBe(true);
    expect(await look('ledger', 'verify')).toMatchObject({
      code: 4,
      stdout: expect.stringMatching(
        /^by hash alone: .*\nnot checked: 6 contents, .* 1 run tree replayed only up to there\n(?:not checked: @\d+ .*: erased\n){6}$/,
      ),
    });
    expect(await look('replay')).toMatchObject({
      code: 4,
      stdout: expect.stringMatching(
        /^by hash alone: .*\nnot recomputed: \d+ entries from @8 \(run_\S+#8\) on: its content was erased with case case-local\n$/,
      ),
    });
    expect(JSON.parse((await look('replay', '--json')).stdout)).toMatchObject({
      ok: false,
      verdict: 'by_hash_alone',
      not_recomputed: [{ seq: 8 }],
    });
  });

  test('does nothing without --yes, or for an invalid case', async () => {
    expect(await erase()).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    expect(await look('ledger', 'erase', '../..', '--actor', 'somebody', '--yes')).toMatchObject({ code: 2 });
    expect((await look('replay')).stdout).not.toContain('not recomputed');
    expect(await look('ledger', 'erase', 'case-unknown', '--actor', 'somebody', '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('erased 0 contents'),
    });
  });

  test('is executed by the process that owns the home directory, and refused while a run is active', async () => {
    const held = await openTurnpike({ home: home() });
    const agent = await held.startAgent({ case: 'case-local' });
    await agent.submit(think());
    expect(await erase('--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^CASE_IN_USE: .*has not ended/),
    });
    await agent.end();
    expect(await erase('--yes', '--json')).toMatchObject({ code: 0, stdout: expect.stringContaining('"contents":7') });
    await held.close();
    expect((await look('replay', '--json')).stdout).toContain('"not_recomputed":[{');
  });

  test('detects a key that was only removed, and a forged erasure record', async () => {
    rmSync(home('keys/cases/case-local.1.key'));
    expect(await look('ledger', 'verify')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('artifact.unreadable'),
    });
    expect((await look('replay')).code).toBe(1);
    writeFileSync(home('keys/cases/case-local.1.erased'), 'turnpike erasure\ncase-local\n1\n99\nx\ny\n', {
      mode: 0o600,
    });
    expect(await look('ledger', 'verify')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('under the key of this ledger'),
    });
  });
});

describe('a case whose run trees are archived', () => {
  test('D14 C35: is erased with its key; the command warns that archives still contain content', async () => {
    expect(await look('ledger', 'archive', 'one')).toMatchObject({ code: 0 });
    const said = await erase('--yes');
    expect(said).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('archive files still contain their content'),
    });
    expect(readdirSync(home('keys/cases'))).toEqual(KEY_FILES);
    expect((await erase('--yes', '--json')).stdout).toContain('"archived":true');
    const key = readFileSync(home('keys/ledger.vkey'), 'utf8').trim();
    expect(await look('replay', 'one', '--key', key)).toMatchObject({ code: 0 });
    expect(await look('ledger', 'verify', '--archive', 'one')).toMatchObject({ code: 0 });
  });
});

describe('a bundle of a ledger with an erased case', () => {
  test('contains its hashes, and is verified without other data with the same verdict', async () => {
    await erase('--yes');
    const stdin = [write('/sandbox/b.txt', 'kept'), finish()].join('\n');
    await turnpike(folder, ['run', '-', '--case', 'case-other'], { stdin });
    expect(await look('ledger', 'export', 'bundle')).toMatchObject({ code: 0 });
    const away = tempFolder();
    copyFileSync(join(folder, 'bundle'), join(away, 'bundle'));
    const key = readFileSync(home('keys/ledger.vkey'), 'utf8').trim();
    for (const argv of [['ledger', 'verify'], ['replay'], ['replay', '--json']]) {
      const [command = '', ...options] = argv;
      const args = command === 'ledger' ? ['ledger', 'verify', 'bundle'] : [command, 'bundle', ...options];
      const there = await turnpike(away, [...args, '--key', key]);
      expect([there.code, there.stdout]).toEqual([4, (await look(...argv)).stdout]);
    }
    const lines = linesOf(readFileSync(join(away, 'bundle'), 'utf8'));
    expect(lines.filter((line) => line.includes('"withheld":"erased"')).length).toBe(6);
  });
});

describe('other commands', () => {
  test('policy simulate uses the remaining content, and reports that it is incomplete', async () => {
    await erase('--yes');
    const said = await look('policy', 'simulate');
    expect(said.stdout).toContain('note: 1 run tree only in part');
    const explained = await look('policy', 'explain', '@10');
    expect(explained).toMatchObject({ code: 4, stderr: expect.stringContaining('LEDGER_ERASED') });
  });

  test('runs are listed and shown as before', async () => {
    const before = await look('runs');
    await erase('--yes');
    const after = (await look('runs')).stdout;
    expect(after.startsWith(before.stdout)).toBe(true);
    expect(after.slice(before.stdout.length)).toMatch(/tool_gateway +completed .* ledger\.erase\n/);
  });
});

test('counts the contents beyond those that it lists', async () => {
  const lines: string[] = [];
  const stdout = {
    write(text: string): Promise<void> {
      lines.push(text);
      return Promise.resolve();
    },
  };
  const content = { log_index: 7, tree_id: 'run_1', seq: 3, kind: 'result', case_id: 'c', withheld: 'erased' } as const;
  const not_checked = [{ ...content, sha256: 'f'.repeat(64) }];
  await printWithheld({ contents: 1, trees: 0, not_checked }, stdout);
  expect(lines).toHaveLength(2);
  await printWithheld({ contents: 3, trees: 0, not_checked }, stdout);
  expect(lines.at(-1)).toBe('and 2 more contents\n');
});
