// Goal: a pin is given exactly if the version of the loaded bytes is certain. Method: real git in temporary folders.

import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { gitPolicySource } from '../../../src/home/policy/git-policy-source.js';
import { commit, contractFolder, git, pinned, pins, problem, write } from '../../fixtures/contract-folder.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

let folder: string;
beforeEach(() => {
  folder = tempFolder('policy');
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('S4-27 S4-28 C45 the pin from Git', () => {
  test('is the last commit that changed the file, each file its own', async () => {
    git(contractFolder(folder), 'init', '-q');
    const first = commit(folder, 'one');
    write(folder, 'lanes', 'lanes: 2\n');
    const second = commit(folder, 'two');
    writeFileSync(join(folder, 'README.md'), 'other\n');
    commit(folder, 'three');
    const { lanes, roles, actions } = await gitPolicySource(folder).load();
    expect([lanes.pin, roles.pin, actions.pin]).toEqual([
      pinned(second, 'lanes: 2\n'),
      pinned(first, 'roles: 1\n'),
      pinned(first, 'actions: 1\n'),
    ]);
    expect([lanes.name, lanes.path]).toEqual(['lanes', join(folder, 'policy', 'lanes.yaml')]);
    expect(Buffer.from(lanes.bytes).toString()).toBe('lanes: 2\n');
  });

  test('is found from a folder deep inside the repository', async () => {
    const dir = contractFolder(join(folder, 'a', 'contract'));
    git(folder, 'init', '-q');
    const sha = commit(folder, 'one');
    expect((await pins(gitPolicySource(dir))).roles).toEqual(pinned(sha, 'roles: 1\n'));
  });

  test('D20 is that of the configured actions file', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    write(folder, 'actions.coding', 'coding: 1\n');
    const sha = commit(folder, 'two');
    const source = gitPolicySource(folder, { actions: 'actions.coding.yaml' });
    expect((await pins(source)).actions).toEqual(pinned(sha, 'coding: 1\n'));
  });

  test('is the commit that renamed a file, that reverted a change, or that made a change on a merged branch', async () => {
    git(contractFolder(folder), 'init', '-q');
    renameSync(join(folder, 'policy', 'lanes.yaml'), join(folder, 'policy', 'old.yaml'));
    commit(folder, 'one');
    write(folder, 'roles', 'roles: 2\n');
    commit(folder, 'two');
    git(folder, 'checkout', '-q', '-b', 'side');
    write(folder, 'actions', 'actions: 2\n');
    const merged = commit(folder, 'three');
    git(folder, 'checkout', '-q', 'main');
    renameSync(join(folder, 'policy', 'old.yaml'), join(folder, 'policy', 'lanes.yaml'));
    const renamed = commit(folder, 'four');
    write(folder, 'roles', 'roles: 1\n');
    const reverted = commit(folder, 'five');
    git(folder, 'merge', '-q', '--no-ff', '-m', 'merge', 'side');
    expect(await pins(gitPolicySource(folder))).toEqual({
      lanes: pinned(renamed, 'lanes: 1\n'),
      roles: pinned(reverted, 'roles: 1\n'),
      actions: pinned(merged, 'actions: 2\n'),
    });
  });

  test('a repository with SHA-256 gives 64 digits', async () => {
    git(contractFolder(folder), 'init', '-q', '--object-format=sha256');
    const sha = commit(folder, 'one');
    expect(sha).toMatch(/^[0-9a-f]{64}$/u);
    expect((await pins(gitPolicySource(folder))).lanes).toEqual(pinned(sha, 'lanes: 1\n'));
  });
});

describe('S4-29 C44 C45 there is no pin from Git', () => {
  test('for a file that was edited, staged or not; the others keep theirs', async () => {
    git(contractFolder(folder), 'init', '-q');
    const sha = commit(folder, 'one');
    write(folder, 'lanes', 'lanes: 2\n');
    write(folder, 'roles', 'roles: 2\n');
    git(folder, 'add', 'policy/roles.yaml');
    expect(await pins(gitPolicySource(folder))).toEqual({
      lanes: { problem: 'dirty' },
      roles: { problem: 'dirty' },
      actions: pinned(sha, 'actions: 1\n'),
    });
  });

  test('for a file without its last byte, one marked as assume-unchanged, and one put back after its deletion', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    git(folder, 'rm', '-q', 'policy/actions.yaml');
    git(folder, 'commit', '-q', '-m', 'two');
    write(folder, 'actions', 'actions: 1\n');
    git(folder, 'update-index', '--assume-unchanged', 'policy/roles.yaml');
    write(folder, 'roles', 'roles: 2\n');
    expect(git(folder, 'status', '--porcelain')).not.toContain('roles');
    write(folder, 'lanes', 'lanes: 1');
    expect(await pins(gitPolicySource(folder))).toEqual(problem('dirty'));
  });

  test('before the first commit', async () => {
    git(contractFolder(folder), 'init', '-q');
    expect(await pins(gitPolicySource(folder))).toEqual(problem('never_committed'));
  });

  test('for a link to a file, one that is staged but was never committed, and one that git ignores', async () => {
    git(contractFolder(folder), 'init', '-q');
    renameSync(join(folder, 'policy', 'lanes.yaml'), join(folder, 'elsewhere.yaml'));
    symlinkSync('../elsewhere.yaml', join(folder, 'policy', 'lanes.yaml'));
    rmSync(join(folder, 'policy', 'roles.yaml'));
    writeFileSync(join(folder, '.gitignore'), 'policy/actions.yaml\n');
    commit(folder, 'one');
    write(folder, 'roles', 'roles: 1\n');
    git(folder, 'add', '-A');
    expect(await pins(gitPolicySource(folder))).toEqual({
      lanes: { problem: 'dirty' },
      roles: { problem: 'never_committed' },
      actions: { problem: 'never_committed' },
    });
  });

  test('inside a .git directory', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    expect(await pins(gitPolicySource(contractFolder(join(folder, '.git', 'contract'))))).toEqual(problem('no_source'));
  });

  test('at the boundary of a shallow clone, because every file looks changed there', async () => {
    const origin = contractFolder(join(folder, 'origin'));
    git(origin, 'init', '-q');
    commit(origin, 'one');
    write(origin, 'lanes', 'lanes: 2\n');
    commit(origin, 'two');
    write(origin, 'roles', 'roles: 2\n');
    const third = commit(origin, 'three');
    git(folder, 'clone', '-q', '--depth=2', `file://${origin}`, 'clone');
    expect(await pins(gitPolicySource(join(folder, 'clone')))).toEqual({
      lanes: { problem: 'no_source' },
      roles: pinned(third, 'roles: 2\n'),
      actions: { problem: 'no_source' },
    });
  });

  test('without git', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    const path = process.env['PATH'];
    process.env['PATH'] = join(folder, 'nothing');
    try {
      expect(await pins(gitPolicySource(folder))).toEqual(problem('no_source'));
    } finally {
      process.env['PATH'] = path;
    }
  });
});
