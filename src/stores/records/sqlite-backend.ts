// Records in a SQLite file that is not the ledger. SQLite is synchronous, so a transaction never stays open in between.

import { closeSync, existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CompiledQuery } from 'kysely';
import { RecordsError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import { NotAFile, refuseSpecialFile } from '../../system/files/open-file.js';
import { type SqlBackend, type SqlOutcome, runSteps, type SqlResult, type SqlSteps } from './sql-kysely.js';
import { connectSqlite, type SqliteConnection, type SqliteStatement } from '../sqlite/sqlite-binding.js';
import { APPLICATION_ID } from '../sqlite/sqlite-schema.js';
import { createLruMap } from '../../system/lru-map.js';

/** How long a statement, and with it this process, waits for another process, in ms. */
const BUSY_MS = 2_000;
/** Number of cached prepared statements. Agents choose the columns of a read, and so its text. */
const STATEMENTS_MAX = 256;

/** After these codes a COMMIT has certainly not happened. After a failed write or fsync it may be in the file. */
const NOT_COMMITTED = /^SQLITE_(?:BUSY|CONSTRAINT)/;

interface OpenConnection {
  readonly db: SqliteConnection;
  readonly execute: (query: CompiledQuery) => SqlResult;
}

/** Opens the file on first use, and again after a failed COMMIT. */
export class SqliteBackend implements SqlBackend {
  readonly dialect = 'sqlite';
  readonly #file: string;
  readonly #create: boolean;
  #connection: OpenConnection | null = null;
  #closed = false;

  constructor(file: string, create: boolean) {
    this.#file = resolve(file);
    this.#create = create;
  }

  transact<T>(steps: () => SqlSteps<T>, shouldCommit: (result: T) => boolean): Promise<SqlOutcome<T>> {
    return Promise.resolve(this.#transact(steps, shouldCommit));
  }

  query<T>(steps: () => SqlSteps<T>): Promise<SqlOutcome<T>> {
    return Promise.resolve(
      this.#attempt(() => ({ ended: 'certain', result: runSteps(steps(), this.#open().execute) })),
    );
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#drop();
    return Promise.resolve();
  }

  #transact<T>(steps: () => SqlSteps<T>, shouldCommit: (result: T) => boolean): SqlOutcome<T> {
    return this.#attempt(() => {
      const { db, execute } = this.#open();
      db.exec('BEGIN IMMEDIATE');
      const result = runSteps(steps(), execute);
      if (!shouldCommit(result)) {
        db.exec('ROLLBACK');
        return { ended: 'certain', result };
      }
      try {
        db.exec('COMMIT');
        return { ended: 'certain', result };
      } catch (error) {
        if (NOT_COMMITTED.test(errorCode(error))) throw error;
        this.#drop();
        return { ended: 'unsure', error };
      }
    });
  }

  #attempt<T>(work: () => SqlOutcome<T>): SqlOutcome<T> {
    try {
      return work();
    } catch (error) {
      this.#rollBack();
      return { ended: 'failed', error };
    }
  }

  #rollBack(): void {
    try {
      if (this.#connection?.db.inTransaction === true) this.#connection.db.exec('ROLLBACK');
    } catch {
      // Closing the connection rolls back too.
      this.#drop();
    }
  }

  #drop(): void {
    this.#connection?.db.close();
    this.#connection = null;
  }

  #open(): OpenConnection {
    if (this.#connection !== null) return this.#connection;
    if (this.#closed) throw unreachableError('the database was closed');
    refuseSpecial(this.#file);
    if (this.#create && !existsSync(this.#file)) closeSync(openSync(this.#file, 'a', 0o600));
    const db = connectSqlite(this.#file, { fileMustExist: true, timeout: BUSY_MS });
    try {
      configure(db, this.#file);
    } catch (error) {
      db.close();
      throw error;
    }
    this.#connection = { db, execute: createSqliteExecutor(db) };
    return this.#connection;
  }
}

/** Executes queries on a SQLite connection. Integers are read as bigint, so that none is rounded. */
export function createSqliteExecutor(db: SqliteConnection): (query: CompiledQuery) => SqlResult {
  const prepared = createLruMap<SqliteStatement>(STATEMENTS_MAX);
  return ({ sql, parameters }) => {
    const statement = prepared.get(sql) ?? db.prepare(sql).safeIntegers();
    prepared.set(sql, statement);
    if (statement.reader) return { rows: statement.all(...parameters) as SqlResult['rows'], changes: 0 };
    return { rows: [], changes: statement.run(...parameters).changes };
  };
}

function refuseSpecial(file: string): void {
  try {
    refuseSpecialFile(file);
  } catch (error) {
    throw error instanceof NotAFile ? unreachableError(error.message) : error;
  }
}

function configure(db: SqliteConnection, file: string): void {
  db.pragma('trusted_schema = OFF');
  if (db.pragma('application_id', { simple: true }) === APPLICATION_ID) {
    throw unreachableError(`${file} is a ledger: keep records in another file`);
  }
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw unreachableError(`${file} is on no local disk: keep it on one`);
  }
  db.pragma('synchronous = FULL');
  db.pragma('fullfsync = ON');
  db.pragma('foreign_keys = ON');
}

const unreachableError = (message: string): RecordsError => new RecordsError({ code: 'RECORDS_UNREACHABLE', message });
