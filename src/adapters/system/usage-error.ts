import { UsageError } from '../../errors.js';

/** The error of an argument, option or file that the caller can correct. */
export const usageError = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
