import type { Interpreter } from './interpreter.js';

/** The only place that sets the default: `test/jest/loader.mjs` replaces this file to run whole suites on XState's actors. */
export const DEFAULT_INTERPRETER: Interpreter = 'table-driven';
