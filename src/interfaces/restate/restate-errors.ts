// Which failures Restate repeats. Only codes travel: the message of an error may contain what Restate must not have.

import { RetryableError, TerminalError } from '@restatedev/restate-sdk';
import { CodedError, RestateServiceError } from '../../core/errors.js';

/** Failures that no retry can change, with the HTTP status that the ingress returns. Everything else is retried. */
const TERMINAL: Readonly<Record<string, number>> = {
  MESSAGE_INVALID: 400,
  USAGE: 400,
  RIGHT_MISSING: 403,
  KEY_MISMATCH: 404,
  RUN_UNKNOWN: 404,
  RUN_ENDED: 409,
  RUN_KEY_CONFLICT: 409,
  INVALID_STATE_TRANSITION: 409,
  IDEMPOTENCY_CONFLICT: 409,
  LEDGER_ARCHIVED: 410,
  LEDGER_ERASED: 410,
  PAYLOAD_UNKNOWN: 422,
  LEDGER_TAMPERED: 500,
  LEDGER_BELOW_HEAD: 500,
  STORAGE_BUDGET: 507,
};

/** The error for Restate: a TerminalError whose message is the code, or an error that Restate retries. */
export function toRestateError(error: unknown): TerminalError | RetryableError {
  if (error instanceof TerminalError) return error;
  const code = error instanceof CodedError ? String(error.code) : 'UNAVAILABLE';
  const status = TERMINAL[code];
  return status === undefined
    ? new RetryableError(code, { errorCode: 503 })
    : new TerminalError(code, { errorCode: status, metadata: { code } });
}

/** An error of the service whose message is its code. */
export const refusal = (code: RestateServiceError['code']): RestateServiceError =>
  new RestateServiceError({ code, message: code });
