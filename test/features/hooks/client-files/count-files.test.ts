// Files that count: small, bounded, and never trusted.

import { beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  addToCountFile,
  listCountFiles,
  readCountFile,
  removeCountFile,
} from '../../../../src/features/hooks/client-files/count-files.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';

let folder: string;
beforeEach(() => {
  folder = tempFolder('counts');
});
const MAX = 4;

test('counts up to a limit, in a file of the user alone', () => {
  const path = join(folder, 'a/b/one');
  const added = ['s', 'l', 'u', 'f', 'r'].map((byte) => addToCountFile(path, byte, MAX));
  expect(added).toEqual([true, true, true, true, false]);
  expect(Buffer.from(readCountFile(path, MAX)).toString()).toBe('sluf');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  removeCountFile(path);
  removeCountFile(path);
  expect(readCountFile(path, MAX)).toHaveLength(0);
});

test('follows no link, waits for no FIFO, and reads nothing that is too long', () => {
  const other = join(folder, 'other');
  writeFileSync(other, 'kept');
  symlinkSync(other, join(folder, 'link'));
  expect(addToCountFile(join(folder, 'link'), 's', 100)).toBe(false);
  expect(readFileSync(other, 'utf8')).toBe('kept');
  expect(spawnSync('mkfifo', [join(folder, 'fifo')]).status).toBe(0);
  expect(addToCountFile(join(folder, 'fifo'), 's', 100)).toBe(false);
  expect(readCountFile(join(folder, 'fifo'), 100)).toHaveLength(0);
  expect(readCountFile(other, 3)).toHaveLength(0);
  mkdirSync(join(folder, 'folder'));
  expect(addToCountFile(join(folder, 'folder'), 's', 100)).toBe(false);
});

test('makes no more than 1024 files', () => {
  const added = Array.from({ length: 1_025 }, (_, at) => addToCountFile(join(folder, String(at)), 's', MAX));
  expect(added.indexOf(false)).toBe(1_024);
  expect(addToCountFile(join(folder, '7'), 's', MAX)).toBe(true);
  expect(listCountFiles(folder)).toHaveLength(1_024);
  expect(listCountFiles(join(folder, 'none'))).toEqual([]);
});
