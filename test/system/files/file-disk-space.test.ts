import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { diskSpace } from '../../../src/system/files/file-disk-space.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

let folder: string;
beforeEach(() => {
  folder = tempFolder('disk-space');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('reserves exactly the requested bytes, in a file that cannot be compressed, and releases them', () => {
  const file = join(folder, 'reserve');
  const space = diskSpace(file);
  expect(space.reservedBytes()).toBe(0);
  expect(space.reserve(300_001)).toBe(true);
  expect(space.reservedBytes()).toBe(300_001);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(gzipSync(readFileSync(file)).byteLength).toBeGreaterThan(290_000);
  expect(space.reserve(300_001)).toBe(true);
  expect(space.reserve(10)).toBe(true);
  expect(space.reservedBytes()).toBe(10);
  expect(space.reserve(1_000)).toBe(true);
  expect(space.reservedBytes()).toBe(1_000);
  space.release();
  space.release();
  expect(existsSync(file)).toBe(false);
});

test('returns the free space, and null for a missing folder', () => {
  const now = diskSpace(join(folder, 'reserve')).measure();
  // Equal on an empty file system in memory.
  expect(now?.total).toBeGreaterThanOrEqual(now?.free ?? Infinity);
  expect(now?.free).toBeGreaterThan(0);
  expect(diskSpace(join(folder, 'none/reserve')).measure()).toBeNull();
});

test('does not wait for a FIFO at the path of the file, and removes it', () => {
  execFileSync('mkfifo', [join(folder, 'reserve')]);
  expect(diskSpace(join(folder, 'reserve')).reserve(10)).toBe(false);
  expect(diskSpace(join(folder, 'reserve')).reserve(10)).toBe(true);
});

test('returns false if the file cannot be written', () => {
  mkdirSync(join(folder, 'reserve'));
  rmSync(join(folder, 'reserve'), { recursive: true });
  expect(diskSpace(join(folder, 'none/reserve')).reserve(10)).toBe(false);
});
