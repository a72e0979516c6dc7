import { LedgerError, RunError, UsageError } from '../../errors.js';
import { PROBLEMS, refusal, type ProblemCode, type Refusal } from '../problems.js';

/** Thrown by a route that can go no further: a refusal, and no breakdown. What is told of it is a constant. */
export class Refused extends Error {
  readonly refusal: Refusal;
  constructor(...why: Parameters<typeof refusal>) {
    super(why[0]);
    this.refusal = refusal(...why);
  }
}

/** What an error means to whoever has asked, and whether the service's own log has to know of it. */
export function refusalOf(error: unknown): { readonly refusal: Refusal; readonly unforeseen: boolean } {
  if (error instanceof Refused) return { refusal: error.refusal, unforeseen: false };
  if (error instanceof UsageError) return { refusal: refusal('INVALID_REQUEST'), unforeseen: false };
  if (error instanceof RunError) {
    const { code } = error;
    return { refusal: refusal(code, RETRIED[code] ?? {}), unforeseen: false };
  }
  if (error instanceof LedgerError && Object.hasOwn(PROBLEMS, error.code)) {
    return { refusal: refusal(error.code as ProblemCode), unforeseen: false };
  }
  return { refusal: refusal('UNAVAILABLE'), unforeseen: true };
}

/** In seconds: when it is worth another try. */
const RETRIED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  AGENT_BUSY: { 'Retry-After': '1' },
  STORAGE_LOW: { 'Retry-After': '60' },
};
