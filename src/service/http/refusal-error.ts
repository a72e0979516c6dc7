import { LedgerError, RunError, UsageError } from '../../errors.js';
import { PROBLEMS, createRefusal, type ProblemCode, type Refusal } from '../problems.js';

/** Thrown by a route that refuses a request. It is not a failure; its message is a constant. */
export class RefusalError extends Error {
  readonly refusal: Refusal;
  constructor(...refusalArguments: Parameters<typeof createRefusal>) {
    super(refusalArguments[0]);
    this.refusal = createRefusal(...refusalArguments);
  }
}

/** What the client is told about an error, and whether the service logs it. */
export function toRefusal(error: unknown): { readonly refusal: Refusal; readonly unforeseen: boolean } {
  if (error instanceof RefusalError) return { refusal: error.refusal, unforeseen: false };
  if (error instanceof UsageError) return { refusal: createRefusal('INVALID_REQUEST'), unforeseen: false };
  if (error instanceof RunError) {
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
