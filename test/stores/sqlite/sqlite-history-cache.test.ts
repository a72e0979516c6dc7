// The cache of replay points, and that of a reader: points of the file count, points of its own stay in memory, and
// nothing is written.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { historyReader, sqliteHistoryCache } from '../../../src/stores/sqlite/sqlite-history-cache.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { HistoryCache, ReplayPoint, HistorySnapshot } from '../../../src/core/ledger/history-cache.js';
import { folderState } from '../../fixtures/folder-state.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const SECRET = 'where it stood, in confidence';
const point = (size: number, live = '{}'): ReplayPoint => ({
  size,
  live,
  live_sha256: sha256(live),
  ended: '{}',
  ended_sha256: sha256('{}'),
});
const snapshot = (size: number, text = SECRET): HistorySnapshot => ({
  tree_id: `tree-${size}`,
  size,
  text,
  sha256: sha256(text),
});

describe('D14: a history cache that is wiped', () => {
  let folder: string;
  let file: string;
  let one: HistoryCache;
  let other: HistoryCache;
  beforeEach(() => {
    folder = tempFolder('cache');
    file = join(folder, 'history.cache');
    [one, other] = [sqliteHistoryCache(file), sqliteHistoryCache(file, 20)];
  });
  afterEach(async () => {
    await one.close();
    await other.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const holding = (): readonly string[] =>
    readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(SECRET));

  test('is no longer in any of its files, even if another process has them open', async () => {
    for (let size = 1; size <= 50; size += 1)
      expect(await one.save(point(size), [snapshot(size, SECRET.repeat(size * 10))], size - 1)).toBe(true);
    expect(await other.point(50)).toMatchObject({ size: 50 });
    await one.clear();
    expect(await one.save(point(1), [snapshot(1)], 0)).toBe(true);
    expect(holding()).not.toEqual([]);
    await other.wipe();
    expect(holding()).toEqual([]);
    expect(await one.point(50)).toBeNull();
    expect(await one.save(point(2), [snapshot(2, 'another')], 0)).toBe(true);
    expect(await other.snapshot('tree-2', 2)).toMatchObject({ text: 'another' });
  });

  test('does not get erased data back from readers that folded it before', async () => {
    expect(await one.point(50)).toBeNull();
    await other.wipe();
    expect(await one.save(point(1), [snapshot(1)], 0)).toBe(false);
    expect(holding()).toEqual([]);
    expect(await one.point(50)).toBeNull();
    expect(await one.save(point(1), [snapshot(1, 'again')], 0)).toBe(true);
  });

  test('does not report success while another process writes to it', async () => {
    await one.save(point(1), [snapshot(1)], 0);
    const writer = new Database(file);
    writer.exec('BEGIN IMMEDIATE');
    await expect(other.wipe()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    writer.close();
    await other.wipe();
    expect(holding()).toEqual([]);
  });
});

describe('the cache of a reader', () => {
  let folder: string;
  let file: string;
  let cache: HistoryCache;
  let before: ReturnType<typeof folderState>;
  beforeEach(async () => {
    folder = tempFolder('cache');
    file = join(folder, 'history.cache');
    const stored = sqliteHistoryCache(file);
    expect(await stored.point(1)).toBeNull();
    expect(await stored.save(point(1), [snapshot(1)], 0)).toBe(true);
    expect(await stored.save(point(2), [], 1)).toBe(true);
    await stored.close();
    before = folderState(folder);
    cache = historyReader(file, join(folder, 'ledger.db'));
  });
  afterEach(async () => {
    await cache.close();
    expect(folderState(folder)).toEqual(before);
  });

  const sizes = async (size: number): Promise<readonly number[]> => (await cache.ended(size)).map((each) => each.size);

  test('finds the points and snapshots of the file', async () => {
    expect((await cache.point(9))?.size).toBe(2);
    expect(await cache.snapshot('tree-1', 1)).toEqual(snapshot(1));
    expect(await sizes(9)).toEqual([1, 2]);
  });

  test('continues them in memory, and prefers its own points', async () => {
    expect(await cache.save(point(3), [snapshot(3)], 2)).toBe(true);
    expect(await cache.save(point(5), [], 4)).toBe(false);
    expect(await cache.save(point(2, '[]'), [], 1)).toBe(true);
    expect((await cache.point(9))?.size).toBe(3);
    expect((await cache.point(2))?.live).toBe('[]');
    expect(await cache.snapshot('tree-3', 3)).toEqual(snapshot(3));
    expect(await sizes(9)).toEqual([1, 2, 3]);
  });

  test('does not use a file whose points were not usable', async () => {
    expect((await cache.point(9))?.size).toBe(2);
    await cache.clear();
    expect(await cache.point(9)).toBeNull();
    expect(await cache.save(point(7), [], 0)).toBe(true);
    expect(await sizes(9)).toEqual([7]);
  });

  test.each([
    ['missing', 'no-such.cache', null],
    ['damaged', 'damaged.cache', 'not a database'],
  ])('works in memory if the file is %s', async (_name, name, content) => {
    if (content !== null) writeFileSync(join(folder, name), content);
    before = folderState(folder);
    const other = historyReader(join(folder, name), join(folder, 'ledger.db'));
    expect(await other.point(9)).toBeNull();
    expect(await other.save(point(1), [], 0)).toBe(true);
    expect((await other.point(9))?.size).toBe(1);
    await other.close();
  });

  test('does not erase', async () => {
    await expect(cache.wipe()).rejects.toThrow('a reader does not erase anything');
  });
});
