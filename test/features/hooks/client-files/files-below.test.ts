// The files of a repository below some folders, of which only so many are looked at.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { filesBelow, PATHS_MAX } from '../../../../src/features/hooks/client-files/find-places.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'files-below-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const makeFolders = (count: number): void => {
  for (let at = 0; at < count; at += 1) mkdirSync(join(root, 'a', String(at)), { recursive: true });
};

test('lists files, and nothing for a folder that does not exist', () => {
  mkdirSync(join(root, 'b/c'), { recursive: true });
  writeFileSync(join(root, 'b/c/d.md'), '');
  expect(filesBelow(root, ['a', 'b'])).toEqual(['b/c/d.md']);
});

test('looks at as many paths as its limit says', () => {
  // With the two given folders and the folder in the second.
  makeFolders(PATHS_MAX - 4);
  mkdirSync(join(root, 'b/c'), { recursive: true });
  writeFileSync(join(root, 'b/c/d.md'), '');
  expect(filesBelow(root, ['a', 'b'])).toEqual(['b/c/d.md']);
});

test('lists what it has not looked at, so that empty folders hide no file', () => {
  makeFolders(PATHS_MAX);
  mkdirSync(join(root, 'b/c'), { recursive: true });
  writeFileSync(join(root, 'b/c/d.md'), '');
  expect(filesBelow(root, ['a', 'b'])).not.toEqual([]);
});
