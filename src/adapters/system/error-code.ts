/**
 * The `code` that errors of Node and of SQLite carry, e.g. `ENOENT`; empty for anything else.
 * By shape and not by class: such an error may come from another realm than ours (a worker's, or a test's).
 */
export const errorCode = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : '';
