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
    expect(await pins(gitPolicySource(folder))).toEqual({
      lanes: pinned(second, 'lanes: 2\n'),
      roles: pinned(first, 'roles: 1\n'),
      actions: pinned(first, 'actions: 1\n'),
    });
  });

  test('comes with the bytes, and with a path that people can open', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    const { lanes } = await gitPolicySource(folder).load();
    expect(lanes.name).toBe('lanes');
    expect(lanes.path).toBe(join(folder, 'policy', 'lanes.yaml'));
    expect(Buffer.from(lanes.bytes).toString()).toBe('lanes: 1\n');
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

  test('a renamed file is pinned by the commit that gave it its name', async () => {
    git(contractFolder(folder), 'init', '-q');
    renameSync(join(folder, 'policy', 'roles.yaml'), join(folder, 'policy', 'old.yaml'));
    commit(folder, 'one');
    renameSync(join(folder, 'policy', 'old.yaml'), join(folder, 'policy', 'roles.yaml'));
    const sha = commit(folder, 'two');
    expect((await pins(gitPolicySource(folder))).roles).toEqual(pinned(sha, 'roles: 1\n'));
  });

  test('a reverted change is pinned by the commit that reverted it', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    write(folder, 'roles', 'roles: 2\n');
    commit(folder, 'two');
    write(folder, 'roles', 'roles: 1\n');
    const third = commit(folder, 'three');
    expect((await pins(gitPolicySource(folder))).roles).toEqual(pinned(third, 'roles: 1\n'));
  });

  test('a change on a merged branch is pinned by its own commit', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    git(folder, 'checkout', '-q', '-b', 'side');
    write(folder, 'roles', 'roles: 2\n');
    const side = commit(folder, 'two');
    git(folder, 'checkout', '-q', 'main');
    writeFileSync(join(folder, 'README.md'), 'other\n');
    commit(folder, 'three');
    git(folder, 'merge', '-q', '--no-ff', '-m', 'merge', 'side');
    expect((await pins(gitPolicySource(folder))).roles).toEqual(pinned(side, 'roles: 2\n'));
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

  test('for a file whose last byte is missing', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    write(folder, 'lanes', 'lanes: 1');
    expect((await pins(gitPolicySource(folder))).lanes).toEqual({ problem: 'dirty' });
  });

  test('for a file marked as assume-unchanged in git', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    git(folder, 'update-index', '--assume-unchanged', 'policy/lanes.yaml');
    write(folder, 'lanes', 'lanes: 2\n');
    expect(git(folder, 'status', '--porcelain')).toBe('');
    expect((await pins(gitPolicySource(folder))).lanes).toEqual({ problem: 'dirty' });
  });

  test('for a file that was deleted in the last commit and put back', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    git(folder, 'rm', '-q', 'policy/lanes.yaml');
    git(folder, 'commit', '-q', '-m', 'two');
    write(folder, 'lanes', 'lanes: 1\n');
    expect((await pins(gitPolicySource(folder))).lanes).toEqual({ problem: 'dirty' });
  });

  test('for a link to a file, whatever was committed', async () => {
    git(contractFolder(folder), 'init', '-q');
    renameSync(join(folder, 'policy', 'lanes.yaml'), join(folder, 'elsewhere.yaml'));
    symlinkSync('../elsewhere.yaml', join(folder, 'policy', 'lanes.yaml'));
    commit(folder, 'one');
    expect((await pins(gitPolicySource(folder))).lanes).toEqual({ problem: 'dirty' });
  });

  test('before the first commit', async () => {
    git(contractFolder(folder), 'init', '-q');
    expect(await pins(gitPolicySource(folder))).toEqual(problem('never_committed'));
  });

  test('for a file that is staged, but was never committed', async () => {
    git(contractFolder(folder), 'init', '-q');
    rmSync(join(folder, 'policy', 'roles.yaml'));
    commit(folder, 'one');
    write(folder, 'roles', 'roles: 1\n');
    git(folder, 'add', '-A');
    expect((await pins(gitPolicySource(folder))).roles).toEqual({ problem: 'never_committed' });
  });

  test('for a file that git ignores', async () => {
    git(contractFolder(folder), 'init', '-q');
    writeFileSync(join(folder, '.gitignore'), 'policy/\n');
    commit(folder, 'one');
    expect(await pins(gitPolicySource(folder))).toEqual(problem('never_committed'));
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
