import { CodedError } from '../../src/errors.js';

/** The code of an error of ours; null for every other, which nobody may get to see. */
export const codeOf = (error: unknown): string | null =>
  error instanceof CodedError ? (error as CodedError).code : null;
