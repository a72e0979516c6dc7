// Effects in a database that is not the ledger's: a row and the note that it was written are one transaction, and so
// anybody can tell later whether it was.
//
//   E1. The note comes first. Who writes the same note at the same time waits for us at its primary key, or we for him.
//   E2. A note is never changed. `void` says that the write must not happen any more: a first attempt that comes late
//       finds it, or fails on the primary key.
//   E3. So a note that could be inserted and committed as `void` proves that the write has not happened.

import type { EffectResult } from '../contract/effect.js';
import { isJsonObject } from '../contract/json.js';
import type { RecordWrite } from '../ports/records.js';
import type { SqlAnswer, SqlSteps } from './sql-kysely.js';
import { putRecord, WRITTEN, type RecordPlace } from './sql-records.js';
import { done, failed, UNKNOWN } from './sql-refusal.js';

/** What to answer if the transaction can be ended so. */
export interface Verdict {
  readonly keep: boolean;
  readonly result: EffectResult;
}

/** How far a write came, also where it fails. */
export interface Progress {
  /** The key is ours: no other attempt is on its way. */
  noted: boolean;
}

/** Writes a record and its note, or answers as a former attempt did. @throws what `putRecord` throws */
export function* writeOnce(where: RecordPlace, write: RecordWrite, progress: Progress): SqlSteps<Verdict> {
  const noted: SqlAnswer = yield where.statements.noteEffect(noteOf(write, 'done', JSON.stringify(WRITTEN)));
  progress.noted = true;
  if (noted.changes !== 1) return yield* recall(where, write);
  yield* putRecord(where, write);
  return { keep: true, result: done(WRITTEN) };
}

/** Makes sure that a write has happened or never will. */
export function* settleOnce(where: RecordPlace, write: RecordWrite): SqlSteps<Verdict> {
  const noted: SqlAnswer = yield where.statements.noteEffect(noteOf(write, 'void', ''));
  if (noted.changes !== 1) return yield* recall(where, write);
  return { keep: true, result: interrupted };
}

const interrupted = failed('INTERRUPTED', 'it was settled that this write does not happen');

const noteOf = ({ idempotency_key, request_hash }: RecordWrite, state: 'done' | 'void', result: string) => ({
  idempotency_key,
  request_hash,
  state,
  result,
});

function* recall({ statements }: RecordPlace, write: RecordWrite): SqlSteps<Verdict> {
  const found: SqlAnswer = yield statements.effect(write.idempotency_key);
  return { keep: false, result: recalled(found.rows[0], write.request_hash) };
}

function recalled(note: SqlAnswer['rows'][number] | undefined, request_hash: string): EffectResult {
  if (note === undefined) return UNKNOWN;
  if (note['request_hash'] !== request_hash) return failed('INTERNAL', 'the key stands for another request');
  if (note['state'] === 'void') return interrupted;
  return note['state'] === 'done' ? resultIn(note['result']) : UNKNOWN;
}

function resultIn(text: unknown): EffectResult {
  try {
    const result: unknown = typeof text === 'string' ? JSON.parse(text) : null;
    return isJsonObject(result) ? done(result) : UNKNOWN;
  } catch {
    return UNKNOWN;
  }
}
