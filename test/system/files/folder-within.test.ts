import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isFolderWithin } from '../../../src/system/files/folder-within.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

let root: string;
beforeAll(() => {
  root = tempFolder('folder-within');
  mkdirSync(join(root, 'a/b'), { recursive: true });
  mkdirSync(join(root, 'ab'));
  symlinkSync(join(root, 'a'), join(root, 'link'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('a folder', () => {
  test.each([
    ['a', 'a', true],
    ['a/b', 'a', true],
    ['a/missing/deep', 'a', true],
    ['a/..b', 'a', true],
    ['link/missing', 'a', true],
    ['a/missing', 'link', true],
    ['missing/x', 'missing', true],
    ['a', 'a/b', false],
    ['ab', 'a', false],
    ['a/../ab', 'a', false],
    ['missing', 'a', false],
  ])('%s lies in %s: %s', (folder, other, within) => {
    expect(isFolderWithin(join(root, folder), join(root, other))).toBe(within);
  });
});
