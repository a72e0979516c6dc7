/**
 * The `code` of an error of Node or SQLite, for example `ENOENT`; empty for anything else.
 * Checks the shape and not the class: the error may come from another realm (a worker or a test).
 */
export const errorCode = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : '';
