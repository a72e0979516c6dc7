import { CodedError } from '../../src/core/errors.js';

/** The code of one of our errors; null for any other error, which must never reach a caller. */
export const codeOf = (error: unknown): string | null =>
  error instanceof CodedError ? (error as CodedError).code : null;
