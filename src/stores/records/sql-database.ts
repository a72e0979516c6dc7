// Records outside the ledger's own database: in a SQLite file or in PostgreSQL, in tables that the user owns. A row and
// the note of its effect are written in one transaction. So it can be decided later whether the row was written.
//
//   E1. The note is inserted first. Concurrent attempts of the same effect wait for each other at its primary key.
//   E2. A note never changes. `void` means that the write must not happen any more: a late first attempt finds it, or
//       fails on the primary key.
//   E3. So a committed `void` note proves that the write has not happened.

import { isJsonObject, readJson } from '../../core/contract/json.js';
import type { TargetDefinition } from '../../core/contract/policy/catalogue.js';
import type { EffectResult } from '../../core/contract/run/effect.js';
import { RecordsError, usageError } from '../../core/errors.js';
import type { RecordDatabase, RecordRead, RecordWrite } from '../../engine/ports/effects/records.js';
import { builderFor, kysely, type SqlBackend, type SqlResult, type SqlSteps } from './sql-kysely.js';
import { PostgresBackend } from './postgres-backend.js';
import { putRecord, readRecords, WRITTEN_RESULT, type RecordStorage } from './sql-records.js';
import {
  detailOf,
  doneRecordResult,
  failedRecordResult,
  recordFailureOf,
  isDuplicateRow,
  isTimeout,
  UNKNOWN_RECORD_RESULT,
  readFailureOf,
} from './sql-errors.js';
import { SqliteBackend } from './sqlite-backend.js';
import { EFFECTS_TABLE, SqlStatements } from './sql-statements.js';
import { tablesOf } from './sql-table.js';
import { openTables } from './sql-open-tables.js';

/** An upsert that collides with a concurrent insert of the same new row is retried, and then finds the row. */
const UPSERTS_MAX = 3;
/** Advisory lock, so that only one of several starting processes creates the tables. Any number; "TPLR". */
const OPENING = 0x54504c52;

/** Options of a database for the records of targets. */
export interface SqlDatabaseOptions {
  /**
   * `sqlite:PATH`, or a connection URL that begins with `postgres://` or `postgresql://`, for which the package `pg`
   * must be installed.
   */
  readonly url: string;
  /** Creates the missing tables of targets, and the SQLite file. @default false */
  readonly create?: boolean;
}

/**
 * A database of records. `open` connects to it.
 *
 * `failed` is about this attempt only: after `unknown`, settle the write before retrying it. A call waits at most 2 s
 * for another process that writes to a SQLite file; in PostgreSQL 5 s for one of 4 connections, 10 s for a statement.
 * @throws UsageError for an unsupported URL
 */
export function sqlDatabase({ url, create = false }: SqlDatabaseOptions): RecordDatabase {
  if (/^postgres(?:ql)?:\/\//.test(url)) return new SqlRecords(new PostgresBackend(url), create);
  const [, path = ''] = /^sqlite:([^:\0][^\0]*)$/.exec(url) ?? [];
  if (path !== '') return new SqlRecords(new SqliteBackend(path, create), create);
  throw usageError('a database is sqlite:PATH or postgres://...');
}

class SqlRecords implements RecordDatabase {
  readonly #backend: SqlBackend;
  readonly #create: boolean;
  #cachedPlace: RecordStorage | null = null;

  constructor(backend: SqlBackend, create: boolean) {
    this.#backend = backend;
    this.#create = create;
  }

  async open(targets: readonly TargetDefinition[]): Promise<void> {
    const { place, statements } = this.#place();
    const tables = tablesOf(targets, place);
    const create = this.#create;
    function* steps(): SqlSteps<void> {
      if (place === 'postgres') yield createOpeningLock();
      // Before the tables of targets: the effect table is ours and is always created if it is missing.
      yield* openTables(statements, [EFFECTS_TABLE], true);
      yield* openTables(statements, tables, create);
    }
    const outcome = await this.#backend.transact(steps, () => true);
    if (outcome.ended === 'certain') return;
    if (outcome.error instanceof RecordsError) throw outcome.error;
    const message = `the database of records cannot be opened: ${detailOf(outcome.error)}`;
    throw new RecordsError({ code: 'RECORDS_UNREACHABLE', message, cause: outcome.error });
  }

  async write(write: RecordWrite): Promise<EffectResult> {
    for (let attempt = 1; ; attempt += 1) {
      const progress = { isNoted: false };
      const outcome = await this.#backend.transact(() => writeOnce(this.#place(), write, progress), shouldCommitResult);
      if (outcome.ended === 'certain') return outcome.result.result;
      if (outcome.ended === 'unsure') return UNKNOWN_RECORD_RESULT;
      if (write.mode === 'upsert' && isDuplicateRow(outcome.error) && attempt < UPSERTS_MAX) continue;
      // Another attempt is writing this very effect, and its outcome counts.
      return !progress.isNoted && isTimeout(outcome.error) ? UNKNOWN_RECORD_RESULT : recordFailureOf(outcome.error);
    }
  }

  async read(read: RecordRead): Promise<EffectResult> {
    const outcome = await this.#backend.query(() => readRecords(this.#place(), read));
    return outcome.ended === 'certain' ? outcome.result : readFailureOf(outcome.error);
  }

  async settle(write: RecordWrite): Promise<EffectResult> {
    const outcome = await this.#backend.transact(() => settleOnce(this.#place(), write), shouldCommitResult);
    return outcome.ended === 'certain' ? outcome.result.result : UNKNOWN_RECORD_RESULT;
  }

  close(): Promise<void> {
    return this.#backend.close();
  }

  #place(): RecordStorage {
    const { dialect } = this.#backend;
    this.#cachedPlace ??= { place: dialect, statements: new SqlStatements(dialect) };
    return this.#cachedPlace;
  }
}

const shouldCommitResult = ({ shouldCommit }: TransactionResult): boolean => shouldCommit;

function createOpeningLock() {
  return kysely().sql`select pg_advisory_xact_lock(${OPENING})`.compile(builderFor('postgres'));
}

/** The result of an effect, and whether its transaction is to be committed. */
interface TransactionResult {
  readonly shouldCommit: boolean;
  readonly result: EffectResult;
}

/** How far a write got, also if it fails. */
interface WriteProgress {
  /** Our note is inserted: no other attempt is in flight. */
  isNoted: boolean;
}

/** Writes a record and its note, or returns the result of an earlier attempt. @throws like `putRecord` */
function* writeOnce(where: RecordStorage, write: RecordWrite, progress: WriteProgress): SqlSteps<TransactionResult> {
  const inserted: SqlResult = yield where.statements.noteEffect(noteOf(write, 'done', JSON.stringify(WRITTEN_RESULT)));
  progress.isNoted = true;
  if (inserted.changes !== 1) return yield* recallEffect(where, write);
  yield* putRecord(where, write);
  return { shouldCommit: true, result: doneRecordResult(WRITTEN_RESULT) };
}

/** Ensures that a write either has happened or never will. */
function* settleOnce(where: RecordStorage, write: RecordWrite): SqlSteps<TransactionResult> {
  const inserted: SqlResult = yield where.statements.noteEffect(noteOf(write, 'void', ''));
  if (inserted.changes !== 1) return yield* recallEffect(where, write);
  return { shouldCommit: true, result: interrupted };
}

const interrupted = failedRecordResult('INTERRUPTED', 'it was settled that this write does not happen');

const noteOf = ({ idempotency_key, request_hash }: RecordWrite, state: 'done' | 'void', result: string) => ({
  idempotency_key,
  request_hash,
  state,
  result,
});

function* recallEffect({ statements }: RecordStorage, write: RecordWrite): SqlSteps<TransactionResult> {
  const found: SqlResult = yield statements.effect(write.idempotency_key);
  return { shouldCommit: false, result: resultOfNote(found.rows[0], write.request_hash) };
}

function resultOfNote(note: SqlResult['rows'][number] | undefined, request_hash: string): EffectResult {
  if (note === undefined) return UNKNOWN_RECORD_RESULT;
  if (note['request_hash'] !== request_hash)
    return failedRecordResult('INTERNAL', 'the key stands for another request');
  if (note['state'] === 'void') return interrupted;
  return note['state'] === 'done' ? parseResult(note['result']) : UNKNOWN_RECORD_RESULT;
}

function parseResult(text: unknown): EffectResult {
  const result = typeof text === 'string' ? readJson(text) : null;
  return isJsonObject(result) ? doneRecordResult(result) : UNKNOWN_RECORD_RESULT;
}
