import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { sqliteHistoryCache } from '../../../src/stores/sqlite/sqlite-history-cache.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { HistoryCache, ReplayPoint, HistorySnapshot } from '../../../src/core/ledger/history-cache.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const SECRET = 'where it stood, in confidence';
const point = (size: number): ReplayPoint => ({
  size,
  live: '{}',
  live_sha256: sha256('{}'),
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
