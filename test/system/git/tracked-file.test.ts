// Whether a file is in the index of a real Git repository, and what happens without an answer of Git.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findTrackedFile } from '../../../src/system/git/tracked-file.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const { PATH } = process.env;
const isPublic = (name: string): boolean => name === 'public';
let folder: string;
const git = (...args: string[]): void => void execFileSync('git', ['-C', folder, ...args], { stdio: 'pipe' });

beforeEach(() => {
  folder = tempFolder();
  git('init', '-q');
  mkdirSync(join(folder, 'home/keys'), { recursive: true });
  for (const name of ['public', 'secret']) writeFileSync(join(folder, 'home/keys', name), name);
});
afterEach(() => {
  process.env['PATH'] = PATH;
});

const found = (path = join(folder, 'home/keys'), msMax?: number): Promise<string | null> =>
  findTrackedFile(path, isPublic, msMax);

describe('findTrackedFile', () => {
  test('finds a file of the index, committed or not, and no other file', async () => {
    expect(await found()).toBeNull();
    git('add', 'home/keys/public');
    expect(await found()).toBeNull();
    git('add', 'home/keys/secret');
    expect(await found()).toBe('secret');
    git('rm', '-q', '-r', '--cached', 'home');
    expect(await found()).toBeNull();
  });

  test('finds a file of the index that was deleted, with its folder', async () => {
    git('add', '-f', 'home/keys/secret');
    rmSync(join(folder, 'home'), { recursive: true });
    expect(await found()).toBe('secret');
  });

  test('finds a file behind a symbolic link', async () => {
    git('add', 'home/keys/secret');
    const link = join(tempFolder(), 'link');
    symlinkSync(join(folder, 'home'), link);
    expect(await found(join(link, 'keys'))).toBe('secret');
  });

  test('takes the name of the folder literally', async () => {
    mkdirSync(join(folder, 'other'));
    writeFileSync(join(folder, 'other/secret'), 'x');
    git('add', 'other/secret');
    expect(await found(join(folder, '*'))).toBeNull();
  });

  test('finds nothing without Git, and where there is no repository', async () => {
    git('add', 'home/keys/secret');
    process.env['PATH'] = '/nonexistent';
    expect(await found()).toBeNull();
    process.env['PATH'] = PATH;
    expect(await found(tempFolder())).toBeNull();
  });

  test('waits for Git only for a limited time', async () => {
    git('add', 'home/keys/secret');
    const programs = tempFolder();
    writeFileSync(join(programs, 'git'), '#!/bin/sh\nexec sleep 600\n');
    chmodSync(join(programs, 'git'), 0o755);
    process.env['PATH'] = `${programs}:${PATH ?? ''}`;
    expect(await found(undefined, 50)).toBeNull();
  });
});
