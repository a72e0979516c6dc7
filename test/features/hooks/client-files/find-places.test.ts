// The folders of a project are searched for what clients read, and only so many of them.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  filesBelow,
  findPlaces,
  foldersAbove,
  PATHS_MAX,
  type SearchLimits,
} from '../../../../src/features/hooks/client-files/find-places.js';

let folder: string;
let root: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'find-places-'));
  root = join(folder, 'project');
  mkdirSync(root);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (path: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), '');
};
const LIMITS: SearchLimits = { folders: 100, entries: 1_000, depth: 5, places: 10 };
const find = (limits: Partial<SearchLimits> = {}) => findPlaces(root, ['.a/b', '.m.json'], { ...LIMITS, ...limits });

describe('0088: the places of a project', () => {
  test('are found in each folder, whatever the case of a name', async () => {
    for (const path of ['.m.json', 'x/y/.a/b/c', 'x/.A/b/c', 'x/.n.json']) write(path);
    expect(await find()).toEqual({ places: ['.m.json', 'x/.a/b', 'x/y/.a/b'], isComplete: true });
  });

  test('are not looked for in node_modules and .git, nor in a project that is not there', async () => {
    for (const path of ['node_modules/x/.m.json', 'x/.git/.m.json']) write(path);
    expect(await find()).toEqual({ places: [], isComplete: true });
    rmSync(root, { recursive: true });
    expect(await find()).toEqual({ places: [], isComplete: true });
  });

  test.each<[string, Partial<SearchLimits>, (count: number) => void]>([
    ['folders', { folders: 9 }, (count) => Array.from({ length: count }, (_, at) => write(`${at}/x`))],
    ['entries', { entries: 9 }, (count) => Array.from({ length: count }, (_, at) => write(`f${at}`))],
    ['depth', { depth: 8 }, (count) => write(`${'d/'.repeat(count)}f`)],
    ['places', { places: 9 }, (count) => Array.from({ length: count }, (_, at) => write(`${at}/.m.json`))],
  ])('are not all found past the limit of %s, which is said', async (_limit, limits, make) => {
    make(8);
    expect((await find(limits)).isComplete).toBe(true);
    make(16);
    const found = await find(limits);
    expect(found.isComplete).toBe(false);
    expect(found.places.length).toBeLessThanOrEqual(9);
  });

  test.each<[string, boolean, () => string]>([
    ['a folder of the project', true, () => 'x'],
    ['a file outside', true, () => '../file'],
    ['nothing', true, () => 'none'],
    ['itself', true, () => 'link'],
    ['a folder outside', false, () => '..'],
    ['a folder that is skipped', false, () => 'node_modules/y'],
  ])('behind a link to %s', async (_what, isComplete, target) => {
    for (const path of ['x/.m.json', '../file', 'node_modules/y/.m.json']) write(path);
    symlinkSync(target(), join(root, 'link'));
    expect(await find()).toEqual({ places: ['x/.m.json'], isComplete });
  });
});

test('0088: folders above a project are those of its repository', () => {
  const deep = join(root, 'x/y');
  mkdirSync(deep, { recursive: true });
  expect(foldersAbove(deep)).toEqual([]);
  write('.git/HEAD');
  expect(foldersAbove(deep)).toEqual(['../', '../../']);
  expect(foldersAbove(root)).toEqual([]);
});

const makeFolders = (count: number): void => {
  for (let at = 0; at < count; at += 1) mkdirSync(join(root, 'a', String(at)), { recursive: true });
};

describe('the files below some folders', () => {
  test('lists files, and nothing for a folder that does not exist', () => {
    write('b/c/d.md');
    expect(filesBelow(root, ['a', 'b'])).toEqual(['b/c/d.md']);
  });

  test('looks at as many paths as its limit says', () => {
    // With the two given folders and the folder in the second.
    makeFolders(PATHS_MAX - 4);
    write('b/c/d.md');
    expect(filesBelow(root, ['a', 'b'])).toEqual(['b/c/d.md']);
  });

  test('lists what it has not looked at, so that empty folders hide no file', () => {
    makeFolders(PATHS_MAX);
    write('b/c/d.md');
    expect(filesBelow(root, ['a', 'b'])).not.toEqual([]);
  });
});
