// Goal: nothing in a repository can run a program, or make a pin wrong. Method: real git in temporary folders, with a
// trap that every test also triggers itself, where it can, to show that it would work.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { gitPolicySource } from '../../../src/home/policy/git-policy-source.js';
import { commit, contractFolder, git, pinned, pins, write } from '../../fixtures/contract-folder.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

let folder: string;
beforeEach(() => {
  folder = tempFolder('policy');
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('a hostile repository', () => {
  /** A program that leaves a file when it is started. */
  function trap(): { program: string; sprung: () => boolean } {
    const program = join(folder, 'trap.sh');
    const trace = join(folder, 'sprung');
    writeFileSync(program, `#!/bin/sh\ntouch '${trace}'\nexit 1\n`);
    chmodSync(program, 0o755);
    return { program, sprung: () => existsSync(trace) };
  }

  test('runs no program of its settings, and its pins are correct', async () => {
    const { program, sprung } = trap();
    const dir = contractFolder(join(folder, 'repository'));
    git(dir, 'init', '-q');
    const sha = commit(dir, 'one');
    mkdirSync(join(dir, '.git', 'hooks'), { recursive: true });
    for (const hook of ['post-index-change', 'reference-transaction', 'fsmonitor-watchman']) {
      cpSync(program, join(dir, '.git', 'hooks', hook));
    }
    for (const key of [
      ...['core.fsmonitor', 'core.pager', 'core.sshCommand', 'core.gitProxy', 'core.askPass', 'core.editor'],
      ...['pager.rev-list', 'pager.cat-file', 'diff.external', 'gpg.program', 'filter.x.smudge', 'filter.x.clean'],
      ...['diff.x.textconv', 'diff.x.command', 'credential.helper', 'core.alternateRefsCommand', 'merge.x.driver'],
    ]) {
      git(dir, 'config', key, program);
    }
    git(dir, 'config', 'log.showSignature', 'true');
    git(dir, 'config', 'alias.rev-list', `!${program}`);
    writeFileSync(join(dir, '.git', 'info', 'attributes'), '* filter=x diff=x merge=x\n');
    expect((await pins(gitPolicySource(dir))).lanes).toEqual(pinned(sha, 'lanes: 1\n'));
    expect(sprung()).toBe(false);
    // The trap itself works: an ordinary command triggers it.
    expect(() => git(dir, 'status')).not.toThrow();
    expect(sprung()).toBe(true);
  });

  test('whose object is missing does not fetch it from a remote that starts a program', async () => {
    const { program, sprung } = trap();
    const dir = contractFolder(join(folder, 'repository'));
    git(dir, 'init', '-q');
    commit(dir, 'one');
    const blob = git(dir, 'rev-parse', 'HEAD:policy/lanes.yaml');
    rmSync(join(dir, '.git', 'objects', blob.slice(0, 2), blob.slice(2)));
    mkdirSync(join(folder, 'remote'));
    git(dir, 'config', 'extensions.partialClone', 'origin');
    git(dir, 'config', 'remote.origin.url', join(folder, 'remote'));
    git(dir, 'config', 'remote.origin.promisor', 'true');
    git(dir, 'config', 'remote.origin.uploadpack', program);
    expect((await pins(gitPolicySource(dir))).lanes).toEqual({ problem: 'dirty' });
    expect(sprung()).toBe(false);
    expect(() => git(dir, 'cat-file', 'blob', 'HEAD:policy/lanes.yaml')).toThrow();
    expect(sprung()).toBe(true);
  });

  test('with a program called git next to the policies does not run it as git', async () => {
    const { program, sprung } = trap();
    const dir = contractFolder(join(folder, 'repository'));
    git(dir, 'init', '-q');
    cpSync(program, join(dir, 'git'));
    cpSync(program, join(dir, 'policy', 'git'));
    const sha = commit(dir, 'one');
    const path = process.env['PATH'];
    process.env['PATH'] = `.:${path ?? ''}`;
    try {
      expect((await pins(gitPolicySource(dir))).lanes).toEqual(pinned(sha, 'lanes: 1\n'));
    } finally {
      process.env['PATH'] = path;
    }
    expect(sprung()).toBe(false);
  });

  test('that replaces objects by others does not replace any for a pin', async () => {
    git(contractFolder(folder), 'init', '-q');
    const sha = commit(folder, 'one');
    const blob = git(folder, 'rev-parse', 'HEAD:policy/lanes.yaml');
    writeFileSync(join(folder, 'forged'), 'lanes: forged\n');
    const forged = git(folder, 'hash-object', '-w', 'forged');
    git(folder, 'replace', blob, forged);
    write(folder, 'lanes', 'lanes: forged\n');
    expect((await pins(gitPolicySource(folder))).lanes).toEqual({ problem: 'dirty' });
    write(folder, 'lanes', 'lanes: 1\n');
    expect((await pins(gitPolicySource(folder))).lanes).toEqual(pinned(sha, 'lanes: 1\n'));
  });

  test('is read without the settings of the user and of the process', async () => {
    git(contractFolder(folder), 'init', '-q');
    const sha = commit(folder, 'one');
    const { program, sprung } = trap();
    const before = { ...process.env };
    Object.assign(process.env, {
      GIT_DIR: '/nowhere',
      GIT_WORK_TREE: '/nowhere',
      GIT_INDEX_FILE: '/nowhere',
      GIT_PAGER: program,
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: program,
    });
    try {
      expect((await pins(gitPolicySource(folder))).lanes).toEqual(pinned(sha, 'lanes: 1\n'));
    } finally {
      for (const key of Object.keys(process.env)) if (!(key in before)) Reflect.deleteProperty(process.env, key);
    }
    expect(sprung()).toBe(false);
  });

  // Only root can change the owner of a file.
  (process.getuid?.() === 0 ? test : test.skip)('that belongs to another user is read all the same', async () => {
    git(contractFolder(folder), 'init', '-q');
    const sha = commit(folder, 'one');
    execFileSync('chown', ['-R', '4711:4711', folder]);
    expect((await pins(gitPolicySource(folder))).lanes).toEqual(pinned(sha, 'lanes: 1\n'));
    expect(() => git(folder, 'status')).toThrow('dubious ownership');
  });
});
