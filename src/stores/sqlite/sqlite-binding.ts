// The one place that loads the SQLite binding. Its line 12 is compiled for one version of Node; line 13 uses Node-API,
// is prebuilt in its package, and needs Node 22. npm installs the newest of both that the running Node can load
// (decision 0001). A package manager that does not look at `engines` installs 13 everywhere, and 13 crashes Node 20.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import Database from 'better-sqlite3';
import { LedgerError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import { NotAFile } from '../../system/files/open-file.js';
import { machineFacts } from '../../system/machine-facts.js';

export type SqliteConnection = Database.Database;
export type SqliteStatement = Database.Statement;
export type SqliteBackupProgress = NonNullable<Database.BackupOptions['progress']>;

/** The first version of Node that line 13 can be loaded into. */
const NODE_OF_13 = 22;
/** Versions of Node 24 on which a compiled binding of line 12 aborts the process. */
const ABORTING = { major: 24, from: 19, to: 21 } as const;

let isChecked = false;

/**
 * Opens a connection. Every connection of this program is opened here.
 * @throws LedgerError LEDGER_UNAVAILABLE where the installed binding would crash this process
 * @throws what SQLite throws
 */
export function connectSqlite(file: string, options: Database.Options = {}): SqliteConnection {
  if (!isChecked) {
    refuseCrash();
    isChecked = true;
  }
  return new Database(file, options);
}

function refuseCrash(): void {
  const { node } = machineFacts();
  if (majorOf(node) >= NODE_OF_13) return;
  const problem = bindingProblem(node, bindingVersion());
  if (problem !== null) throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: problem });
}

/** The version of the installed binding. */
export function bindingVersion(): string {
  const file = createRequire(import.meta.url).resolve('better-sqlite3/package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}

/** What is wrong with a version of the binding on a version of Node, and what to do; null if nothing is. */
export function bindingProblem(node: string, binding: string): string | null {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  if (majorOf(binding) >= 13 && major < NODE_OF_13) {
    return (
      `better-sqlite3 ${binding} crashes Node ${node}: use Node ${NODE_OF_13} or later, or install version 12 ` +
      '(`npm install better-sqlite3@12`)'
    );
  }
  if (majorOf(binding) < 13 && major === ABORTING.major && minor >= ABORTING.from && minor <= ABORTING.to) {
    return `better-sqlite3 ${binding} aborts Node ${node} at some time: run \`npm update better-sqlite3\`, which installs 13`;
  }
  return null;
}

const majorOf = (version: string): number => Number(version.split('.')[0]);

/** Moves the WAL into the database file. @returns false while a reader keeps a transaction open */
export function truncateWal(db: SqliteConnection): boolean {
  const [log] = db.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
  return log?.busy === 0;
}

/** Includes SQLITE_ERROR: our statements never change, so if one is wrong, the table was changed. */
const TAMPERED = /^SQLITE_(?:CORRUPT|NOTADB|ERROR)/;

/** Maps an SQLite error to a LedgerError; returns every other error unchanged. */
export function asLedgerError(cause: unknown, message: string): unknown {
  const code = errorCode(cause);
  if (!code.startsWith('SQLITE_') && !(cause instanceof NotAFile)) return cause;
  return new LedgerError({ code: TAMPERED.test(code) ? 'LEDGER_TAMPERED' : 'LEDGER_UNAVAILABLE', message, cause });
}
