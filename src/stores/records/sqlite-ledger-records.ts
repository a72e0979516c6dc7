// Records in the ledger's own database. Their rows are pending in the transaction that the next ledger commit ends, so
// that a row exists exactly if the ledger says so. No target can name a table of the ledger: the table names of targets
// start with `records_`.

import type { CompiledQuery } from 'kysely';
import type { TargetDefinition } from '../../core/contract/policy/catalogue.js';
import type { EffectResult } from '../../core/contract/run/effect.js';
import type { LedgerRecords, RecordRead, RecordWrite } from '../../engine/ports/effects/records.js';
import { runSteps, type SqlResult } from './sql-kysely.js';
import { putRecord, readRecords, WRITTEN_RESULT, type RecordStorage } from './sql-records.js';
import { doneRecordResult, failedRecordResult, recordFailureOf, isRowError, readFailureOf } from './sql-errors.js';
import { createSqliteExecutor } from './sqlite-backend.js';
import { SqlStatements } from './sql-statements.js';
import { tablesOf } from './sql-table.js';
import { missingTables } from './sql-open-tables.js';
import { notWriterError } from '../ledger/store-errors.js';
import type { SqliteConnection } from '../sqlite/sqlite-binding.js';
import type { OpenLedgerRecords, SqliteWriter } from '../sqlite/sqlite-writer.js';

interface PreparedRecords extends RecordStorage {
  readonly db: SqliteConnection;
  readonly execute: (query: CompiledQuery) => SqlResult;
}

/** The records of a ledger that is opened for writing. */
class SqliteLedgerRecords implements LedgerRecords {
  readonly #connection: () => SqliteConnection;
  readonly #writer: () => SqliteWriter | null;
  #prepared: PreparedRecords | null = null;

  /**
   * @param connection returns the open connection
   * @param writer returns the writer, or null while the store is not the writer
   */
  constructor(connection: () => SqliteConnection, writer: () => SqliteWriter | null) {
    this.#connection = connection;
    this.#writer = writer;
  }

  open(targets: readonly TargetDefinition[]): void {
    const tables = tablesOf(targets, 'own');
    if (tables.length === 0) return;
    const { statements, execute } = this.#prepare();
    const writer = this.#requireWriter();
    // Checked first, outside a transaction: an invalid target must not end the writer.
    const missing = runSteps(missingTables(statements, tables), execute);
    if (missing.length === 0) return;
    writer.createTables(() => {
      for (const table of missing) execute(statements.createTable(table));
    });
  }

  write(write: RecordWrite): EffectResult {
    const writer = this.#requireWriter();
    if (writer.isBroken) return failedRecordResult('IO_ERROR', 'a write of the ledger failed before');
    const { execute, ...place } = this.#prepare();
    let isFirst = false;
    try {
      isFirst = writer.beginRecords();
      this.#connection().exec('SAVEPOINT record');
      runSteps(putRecord(place, write), execute);
      this.#connection().exec('RELEASE record');
      return doneRecordResult(WRITTEN_RESULT);
    } catch (error) {
      // No other rows are pending, so the whole transaction is rolled back.
      if (isFirst && isRowError(error)) writer.discardRecords();
      else this.#rollBackRow(writer, error);
      return recordFailureOf(error);
    }
  }

  read(read: RecordRead): EffectResult {
    const { execute, ...place } = this.#prepare();
    try {
      return runSteps(readRecords(place, read), execute);
    } catch (error) {
      return readFailureOf(error);
    }
  }

  get dirty(): boolean {
    return this.#writer()?.hasRecords === true;
  }

  abandon(): void {
    this.#writer()?.discardRecords();
  }

  /** Rolls back only a refused row. After any other error the content of the transaction is unknown. */
  #rollBackRow(writer: SqliteWriter, error: unknown): void {
    try {
      if (!isRowError(error)) throw error;
      // Fails if SQLite has rolled back the whole transaction by itself, with other rows.
      this.#connection().exec('ROLLBACK TO record');
      this.#connection().exec('RELEASE record');
    } catch (cause) {
      writer.fail(cause);
    }
  }

  #requireWriter(): SqliteWriter {
    const writer = this.#writer();
    if (writer !== null) return writer;
    throw notWriterError();
  }

  #prepare(): PreparedRecords {
    const db = this.#connection();
    if (this.#prepared?.db !== db) {
      this.#prepared = { db, place: 'own', statements: new SqlStatements('sqlite'), execute: createSqliteExecutor(db) };
    }
    return this.#prepared;
  }
}

/** For a store whose targets may be in its own database. */
export const openSqliteRecords: OpenLedgerRecords = (connection, writer) => new SqliteLedgerRecords(connection, writer);
