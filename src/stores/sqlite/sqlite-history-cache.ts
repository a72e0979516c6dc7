// The history cache of readers, in a separate database file next to the ledger. A reader cannot write into the ledger,
// and the writer does not wait for readers. A reader that cannot write this file caches in memory.

import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { InvariantError, LedgerError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import { refuseSpecialFile } from '../../system/files/open-file.js';
import type { EndedRuns, HistoryCache, ReplayPoint, HistorySnapshot } from '../../core/ledger/history-cache.js';
import { connectSqlite, truncateWal, type SqliteConnection } from './sqlite-binding.js';
import { openUntouched, type UntouchedFile } from './untouched-file.js';

/** "TPKH". */
const APPLICATION_ID = 0x54504b48;
/** Increased whenever the cached data changes its form: a file of another format is discarded. */
const FORMAT = 1;
/** In ms: two readers may store the same replay point at the same time. */
const BUSY_MS = 2_000;

const TABLES = `
CREATE TABLE IF NOT EXISTS points (
  size INTEGER PRIMARY KEY,
  live TEXT NOT NULL,
  live_sha256 TEXT NOT NULL,
  ended TEXT NOT NULL,
  ended_sha256 TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS snapshots (
  tree_id TEXT NOT NULL,
  size INTEGER NOT NULL,
  text TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (tree_id, size)
) STRICT;
CREATE TABLE IF NOT EXISTS wipes (id INTEGER PRIMARY KEY CHECK (id = 1), no INTEGER NOT NULL) STRICT;
INSERT OR IGNORE INTO wipes VALUES (1, 0);
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${FORMAT};
`;

const POINT =
  'SELECT size, live, live_sha256, ended, ended_sha256 FROM points WHERE size <= ? ORDER BY size DESC LIMIT 1';
const ENDED = 'SELECT size, ended, ended_sha256 FROM points WHERE size <= ? ORDER BY size';
const SNAPSHOT = 'SELECT tree_id, size, text, sha256 FROM snapshots WHERE tree_id = ? AND size = ?';

/** In place of a file name: a cache in memory. */
const IN_MEMORY = ':memory:';

/** @throws if the file is not a history cache of this format */
function checkFormat(db: SqliteConnection): void {
  const [application, format] = ['application_id', 'user_version'].map((name) => db.pragma(name, { simple: true }));
  if (application !== APPLICATION_ID || format !== FORMAT) throw new Error('another file');
}

/** The cache in `file`, created on first use; in memory if that fails. @param busy_ms wait for other processes */
export const sqliteHistoryCache = (file: string, busy_ms = BUSY_MS): HistoryCache =>
  new SqliteHistoryCache(file, busy_ms);

class SqliteHistoryCache implements HistoryCache {
  readonly #file: string;
  readonly #busy_ms: number;
  #db: SqliteConnection | null = null;
  /** Value of the wipe counter when a point was last read: `save` rejects points folded from a state wiped since. */
  #wipes = -1;

  constructor(file: string, busy_ms: number) {
    this.#file = file;
    this.#busy_ms = busy_ms;
  }

  point(size: number): Promise<ReplayPoint | null> {
    return this.#try((db) => {
      this.#wipes = wipesOf(db);
      return (db.prepare(POINT).get(size) as ReplayPoint | undefined) ?? null;
    }, null);
  }

  ended(size: number): Promise<readonly EndedRuns[]> {
    return this.#try((db) => db.prepare(ENDED).all(size) as EndedRuns[], []);
  }

  snapshot(tree_id: string, size: number): Promise<HistorySnapshot | null> {
    return this.#try((db) => (db.prepare(SNAPSHOT).get(tree_id, size) as HistorySnapshot | undefined) ?? null, null);
  }

  save(point: ReplayPoint, snapshots: readonly HistorySnapshot[], after: number): Promise<boolean> {
    return this.#try((db) => {
      const before = db.prepare('SELECT 1 FROM points WHERE size = ?').pluck();
      const addPoint = db.prepare(
        'INSERT OR REPLACE INTO points VALUES (@size, @live, @live_sha256, @ended, @ended_sha256)',
      );
      const addSnapshot = db.prepare('INSERT OR REPLACE INTO snapshots VALUES (@tree_id, @size, @text, @sha256)');
      return db
        .transaction(() => {
          if (wipesOf(db) !== this.#wipes) return false;
          if (after > 0 && before.get(after) === undefined) return false;
          for (const snapshot of snapshots) addSnapshot.run(snapshot);
          addPoint.run(point);
          return true;
        })
        .immediate();
    }, false);
  }

  clear(): Promise<void> {
    return this.#try((db) => void db.exec('DELETE FROM points; DELETE FROM snapshots;'), undefined);
  }

  wipe(): Promise<void> {
    return new Promise((resolve) => {
      try {
        this.#wipe();
        resolve();
      } catch (cause) {
        const message = `${this.#file} cannot be wiped now: repeat the erasure, or remove the file`;
        throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message, cause });
      }
    });
  }

  #wipe(): void {
    // A cache in memory does not show the state of the file.
    if (this.#db?.memory === true) void this.close();
    this.#db ??= this.#open();
    if (this.#db.memory) {
      removeFiles(this.#file);
      if (existsSync(this.#file)) throw new Error('the file still exists');
      return;
    }
    const db = this.#db;
    // Waits for other processes and for the disk: without a flush, power loss would restore the deleted rows.
    db.pragma(`busy_timeout = ${BUSY_MS}`);
    db.pragma('synchronous = FULL');
    try {
      db.exec('BEGIN IMMEDIATE; UPDATE wipes SET no = no + 1; DELETE FROM points; DELETE FROM snapshots; COMMIT;');
      // Free pages of the file, and its WAL, still contain the deleted rows.
      db.exec('VACUUM');
      if (!truncateWal(db)) throw new Error('a reader blocks the checkpoint');
    } finally {
      if (db.inTransaction) db.exec('ROLLBACK');
      db.pragma('synchronous = OFF');
      db.pragma(`busy_timeout = ${this.#busy_ms}`);
    }
  }

  close(): Promise<void> {
    this.#db?.close();
    this.#db = null;
    return Promise.resolve();
  }

  #open(): SqliteConnection {
    const db = openCache(this.#file, this.#busy_ms);
    if (this.#wipes < 0) this.#wipes = wipesOf(db);
    return db;
  }

  /** A failure of the file loses cached data and nothing else. */
  #try<T>(work: (db: SqliteConnection) => T, fallback: T): Promise<T> {
    try {
      this.#db ??= this.#open();
      return Promise.resolve(work(this.#db));
    } catch (error) {
      if (errorCode(error).startsWith('SQLITE_BUSY')) return Promise.resolve(fallback);
      this.#db?.close();
      if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(errorCode(error))) removeFiles(this.#file);
      this.#db = openInMemory();
      return Promise.resolve(fallback);
    }
  }
}

const wipesOf = (db: SqliteConnection): number => Number(db.prepare('SELECT no FROM wipes').pluck().get());

function openCache(file: string, busy_ms: number): SqliteConnection {
  if (file === IN_MEMORY) return openInMemory();
  try {
    return openFile(file, busy_ms);
  } catch {
    // The file is damaged, of another format, or not writable: try to create a new one.
  }
  try {
    removeFiles(file);
    return openFile(file, busy_ms);
  } catch {
    return openInMemory();
  }
}

function removeFiles(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
}

/** @throws if the file cannot be used */
function openFile(file: string, busy_ms: number): SqliteConnection {
  refuseSpecialFile(file);
  // Created here with its mode: SQLite gives its WAL and shared-memory files the same mode.
  closeSync(openSync(file, 'a', 0o600));
  const db = connectSqlite(file, { timeout: busy_ms });
  try {
    const application = db.pragma('application_id', { simple: true });
    if (application !== 0) checkFormat(db);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = OFF');
    db.pragma('secure_delete = ON');
    if (application === 0) db.exec(TABLES);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function openInMemory(): SqliteConnection {
  const db = connectSqlite(IN_MEMORY);
  db.exec(TABLES);
  return db;
}

// The cache for a reader that changes nothing: it uses the replay points that a writer has stored in the file, and
// stores its own in memory.

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
    const own = await this.#own.point(size);
    const [stored] = this.#read(POINT, [size]) as readonly ReplayPoint[];
    return stored === undefined || (own !== null && own.size >= stored.size) ? own : stored;
  }

  async ended(size: number): Promise<readonly EndedRuns[]> {
    const own = await this.#own.ended(size);
    const stored = this.#read(ENDED, [size]) as readonly EndedRuns[];
    const sizes = new Set(own.map((point) => point.size));
    return [...stored.filter((point) => !sizes.has(point.size)), ...own].sort((a, b) => a.size - b.size);
  }

  async snapshot(tree_id: string, size: number): Promise<HistorySnapshot | null> {
    const own = await this.#own.snapshot(tree_id, size);
    const [stored] = this.#read(SNAPSHOT, [tree_id, size]) as readonly HistorySnapshot[];
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
    return openUntouched(this.#file, configureReader, { lockOf: this.#lockOf, copyBytesMax: 0 });
  }
}

function configureReader(db: SqliteConnection): void {
  db.pragma('trusted_schema = OFF');
  db.pragma('query_only = ON');
  checkFormat(db);
}
