// The same readings of shell against real shells (0061, 0077).

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { shellCommands } from '../../../../src/features/hooks/calls/shell-words.js';
import { contentOf } from '../../../../src/features/hooks/native-calls.js';
import { decideCall } from '../../../../src/features/hooks/calls/call-decision.js';
import { codingRules } from '../../../fixtures/hooks/coding-rules.js';
import { RecordingShell } from '../../../fixtures/hooks/recording-shell.js';
import { PLAIN_COMMANDS, SECOND_COMMANDS, SHELL_TRICKS } from '../../../fixtures/hooks/shell-tricks.js';

const PROGRAMS = [
  ...'pwned git ls cat grep npm make go cargo pytest python npx node find rg sort head tail wc diff tree'.split(' '),
  ...'du which ruff mypy tee xargs env nohup sh bash'.split(' '),
];
const isKnown = (name: string): boolean => [...PROGRAMS, 'echo', 'pwd'].includes(name);

describe.each(['/bin/bash', '/bin/sh'])('0061: %s', (shell) => {
  let shells: RecordingShell;
  beforeAll(() => {
    shells = new RecordingShell(PROGRAMS, { files: ['a', 'x', 'src'] });
  });

  function execute(text: string) {
    return shells.run(shell, text, (work) => {
      writeFileSync(join(work, 'script'), `#!${shells.program('pwned')}\n`);
      chmodSync(join(work, 'script'), 0o755);
    });
  }

  test('runs what the reading says, and writes nothing', () => {
    const wrong: unknown[] = [];
    let pwned = 0;
    // A text with a NUL is no argument of a program.
    for (const text of [...SHELL_TRICKS, ...PLAIN_COMMANDS].filter((one) => !one.includes('\0'))) {
      const { ran, wrote } = execute(text);
      if (wrote.length > 0 || ran.some(([name]) => name === 'pwned')) pwned += 1;
      const read = shellCommands(text);
      // A builtin such as `eval` takes words as commands, and no rule of the policy allows one.
      if (read === null || !read.every(([name = '']) => isKnown(name))) continue;
      const isRead = ran.every((words) => read.some((one) => JSON.stringify(one) === JSON.stringify(words)));
      if (!isRead || wrote.length > 0) wrong.push({ text, read, ran, wrote });
    }
    expect(wrong).toEqual([]);
    console.log(
      `${SHELL_TRICKS.length} tricks, ${pwned} of which run or write; ${PLAIN_COMMANDS.length} plain commands`,
    );
    // The tricks work: without a reading of shell they would run what no rule allows.
    expect(pwned).toBeGreaterThan(80);
  });
});

describe('0061: what only shows something', () => {
  const rules = codingRules();
  const shows = ['version', 'git', 'history'];
  const granting = (rules.calls ?? []).filter(({ id, commands }) => shows.includes(id) && commands !== undefined);
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'turnpike-words-'));
    writeFileSync(join(folder, 'package.json'), '{"name":"a","version":"1.0.0","scripts":{"x":"echo > PWNED"}}');
    for (const words of ['init -q', 'remote add origin https://a.example', 'add .', 'commit -qm a', 'stash -u'])
      run(['git', ...words.split(' ')]);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function run([program = '', ...words]: readonly string[]): void {
    const who = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a' };
    const env = { PATH: process.env['PATH'], HOME: folder, npm_config_cache: join(folder, '.npm'), ...who };
    try {
      execFileSync(program, words, { cwd: folder, env, stdio: 'ignore', timeout: 60_000 });
    } catch {
      // A command that the program refuses.
    }
  }

  /** What the commands must leave: the files of the project, and what git has of settings and names. */
  const state = (): readonly string[] => {
    const refs = execFileSync('git', ['for-each-ref'], { cwd: folder, encoding: 'utf8' });
    const files = ['package.json', '.git/config', '.git/HEAD'].map((name) => readFileSync(join(folder, name), 'utf8'));
    return [refs, ...files, ...readdirSync(folder).filter((name) => name !== '.npm')];
  };

  test('does nothing else, whichever words are behind it', () => {
    let before = state().join();
    const wrong: string[] = [];
    let allowed = 0;
    for (const { commands = [] } of granting) {
      for (const command of commands.filter((one) => /^(?:git|npm) /.test(one))) {
        for (const between of ['', ' -v', ' -v --', ' --verbose'])
          for (const second of SECOND_COMMANDS) {
            const text = `${command}${between} ${second} x`;
            const call = { tool: 'native.shell', input: { command: contentOf(text) } };
            if (decideCall(rules, call).decision !== 'allow') continue;
            allowed += 1;
            run(text.split(' '));
            const after = state().join();
            if (after !== before) wrong.push(text);
            before = after;
          }
      }
    }
    expect(wrong).toEqual([]);
    expect(allowed).toBeGreaterThan(100);
  });
});
