// Records in a SQLite file that is not the ledger. SQLite answers at once, so a transaction is never left half-way.

import { closeSync, existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import type { CompiledQuery } from 'kysely';
import { RecordsError } from '../errors.js';
import { errorCode } from './error-code.js';
import { NotAFile, refuseSpecialFile } from './open-file.js';
import type { SqlHome, SqlOutcome } from './sql-home.js';
import { stepNow, type SqlAnswer, type SqlSteps } from './sql-kysely.js';
import { sqliteAsk } from './sql-sqlite-ask.js';
import { APPLICATION_ID } from './sqlite-schema.js';

/** A statement waits as long for another process, and this one with it. */
const BUSY_MS = 2_000;

/** After these a COMMIT has certainly not happened. After a failed write or fsync it may stand in the file. */
const NOT_COMMITTED = /^SQLITE_(?:BUSY|CONSTRAINT)/;

interface Opened {
  readonly db: Database.Database;
  readonly ask: (query: CompiledQuery) => SqlAnswer;
}

/** The home of records in a SQLite file, which is opened when it is first needed, and anew after a failed COMMIT. */
export class SqliteHome implements SqlHome {
  readonly dialect = 'sqlite';
  readonly #file: string;
  readonly #create: boolean;
  #opened: Opened | null = null;
  #closed = false;

  constructor(file: string, create: boolean) {
    this.#file = resolve(file);
    this.#create = create;
  }

  transact<T>(steps: () => SqlSteps<T>, keep: (result: T) => boolean): Promise<SqlOutcome<T>> {
    return Promise.resolve(this.#transact(steps, keep));
  }

  ask<T>(steps: () => SqlSteps<T>): Promise<SqlOutcome<T>> {
    return Promise.resolve(this.#attempt(() => ({ ended: 'certain', result: stepNow(steps(), this.#open().ask) })));
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#drop();
    return Promise.resolve();
  }

  #transact<T>(steps: () => SqlSteps<T>, keep: (result: T) => boolean): SqlOutcome<T> {
    return this.#attempt(() => {
      const { db, ask } = this.#open();
      db.exec('BEGIN IMMEDIATE');
      const result = stepNow(steps(), ask);
      if (!keep(result)) {
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
      if (this.#opened?.db.inTransaction === true) this.#opened.db.exec('ROLLBACK');
    } catch {
      // Closing undoes it too.
      this.#drop();
    }
  }

  #drop(): void {
    this.#opened?.db.close();
    this.#opened = null;
  }

  #open(): Opened {
    if (this.#opened !== null) return this.#opened;
    if (this.#closed) throw unreachable('the database was closed');
    refuseSpecial(this.#file);
    if (this.#create && !existsSync(this.#file)) closeSync(openSync(this.#file, 'a', 0o600));
    const db = new Database(this.#file, { fileMustExist: true, timeout: BUSY_MS });
    try {
      configure(db, this.#file);
    } catch (error) {
      db.close();
      throw error;
    }
    this.#opened = { db, ask: sqliteAsk(db) };
    return this.#opened;
  }
}

function refuseSpecial(file: string): void {
  try {
    refuseSpecialFile(file);
  } catch (error) {
    throw error instanceof NotAFile ? unreachable(error.message) : error;
  }
}

function configure(db: Database.Database, file: string): void {
  db.pragma('trusted_schema = OFF');
  if (db.pragma('application_id', { simple: true }) === APPLICATION_ID) {
    throw unreachable(`${file} is a ledger: keep records in another file`);
  }
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw unreachable(`${file} is on no local disk: keep it on one`);
  }
  db.pragma('synchronous = FULL');
  db.pragma('fullfsync = ON');
  db.pragma('foreign_keys = ON');
}

const unreachable = (message: string): RecordsError => new RecordsError({ code: 'RECORDS_UNREACHABLE', message });
