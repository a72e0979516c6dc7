// Effects in a database other than the ledger's: a row and the note of its effect are written in one transaction. So it
// can be decided later whether the row was written.
//
//   E1. The note is inserted first. Concurrent attempts of the same effect wait for each other at its primary key.
//   E2. A note never changes. `void` means that the write must not happen any more: a late first attempt finds it, or
//       fails on the primary key.
//   E3. So a committed `void` note proves that the write has not happened.

import { isJsonObject, readJson } from '../../core/contract/json.js';
import type { EffectResult } from '../../core/contract/run/effect.js';
import type { RecordWrite } from '../../engine/ports/effects/records.js';
import type { SqlResult, SqlSteps } from './sql-kysely.js';
import { putRecord, WRITTEN_RESULT, type RecordStorage } from './sql-records.js';
import { doneRecordResult, failedRecordResult, UNKNOWN_RECORD_RESULT } from './sql-errors.js';

/** The result of an effect, and whether its transaction is to be committed. */
export interface TransactionResult {
  readonly shouldCommit: boolean;
  readonly result: EffectResult;
}

/** How far a write got, also if it fails. */
export interface WriteProgress {
  /** Our note is inserted: no other attempt is in flight. */
  isNoted: boolean;
}

/** Writes a record and its note, or returns the result of an earlier attempt. @throws like `putRecord` */
export function* writeOnce(
  where: RecordStorage,
  write: RecordWrite,
  progress: WriteProgress,
): SqlSteps<TransactionResult> {
  const inserted: SqlResult = yield where.statements.noteEffect(noteOf(write, 'done', JSON.stringify(WRITTEN_RESULT)));
  progress.isNoted = true;
  if (inserted.changes !== 1) return yield* recallEffect(where, write);
  yield* putRecord(where, write);
  return { shouldCommit: true, result: doneRecordResult(WRITTEN_RESULT) };
}

/** Ensures that a write either has happened or never will. */
export function* settleOnce(where: RecordStorage, write: RecordWrite): SqlSteps<TransactionResult> {
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
