import { TABLE_DRIVEN, type Interpretation } from './interpreter.js';

/** The only place that sets the default. For suites on XState's actors, `test/jest/loader.mjs` replaces this file. */
export const DEFAULT_INTERPRETATION: Interpretation = TABLE_DRIVEN;
