// Why an engine failed, and whether that can pass.

import { CodedError, InvariantError, LedgerError } from '../errors.js';

/** The disk is full or broken, or a connection is lost. What was in doubt, a restart reads from the ledger. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'LEDGER_UNAVAILABLE',
  'LEDGER_COMMIT_UNKNOWN',
  'RECORDS_UNREACHABLE',
]);

/**
 * Why a restart cannot help: another writer has the ledger, it was changed, or the code has a bug.
 * @returns null where the reason can pass: what failed, and every cause of it, is an error of the disk or a connection
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

/** Erased too: the ledger may be an older copy, from when the tree lived, beside the keys of now. */
const UNFOLDABLE_CODES: ReadonlySet<string> = new Set(['LEDGER_TAMPERED', 'LEDGER_ERASED', 'LEDGER_ARCHIVED']);

/** Whether a tree can never be folded, so that it must not keep others from being used. */
export const isUnfoldable = (error: unknown): boolean =>
  error instanceof LedgerError && UNFOLDABLE_CODES.has(error.code);

const isCoded = (error: unknown): error is CodedError => error instanceof CodedError;
