// The ledger in one SQLite file (WAL), large contents in files beside it. Whoever opens it can read it, also while
// another process writes; a writer takes the writer's lock. How it is read and written: sqlite-store.ts. The tables
// and what guards them: sqlite-schema.ts.

import { dirname, join, resolve } from 'node:path';
import type { ErasureSeal, LedgerStore } from '../../ports/ledger/ledger-store.js';
import { CaseKeys } from '../keys/case-keys.js';
import { createDatabase } from './sqlite-database.js';
import { SqliteLedgerStore } from './sqlite-store.js';

/** Where a ledger lies. */
export interface SqliteStoreOptions {
  /** The database. `<file>.lock` beside it is the writer's lock. */
  readonly file: string;
  /** The folder of the contents that are too large for the database. */
  readonly artifactsDir: string;
  /** The folder of the keys that encrypt the content of cases. Default: `keys/cases` beside `artifactsDir`. */
  readonly caseKeysDir?: string;
  /** Only read, whoever writes. @default false */
  readonly readOnly?: boolean;
  /** Who vouches for erasures; null, or none, where nobody does. */
  readonly erasureSeal?: () => ErasureSeal | null;
  /** @internal Index rows that are written together; tests set fewer. @default STRETCH_ROWS */
  readonly stretchRows?: number;
}

/**
 * Makes an empty ledger and opens it.
 * @throws LedgerError LEDGER_UNAVAILABLE if something is there already, or it cannot be made
 */
export function createSqliteStore(options: SqliteStoreOptions): LedgerStore {
  createDatabase(resolve(options.file));
  return openSqliteStore(options);
}

/**
 * Opens a ledger that is there.
 * @throws LedgerError LEDGER_UNAVAILABLE if there is none, or another version of Turnpike wrote it
 * @throws LedgerError LEDGER_TAMPERED if the file is no ledger, or its tables or triggers were changed
 */
export function openSqliteStore(options: SqliteStoreOptions): LedgerStore {
  const { file, artifactsDir, readOnly = false, erasureSeal = () => null, stretchRows } = options;
  // Beside the contents and not among them: a copy of the contents has no keys that open them.
  const { caseKeysDir = join(dirname(resolve(artifactsDir)), 'keys', 'cases') } = options;
  const keys = new CaseKeys(resolve(caseKeysDir), erasureSeal);
  return new SqliteLedgerStore(resolve(file), { directory: resolve(artifactsDir), keys }, readOnly, stretchRows);
}
