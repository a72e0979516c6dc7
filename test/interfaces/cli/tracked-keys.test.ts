// The keys of a home directory and Git: `init` keeps them out of a repository, and every command that opens a home
// refuses one whose keys are in a repository.

import { beforeEach, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

// The check is the same for every command that opens a home.
test.each([['runs'], ['run', '-'], ['serve'], ['ledger', 'verify']])(
  '%s %s refuses a home directory in a Git repository whose index has a key, and names what to do',
  async (...argv) => {
    const tracked = await repository();
    git('add', '--force', '.turnpike/keys/ledger.key');
    const said = await turnpike(tracked, argv, { stop: AbortSignal.abort() });
    expect(said).toMatchObject(REFUSED);
    expect(said.stderr).toContain(`git rm -r --cached ${join(tracked, '.turnpike/keys')}`);
    expect(said.stderr).toContain('rotate the keys');
    expect(await turnpike(tracked, ['ledger', 'verify', 'none'])).toMatchObject({
      stderr: expect.stringMatching(/none/),
    });
  },
);

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
