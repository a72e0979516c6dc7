// The keys of a home directory and Git: `init` keeps them out of a repository, and every command that opens a home
// refuses one whose keys are in a repository.

import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CliCommand } from '../../../src/interfaces/cli/command.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { tempFolder, think, turnpike } from './fake-io.js';

let folder: string;
const git = (...args: string[]): string => execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' });

async function repository(): Promise<string> {
  folder = tempFolder();
  git('init', '-q');
  expect(await turnpike(folder, ['init'])).toMatchObject({ code: 0 });
  return folder;
}

const REFUSED = { code: 2, stdout: '', stderr: expect.stringMatching(/^USAGE: Git tracks .*ledger\.key, /) };
const usesHome = ({ access }: CliCommand): boolean => access !== 'none';

/** As few arguments as the command accepts: arguments are checked before a home is opened. */
const argvOf = ({ name, operands, options }: CliCommand): readonly string[] => [
  ...name.split(' '),
  ...Array.from({ length: operands.min }, () => '1'),
  ...options.flatMap(({ name: option, required, default: text }) =>
    required === true || text === '' ? [`--${option}`, WORDS[option] ?? '1'] : [],
  ),
];

/** Values of options that take one of several words. */
const WORDS: Readonly<Record<string, string>> = { right: 'observe', outcome: 'done' };

describe('a home directory in a Git repository whose index has a key', () => {
  let tracked: string;
  beforeAll(async () => {
    tracked = await repository();
    git('add', '--force', '.turnpike/keys/ledger.key');
  });

  test.each(COMMANDS.filter(usesHome).map((command) => [command.name, command] as const))(
    '%s refuses it, and names what to do',
    async (_name, command) => {
      const said = await turnpike(tracked, argvOf(command), { stop: AbortSignal.abort() });
      expect(said).toMatchObject(REFUSED);
      expect(said.stderr).toContain(`git rm -r --cached ${join(tracked, '.turnpike/keys')}`);
      expect(said.stderr).toContain('rotate the keys');
    },
  );
});

describe('a home directory in a Git repository', () => {
  beforeEach(repository);

  test('nothing of it can be added to the index without force', () => {
    git('add', '--all', '.');
    expect(git('ls-files')).not.toContain('.turnpike');
    expect(git('ls-files')).toContain('contract/policy/lanes.yaml');
    expect(readFileSync(join(folder, '.turnpike/.gitignore'), 'utf8')).toBe('*\n');
  });

  test('can be used while only the public key is tracked, and again when the keys are not any more', async () => {
    git('add', '--force', '.turnpike/keys/ledger.vkey');
    expect(await turnpike(folder, ['run', '-'], { stdin: think() })).toMatchObject({ code: 0 });
    git('add', '--force', '.turnpike/keys');
    expect(await turnpike(folder, ['runs'])).toMatchObject({ code: 2 });
    git('rm', '-r', '-q', '--cached', '.turnpike');
    expect(await turnpike(folder, ['runs'])).toMatchObject({ code: 0 });
  });

  test('cannot be created where the index has its keys', async () => {
    git('add', '--force', '.turnpike/keys');
    execFileSync('rm', ['-r', join(folder, '.turnpike')]);
    expect(await turnpike(folder, ['init', '--contract', 'other'])).toMatchObject(REFUSED);
  });

  test('cannot be copied, or copied to, while a key of it is tracked', async () => {
    git('add', '--force', '.turnpike/keys/ledger.key');
    const elsewhere = tempFolder();
    expect(await turnpike(elsewhere, ['home', 'copy', join(folder, '.turnpike'), 'to'])).toMatchObject(REFUSED);
    expect(await turnpike(elsewhere, ['home', 'reopen', join(folder, '.turnpike')])).toMatchObject(REFUSED);
  });

  test('a copy of it is ignored too', async () => {
    expect(await turnpike(folder, ['home', 'copy', '.turnpike', 'copy'])).toMatchObject({ code: 0 });
    writeFileSync(join(folder, '.gitignore'), '');
    expect(git('status', '--porcelain', '--untracked-files=all')).not.toContain('copy/');
  });
});
