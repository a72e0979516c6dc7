// Problem documents for refused requests (RFC 9457). Codes and texts are constants: a response never contains text from
// a request or an exception.

import { STATUS_CODES, type ServerResponse } from 'node:http';
import { LedgerError, RunError, UsageError } from '../../core/errors.js';

export const PROBLEMS = {
  HEADER_TWICE: [400, 'A header is there twice'],
  HOST_NOT_SERVED: [403, 'This host is not served'],
  ORIGIN_NOT_ALLOWED: [403, 'This origin is not allowed'],
  UNAUTHENTICATED: [401, 'A bearer token is needed'],
  IDENTITY_UNAVAILABLE: [503, 'Who sends this cannot be verified now: wait as long as Retry-After says'],
  CSRF_REFUSED: [403, 'With a session of the page, a change needs the header that the page sends'],
  RIGHT_MISSING: [403, 'This token has no right to do this'],
  NOT_FOUND: [404, 'There is nothing here'],
  METHOD_NOT_SERVED: [405, 'This method is not served'],
  BODY_TOO_LARGE: [413, 'The body is larger than what is taken here'],
  UNSUPPORTED_TYPE: [415, 'The body must be application/json, and not encoded'],
  INVALID_JSON: [400, 'The body is not strict JSON'],
  INVALID_REQUEST: [422, 'The request does not have the form that /api/v1/openapi.json describes'],
  INVALID_EVALUATION: [400, 'The request is no evaluation of AuthZEN 1.0, or is larger than the limits allow'],
  IDEMPOTENCY_CONFLICT: [422, 'This idempotency key was used for another body'],
  IDEMPOTENCY_NOT_KEPT: [422, 'Only steps are kept by idempotency keys: see what there is, and ask without one'],
  PRECONDITION_FAILED: [412, 'The run is not as it was'],
  RUN_UNKNOWN: [404, 'There is no such run for you'],
  RUN_ENDED: [409, 'The run has ended, and takes no more proposals'],
  RUN_KEY_CONFLICT: [409, 'The run of this key was started with other options'],
  AGENT_BUSY: [429, 'Too many proposals already wait for this run: wait for a response before the next one'],
  INVALID_STATE_TRANSITION: [409, 'The run cannot do this in its present state'],
  ACT_DENIED: [403, 'Policy denies this act of an operator'],
  APPROVAL_PENDING: [409, 'People have to approve this act of an operator first'],
  CASE_IN_USE: [409, 'A run of the case has not ended'],
  CASE_CHANGED: [409, 'The case has read other data meanwhile'],
  STORAGE_LOW: [503, 'There is not enough free space to record this: try again later'],
  STORAGE_BUDGET: [507, 'What may be stored for this run, case or actor is used up'],
  VOLUME_ELSEWHERE: [421, 'Another process has the sandbox of this case: Turnpike-Worker names one, if it is known'],
  EXECUTION_SUSPENDED: [
    503,
    'The ledger was restored from a backup: nothing is executed until an operator acknowledges it',
  ],
  CLOSED: [503, 'The service is about to end: try again later'],
  PLACE_AHEAD: [409, 'The ledger has not come so far: it is another one than it was, or was put back'],
  LEDGER_OF_LATER_VERSION: [503, 'A later version of the service started this run, and has to take the request'],
  LEDGER_UNSUPPORTED: [503, 'This installation lacks what the run has pinned, and cannot take the request'],
  LEDGER_ARCHIVED: [410, 'This was moved to an archive'],
  LEDGER_ERASED: [410, 'This was erased with its case, or is kept back'],
  STREAMS_TAKEN: [503, 'As many streams as there may be, in all or of this token, are open'],
  TOO_MANY_REQUESTS: [
    429,
    'This connection or token has too many requests outstanding: wait as long as Retry-After says',
  ],
  TOO_MANY_FAILURES: [429, 'Too many requests of this address had no valid token: wait as long as Retry-After says'],
  OVERLOADED: [503, 'The service has as much to do as it can: wait as long as Retry-After says'],
  UNHEALTHY: [503, 'This process cannot do all its work now: `checks` says why'],
  UNAVAILABLE: [503, 'The service could not do this: its log says why'],
} as const satisfies Readonly<Record<string, readonly [status: number, detail: string]>>;

export type ProblemCode = keyof typeof PROBLEMS;

/** Why a request is refused. */
export interface Refusal {
  readonly code: ProblemCode;
  readonly status: number;
  readonly reason: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The failed checks of readiness, with their constant reasons. */
  readonly checks?: readonly { readonly name: string; readonly reason: string | null }[];
}

export function createRefusal(
  code: ProblemCode,
  headers: Readonly<Record<string, string>> = {},
  checks?: Refusal['checks'],
): Refusal {
  const [status, reason] = PROBLEMS[code];
  return { code, status, reason, headers, ...(checks === undefined ? {} : { checks }) };
}

export const PROBLEM_TYPE = 'application/problem+json';

/** The JSON text of the problem document. */
export function problemText({ code, status, reason, checks }: Refusal): string {
  const title = STATUS_CODES[status] ?? '';
  return JSON.stringify({ type: `urn:turnpike:problem:${code}`, title, status, detail: reason, code, checks });
}

/** Sends a problem document and closes the connection, because the client may still be sending its body. */
export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  const text = problemText(refusal);
  response.writeHead(refusal.status, {
    ...refusal.headers,
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  });
  response.end(text);
}

/** Thrown by a route that refuses a request. It is not a failure; its message is a constant. */
export class RefusalError extends Error {
  readonly refusal: Refusal;
  constructor(...refusalArguments: Parameters<typeof createRefusal>) {
    super(refusalArguments[0]);
    this.refusal = createRefusal(...refusalArguments);
  }
}

/** The refusal to send for an error, and whether the error is unforeseen, so that the service must log it. */
export function toRefusal(error: unknown): { readonly refusal: Refusal; readonly unforeseen: boolean } {
  if (error instanceof RefusalError) return { refusal: error.refusal, unforeseen: false };
  if (error instanceof UsageError) return { refusal: createRefusal('INVALID_REQUEST'), unforeseen: false };
  if (error instanceof RunError && Object.hasOwn(PROBLEMS, error.code)) {
    const { code } = error;
    return { refusal: createRefusal(code, RETRY_HEADERS[code] ?? {}), unforeseen: false };
  }
  if (error instanceof LedgerError && Object.hasOwn(PROBLEMS, error.code)) {
    return { refusal: createRefusal(error.code as ProblemCode), unforeseen: false };
  }
  return { refusal: createRefusal('UNAVAILABLE'), unforeseen: true };
}

/** In seconds: when the client may retry. */
const RETRY_HEADERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  AGENT_BUSY: { 'Retry-After': '1' },
  STORAGE_LOW: { 'Retry-After': '60' },
};
