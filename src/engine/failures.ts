// Why an engine failed, and whether the cause is transient.

import { CodedError, InvariantError, LedgerError } from '../core/errors.js';

/** The disk is full or broken, or a connection is lost. A restart reads from the ledger what was in doubt. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'LEDGER_UNAVAILABLE',
  'LEDGER_COMMIT_UNKNOWN',
  'RECORDS_UNREACHABLE',
]);

/**
 * The reason why a restart cannot help: another writer has the ledger, the ledger was changed, or the code has a bug.
 * @returns null if the failure is transient: it and all its causes are disk or connection errors
 */
export function findPermanentFailure(failure: unknown): CodedError | null {
  if (!isCoded(failure)) {
    return new InvariantError('the ledger failed for a reason that a restart does not remove', failure);
  }
  for (let reason: unknown = failure; reason instanceof Error; reason = reason.cause) {
    if (isCoded(reason) && !TRANSIENT_CODES.has(reason.code)) return reason;
  }
  return null;
}

/** Includes erased: the ledger may be an older copy in which the tree still lives, next to the current keys. */
const UNFOLDABLE_CODES: ReadonlySet<string> = new Set([
  'LEDGER_TAMPERED',
  'LEDGER_OF_LATER_VERSION',
  'LEDGER_UNSUPPORTED',
  'LEDGER_ERASED',
  'LEDGER_ARCHIVED',
]);

/** Whether a tree can never be folded. Such a tree must not block the others. */
export const isUnfoldable = (error: unknown): boolean =>
  error instanceof LedgerError && UNFOLDABLE_CODES.has(error.code);

const isCoded = (error: unknown): error is CodedError => error instanceof CodedError;
