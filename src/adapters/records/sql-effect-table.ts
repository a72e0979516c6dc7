// Effects in a database that is not the ledger's: a row and the note that it was written are one transaction, and so
// anybody can tell later whether it was.
//
//   E1. The note comes first. Who writes the same note at the same time waits for us at its primary key, or we for him.
//   E2. A note is never changed. `void` says that the write must not happen any more: a first attempt that comes late
//       finds it, or fails on the primary key.
//   E3. So a note that could be inserted and committed as `void` proves that the write has not happened.

import type { EffectResult } from '../../contract/run/effect.js';
import { isJsonObject } from '../../contract/json.js';
import type { RecordWrite } from '../../ports/effects/records.js';
import type { SqlResult, SqlSteps } from './sql-kysely.js';
import { putRecord, WRITTEN_RESULT, type RecordStorage } from './sql-records.js';
import { doneRecordResult, failedRecordResult, UNKNOWN_RECORD_RESULT } from './sql-errors.js';

/** What to answer if the transaction can be ended so. */
export interface TransactionResult {
  readonly shouldCommit: boolean;
  readonly result: EffectResult;
}

/** How far a write came, also where it fails. */
export interface WriteProgress {
  /** The key is ours: no other attempt is on its way. */
  isNoted: boolean;
}

/** Writes a record and its note, or answers as a former attempt did. @throws what `putRecord` throws */
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

/** Makes sure that a write has happened or never will. */
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
  try {
    const result: unknown = typeof text === 'string' ? JSON.parse(text) : null;
    return isJsonObject(result) ? doneRecordResult(result) : UNKNOWN_RECORD_RESULT;
  } catch {
    return UNKNOWN_RECORD_RESULT;
  }
}
