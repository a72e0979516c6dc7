// Maps errors of a database to the causes of the contract.

import type { EffectResult } from '../../core/contract/run/effect.js';
import type { ExecutionCause } from '../../core/contract/fault.js';
import { RecordsError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';

const DETAIL_CHARS_MAX = 400;

/** Refuses a record, or a stored row, that is not valid for its target. Ends the steps of one record. */
export class RecordRefusedError extends Error {
  readonly executionCause: ExecutionCause;
  constructor(message: string, executionCause: ExecutionCause = 'INTERNAL') {
    super(message);
    this.name = 'Refused';
    this.executionCause = executionCause;
  }
}

export const doneRecordResult = (result: (EffectResult & { readonly status: 'done' })['result']): EffectResult => ({
  status: 'done',
  result,
});

export const failedRecordResult = (cause: ExecutionCause, detail: string): EffectResult => ({
  status: 'failed',
  cause,
  detail,
});

export const UNKNOWN_RECORD_RESULT: EffectResult = { status: 'unknown' };

/** The first match counts. Codes of SQLite, SQLSTATEs of PostgreSQL. */
const CAUSES: readonly (readonly [RegExp, ExecutionCause])[] = [
  [/^SQLITE_CONSTRAINT_(?:PRIMARYKEY|UNIQUE|ROWID)$|^23505$/, 'ALREADY_EXISTS'],
  [/^SQLITE_FULL$|^53100$/, 'NO_SPACE'],
  [/^SQLITE_(?:READONLY|PERM|AUTH)|^42501$|^25006$|^28/, 'PERMISSION_DENIED'],
  [/^57014$|^55P03$/, 'TIMEOUT'],
  // The row is too long, has a wrong type, violates a constraint, or a trigger rejects it.
  [/^SQLITE_(?:CONSTRAINT|MISMATCH|TOOBIG)|^(?:21|22|23|44|54|P0)...$/, 'INVALID_RECORD'],
  [/^SQLITE_(?:ERROR|RANGE)|^(?:0A|42)...$/, 'INTERNAL'],
  [/^SQLITE_|^[0-9A-Z]{5}$|^E[A-Z]+$|^RECORDS_UNREACHABLE$/, 'IO_ERROR'],
];

/** Codes after which SQLite continues as if the statement had not run. After any other the state is unknown. */
const HARMLESS = /^SQLITE_(?:CONSTRAINT|MISMATCH|TOOBIG|ERROR|RANGE)/;

/** The failure for the error of a statement that certainly changed nothing. */
export function recordFailureOf(error: unknown): EffectResult {
  if (error instanceof RecordRefusedError) return failedRecordResult(error.executionCause, error.message);
  const code = errorCode(error);
  // Without a code: the connection failed or was lost.
  const cause = code === '' ? 'IO_ERROR' : CAUSES.find(([codes]) => codes.test(code))?.[1];
  return failedRecordResult(cause ?? 'INTERNAL', detailOf(error));
}

/** Like `recordFailureOf`, for a read, which has no record to refuse. */
export function readFailureOf(error: unknown): EffectResult {
  const result = recordFailureOf(error);
  return result.status === 'failed' && result.cause === 'INVALID_RECORD' ? { ...result, cause: 'INTERNAL' } : result;
}

/** Whether SQLite refused only this row, so that others can be written in the same transaction. */
export const isRowError = (error: unknown): boolean =>
  error instanceof RecordRefusedError || error instanceof RecordsError || HARMLESS.test(errorCode(error));

/** Whether a row with the same unique values exists already. */
export const isDuplicateRow = (error: unknown): boolean => CAUSES[0]?.[0].test(errorCode(error)) === true;

export const isTimeout = (error: unknown): boolean => {
  const result = recordFailureOf(error);
  return result.status === 'failed' && result.cause === 'TIMEOUT';
};

export const detailOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, DETAIL_CHARS_MAX);
