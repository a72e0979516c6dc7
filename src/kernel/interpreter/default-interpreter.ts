import type { Interpreter } from './interpreter.js';

/** The only place that sets the default. `test/jest/loader.mjs` replaces this file: whole suites run on XState. */
export const DEFAULT_INTERPRETER: Interpreter = 'table-driven';
