// Records in the ledger's own database. Their rows wait in the transaction that the next commit of the ledger ends, so
// that a row is there exactly where the ledger says so. No target can name a table of the ledger: all of theirs begin
// with `records_`.

import type { CompiledQuery } from 'kysely';
import type { TargetDefinition } from '../contract/catalogue.js';
import type { EffectResult } from '../contract/effect.js';
import { LedgerError } from '../errors.js';
import type { OwnRecords, RecordRead, RecordWrite } from '../ports/records.js';
import { stepNow, type SqlAnswer } from './sql-kysely.js';
import { putRecord, readRecords, WRITTEN, type RecordPlace } from './sql-records.js';
import { done, failed, failedBy, isOfTheRow, unreadBy } from './sql-refusal.js';
import { sqliteAsk } from './sql-sqlite-ask.js';
import { SqlStatements } from './sql-statements.js';
import { tablesOf } from './sql-table.js';
import { missingTables } from './sql-tables.js';
import type { Connection } from './sqlite-database.js';

/** What records need of the ledger's writer. */
export interface RecordTransaction {
  /** Whether a write failed, so that nothing will be committed any more. */
  isBroken(): boolean;
  /**
   * Does something in a transaction of its own.
   * @throws LedgerError LEDGER_UNAVAILABLE @throws InvariantError while rows wait
   */
  alone(work: () => void): void;
  /** Whether the transaction that the next commit ends has begun. */
  isBegun(): boolean;
  /** Begins the transaction that the next commit ends. @returns false where it had begun before */
  begin(): boolean;
  /** Takes that transaction back. */
  abandon(): void;
  /** Takes it back, and lets nothing be committed any more. */
  fail(cause: unknown): void;
}

interface Prepared extends RecordPlace {
  readonly db: Connection;
  readonly ask: (query: CompiledQuery) => SqlAnswer;
}

/** The records of a ledger that is open for writing. */
export class SqliteOwnRecords implements OwnRecords {
  readonly #connection: () => Connection;
  readonly #transaction: () => RecordTransaction | null;
  #prepared: Prepared | null = null;

  /**
   * @param connection gives the one that is open now
   * @param transaction gives that of the writer, or null while the store is not that
   */
  constructor(connection: () => Connection, transaction: () => RecordTransaction | null) {
    this.#connection = connection;
    this.#transaction = transaction;
  }

  open(targets: readonly TargetDefinition[]): void {
    const tables = tablesOf(targets, 'own');
    if (tables.length === 0) return;
    const { statements, ask } = this.#ready();
    const transaction = this.#writing();
    // Looked at first, in no transaction: what is wrong with a target must not end the writer.
    const missing = stepNow(missingTables(statements, tables), ask);
    if (missing.length === 0) return;
    transaction.alone(() => {
      for (const table of missing) ask(statements.createTable(table));
    });
  }

  write(write: RecordWrite): EffectResult {
    const transaction = this.#writing();
    if (transaction.isBroken()) return failed('IO_ERROR', 'a write of the ledger failed before');
    const { ask, ...place } = this.#ready();
    let first = false;
    try {
      first = transaction.begin();
      this.#connection().exec('SAVEPOINT record');
      stepNow(putRecord(place, write), ask);
      this.#connection().exec('RELEASE record');
      return done(WRITTEN);
    } catch (error) {
      // Nothing waits yet: then nothing is begun either.
      if (first && isOfTheRow(error)) transaction.abandon();
      else this.#takeBack(transaction, error);
      return failedBy(error);
    }
  }

  read(read: RecordRead): EffectResult {
    const { ask, ...place } = this.#ready();
    try {
      return stepNow(readRecords(place, read), ask);
    } catch (error) {
      return unreadBy(error);
    }
  }

  get dirty(): boolean {
    return this.#transaction()?.isBegun() === true;
  }

  abandon(): void {
    this.#transaction()?.abandon();
  }

  /** A row that was refused is taken back alone. After anything else nobody knows what the transaction holds. */
  #takeBack(transaction: RecordTransaction, error: unknown): void {
    try {
      if (!isOfTheRow(error)) throw error;
      // Fails where SQLite has taken the whole transaction back by itself, with the rows of others.
      this.#connection().exec('ROLLBACK TO record');
      this.#connection().exec('RELEASE record');
    } catch (cause) {
      transaction.fail(cause);
    }
  }

  #writing(): RecordTransaction {
    const transaction = this.#transaction();
    if (transaction !== null) return transaction;
    throw new LedgerError({ code: 'LEDGER_CONFLICT', message: 'this store is not the writer: acquire it first' });
  }

  #ready(): Prepared {
    const db = this.#connection();
    if (this.#prepared?.db !== db) {
      this.#prepared = { db, place: 'own', statements: new SqlStatements('sqlite'), ask: sqliteAsk(db) };
    }
    return this.#prepared;
  }
}
