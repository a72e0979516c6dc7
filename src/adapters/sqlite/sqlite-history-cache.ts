// What readers remember of a ledger, in a file of their own beside it: a reader cannot write into the ledger, and its
// writer need not wait for readers. Whoever may not write here remembers for as long as it runs.

import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { LedgerError } from '../../errors.js';
import { errorCode } from '../system/error-code.js';
import { refuseSpecialFile } from '../files/open-file.js';
import type { EndedRuns, HistoryCache, ReplayPoint, HistorySnapshot } from '../../ports/ledger/history-cache.js';

/** "TPHC". */
const APPLICATION_ID = 0x54504843;
/** One more whenever what is remembered changes its form: an older file is forgotten. */
const FORMAT = 2;
/** Two readers may put down the same point. */
export const BUSY_MS = 2_000;

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

/** The cache in this file, which is made on first use; in memory where that cannot be. It waits so long for others. */
export const sqliteHistoryCache = (file: string, busy_ms = BUSY_MS): HistoryCache =>
  new SqliteHistoryCache(file, busy_ms);

class SqliteHistoryCache implements HistoryCache {
  readonly #file: string;
  readonly #busy_ms: number;
  #db: Database.Database | null = null;
  /** How often it had been wiped when it was last asked for a point: what is folded since then goes on from there. */
  #wipes = -1;

  constructor(file: string, busy_ms: number) {
    this.#file = file;
    this.#busy_ms = busy_ms;
  }

  point(size: number): Promise<ReplayPoint | null> {
    const sql =
      'SELECT size, live, live_sha256, ended, ended_sha256 FROM points WHERE size <= ? ORDER BY size DESC LIMIT 1';
    return this.#try((db) => {
      this.#wipes = wipesOf(db);
      return (db.prepare(sql).get(size) as ReplayPoint | undefined) ?? null;
    }, null);
  }

  ended(size: number): Promise<readonly EndedRuns[]> {
    const sql = 'SELECT size, ended, ended_sha256 FROM points WHERE size <= ? ORDER BY size';
    return this.#try((db) => db.prepare(sql).all(size) as EndedRuns[], []);
  }

  snapshot(tree_id: string, size: number): Promise<HistorySnapshot | null> {
    const sql = 'SELECT tree_id, size, text, sha256 FROM snapshots WHERE tree_id = ? AND size = ?';
    return this.#try((db) => (db.prepare(sql).get(tree_id, size) as HistorySnapshot | undefined) ?? null, null);
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
        const message = `${this.#file} cannot be wiped now: erase once more, or remove it`;
        throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message, cause });
      }
    });
  }

  #wipe(): void {
    // In memory, it says nothing of the file.
    if (this.#db?.memory === true) void this.close();
    this.#db ??= this.#open();
    if (this.#db.memory) {
      removeFiles(this.#file);
      if (existsSync(this.#file)) throw new Error('it is there still');
      return;
    }
    const db = this.#db;
    // It is waited for others here, and for the disk: it would all come back where the power goes.
    db.pragma(`busy_timeout = ${BUSY_MS}`);
    db.pragma('synchronous = FULL');
    try {
      db.exec('BEGIN IMMEDIATE; UPDATE wipes SET no = no + 1; DELETE FROM points; DELETE FROM snapshots; COMMIT;');
      // What was moved about in the file, and its log, have it still.
      db.exec('VACUUM');
      const [checkpoint] = db.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
      if (checkpoint?.busy !== 0) throw new Error('somebody reads it');
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

  #open(): Database.Database {
    const db = openCache(this.#file, this.#busy_ms);
    if (this.#wipes < 0) this.#wipes = wipesOf(db);
    return db;
  }

  /** What goes wrong with the file costs what it remembers, and nothing else. */
  #try<T>(work: (db: Database.Database) => T, fallback: T): Promise<T> {
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

const wipesOf = (db: Database.Database): number => Number(db.prepare('SELECT no FROM wipes').pluck().get());

function openCache(file: string, busy_ms: number): Database.Database {
  try {
    return openFile(file, busy_ms);
  } catch {
    // Damaged, of another form, or not to be written: it is made anew, if that can be.
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

/** @throws for a file that cannot be used */
function openFile(file: string, busy_ms: number): Database.Database {
  refuseSpecialFile(file);
  // Made here with its mode: SQLite gives the files that it puts beside it the same.
  closeSync(openSync(file, 'a', 0o600));
  const db = new Database(file, { timeout: busy_ms });
  try {
    const [application, format] = ['application_id', 'user_version'].map((name) => db.pragma(name, { simple: true }));
    if (application !== 0 && (application !== APPLICATION_ID || format !== FORMAT)) throw new Error('another file');
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

function openInMemory(): Database.Database {
  const db = new Database(':memory:');
  db.exec(TABLES);
  return db;
}
