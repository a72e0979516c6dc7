// The history cache for a reader that changes nothing: it uses the replay points that a writer has stored in the file,
// and stores its own in memory.

import type { EndedRuns, HistoryCache, HistorySnapshot, ReplayPoint } from '../../core/ledger/history-cache.js';
import type { SqliteConnection } from './sqlite-binding.js';
import { checkFormat, IN_MEMORY, sqliteHistoryCache } from './sqlite-history-cache.js';
import { openUntouched, type UntouchedFile } from './untouched-file.js';
import { InvariantError } from '../../core/errors.js';

/**
 * The cache in `file`, if it exists.
 * @param lockOf the path whose `.lock` file is locked by the process that writes the cache
 */
export const historyReader = (file: string, lockOf: string): HistoryCache => new HistoryReader(file, lockOf);

class HistoryReader implements HistoryCache {
  readonly #file: string;
  readonly #lockOf: string;
  /** Undefined before the first read; null if the file cannot be used. */
  #stored: UntouchedFile | null | undefined = undefined;
  readonly #own = sqliteHistoryCache(IN_MEMORY);

  constructor(file: string, lockOf: string) {
    this.#file = file;
    this.#lockOf = lockOf;
  }

  async point(size: number): Promise<ReplayPoint | null> {
    const sql =
      'SELECT size, live, live_sha256, ended, ended_sha256 FROM points WHERE size <= ? ORDER BY size DESC LIMIT 1';
    const own = await this.#own.point(size);
    const [stored] = this.#read(sql, [size]) as readonly ReplayPoint[];
    return stored === undefined || (own !== null && own.size >= stored.size) ? own : stored;
  }

  async ended(size: number): Promise<readonly EndedRuns[]> {
    const own = await this.#own.ended(size);
    const sql = 'SELECT size, ended, ended_sha256 FROM points WHERE size <= ? ORDER BY size';
    const stored = this.#read(sql, [size]) as readonly EndedRuns[];
    const sizes = new Set(own.map((point) => point.size));
    return [...stored.filter((point) => !sizes.has(point.size)), ...own].sort((a, b) => a.size - b.size);
  }

  async snapshot(tree_id: string, size: number): Promise<HistorySnapshot | null> {
    const sql = 'SELECT tree_id, size, text, sha256 FROM snapshots WHERE tree_id = ? AND size = ?';
    const own = await this.#own.snapshot(tree_id, size);
    const [stored] = this.#read(sql, [tree_id, size]) as readonly HistorySnapshot[];
    return own ?? stored ?? null;
  }

  /** The previous point is in the file or in memory, so memory is not asked for it. */
  async save(point: ReplayPoint, snapshots: readonly HistorySnapshot[], after: number): Promise<boolean> {
    if (after > 0 && (await this.point(after))?.size !== after) return false;
    return this.#own.save(point, snapshots, 0);
  }

  /** The file is not used any more, because what it contains was not usable. */
  async clear(): Promise<void> {
    await this.#leaveFile();
    await this.#own.clear();
  }

  wipe(): Promise<void> {
    return Promise.reject(new InvariantError('a reader does not erase anything'));
  }

  async close(): Promise<void> {
    await this.#leaveFile();
    await this.#own.close();
  }

  #leaveFile(): Promise<void> {
    this.#stored?.db.close();
    this.#stored = null;
    return Promise.resolve();
  }

  /** A file that is missing, damaged, of another form or being changed has nothing for this reader. */
  #read(sql: string, values: readonly unknown[]): readonly unknown[] {
    try {
      if (this.#stored === undefined) this.#stored = this.#open();
      if (this.#stored === null) return [];
      const rows = this.#stored.db.prepare(sql).all(...values);
      if (this.#stored.isCurrent()) return rows;
    } catch {
      // Points are checked by their hashes, and the ledger alone suffices.
    }
    void this.#leaveFile();
    return [];
  }

  /** Without a copy: the end of a WAL without a writer may be lost, as all of a cache. */
  #open(): UntouchedFile {
    return openUntouched(this.#file, configure, { lockOf: this.#lockOf, copyBytesMax: 0 });
  }
}

function configure(db: SqliteConnection): void {
  db.pragma('trusted_schema = OFF');
  db.pragma('query_only = ON');
  checkFormat(db);
}
