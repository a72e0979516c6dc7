// The migrations of a store's tables, for SQLite and for PostgreSQL.
//
//   V1. A store has one format, a number from 1. Code reads and writes only the newest format that it knows.
//   V2. The first opening for writing brings older tables to that format, in one transaction: all of it or nothing. An
//       opening for reading changes nothing, so it refuses them.
//   V3. Tables of a later format are refused, because this code does not know what they mean.
//   V4. A released migration never changes. The first one, from format 0, creates the tables.

import { InvariantError, laterFormatError, LedgerError } from '../../core/errors.js';

/** Leads from one format to the next. `Result` is a promise if the database answers asynchronously. */
export interface Migration<Database, Result> {
  readonly from: number;
  readonly to: number;
  /** Runs within the open transaction. The caller records the format. */
  readonly apply: (database: Database) => Result;
}

/** The format that the migrations lead to. */
export const newestFormat = (migrations: readonly Pick<Migration<never, unknown>, 'to'>[]): number =>
  migrations.at(-1)?.to ?? 0;

/**
 * The migrations of tables that have this format, in their order; `format` 0 is an empty database.
 * @throws LedgerError LEDGER_UNSUPPORTED for a later format
 * @throws InvariantError if the migrations do not follow each other
 */
export function pendingMigrations<Database, Result>(
  migrations: readonly Migration<Database, Result>[],
  format: number,
): readonly Migration<Database, Result>[] {
  if (migrations.some(({ from, to }, at) => from !== at || to !== at + 1))
    throw new InvariantError('each migration leads from the format of the one before it to the next');
  if (format > migrations.length) throw laterFormatError('the ledger', format, migrations.length);
  return migrations.slice(format);
}

/**
 * For a store that only reads, and for a writer that takes its lock again. A restart does not migrate, so the code is
 * not that of a failure that passes.
 * @throws LedgerError LEDGER_UNSUPPORTED unless the tables have the newest format
 */
export function requireNewestFormat(newest: number, format: number): void {
  if (format > newest) throw laterFormatError('the ledger', format, newest);
  if (format === newest) return;
  throw new LedgerError({
    code: 'LEDGER_UNSUPPORTED',
    message:
      `the ledger has format ${format}, and this version of Turnpike reads ${newest}: open it for writing once, which ` +
      'migrates it',
  });
}
