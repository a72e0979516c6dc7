// Opens a database file for a reader that changes nothing: no byte and no time of a file, no new file next to it, no
// lock of the writer. It also works on a read-only file system.
//
//   U1. While a writer has the lock, its WAL and the index of it exist, and an ordinary read-only connection uses them.
//   U2. Without a writer and without a WAL, the file is complete. It is opened as immutable: SQLite creates neither a
//       WAL nor an index, and takes no lock. The caller asks `isCurrent` after each read: pages that a later writer
//       changed meanwhile could contradict each other.
//   U3. Without a writer but with a WAL, a process ended without closing the file. The WAL has commits that the file
//       does not have; an immutable connection would ignore them, and any other one would write an index. Both are
//       copied to a private folder, in which SQLite recovers the copy.

import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdtempSync,
  rmSync,
  statSync,
  type BigIntStats,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorCode } from '../../system/error-code.js';
import { refuseSpecialFile } from '../../system/files/open-file.js';
import { asLedgerError, connectSqlite, type SqliteConnection } from './sqlite-binding.js';
import { unavailableError } from '../ledger/store-errors.js';
import {
  BUSY_MS,
  cannotOpen,
  checkIdentity,
  configureConnection,
  formatOf,
  missingLedgerError,
  requireFormat,
} from './sqlite-database.js';
import type { LedgerConnection } from './sqlite-medium.js';
import { MIGRATIONS } from './sqlite-schema.js';

/** Limit of a copy: the database with its WAL. */
export const COPY_BYTES_MAX = 4 * 1_024 ** 3;
/** How often a reader begins again while other processes open and close the file. */
const TRIES_MAX = 20;

/** How to open a file without changing it. */
export interface UntouchedOptions {
  /** The path whose `.lock` file a writer locks. Default: the file itself. */
  readonly lockOf?: string;
  /** Limit of a copy in bytes. Default: `COPY_BYTES_MAX`. */
  readonly copyBytesMax?: number;
}

/** `isCurrent` is false once another process has changed the file, so that it must be opened again. */
export type UntouchedFile = LedgerConnection;

/**
 * Opens an existing database file.
 * @param configure runs on the connection before it reads anything of the tables
 * @throws LedgerError LEDGER_UNAVAILABLE for a copy above the limit, or if other processes keep changing the file
 * @throws what SQLite or `configure` throws
 */
export function openUntouched(
  file: string,
  configure: (db: SqliteConnection) => void,
  { lockOf = file, copyBytesMax = COPY_BYTES_MAX }: UntouchedOptions = {},
): UntouchedFile {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    if (isWriterActive(lockOf)) return { db: connect(file, configure), isCurrent: () => true };
    const state = stateOf(file);
    const isCurrent = (): boolean => stateOf(file) === state;
    const db = open(file, configure, copyBytesMax, isCurrent);
    // Without a writer and without a change, the connection or the copy shows one state of the file.
    if (db !== null && isCurrent() && !isWriterActive(lockOf)) return { db, isCurrent };
    db?.close();
  }
  throw unavailableError(`${file} is being opened and closed by other processes: try again`);
}

/** @returns null if the file changed while it was opened, so that an error means nothing */
function open(
  file: string,
  configure: (db: SqliteConnection) => void,
  copyBytesMax: number,
  isCurrent: () => boolean,
): SqliteConnection | null {
  try {
    return hasWal(file) ? openCopy(file, configure, copyBytesMax) : openImmutable(file, configure, copyBytesMax);
  } catch (error) {
    if (isCurrent()) throw error;
    return null;
  }
}

const connect = (path: string, configure: (db: SqliteConnection) => void): SqliteConnection =>
  configured(connectSqlite(path, { readonly: true, fileMustExist: true, timeout: BUSY_MS }), configure);

function configured(db: SqliteConnection, configure: (db: SqliteConnection) => void): SqliteConnection {
  try {
    configure(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Whether a process holds the writer lock. This only looks: a lock, even a shared one, could refuse a writer. */
function isWriterActive(lockOf: string): boolean {
  const lock = `${lockOf}.lock`;
  if (!existsSync(lock)) return false;
  const db = connectSqlite(lock, { readonly: true, fileMustExist: true, timeout: 0 });
  try {
    db.prepare('SELECT 1 FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if (errorCode(error).startsWith('SQLITE_BUSY')) return true;
    throw error;
  } finally {
    db.close();
  }
}

/** Everything by which another process could be noticed: identity, size and time of the database and its WAL. */
const stateOf = (file: string): string => [file, `${file}-wal`].map((path) => factsOf(path)).join(' ');

function factsOf(path: string): string {
  const stat: BigIntStats | undefined = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? '-' : `${stat.ino}:${stat.size}:${stat.mtimeNs}`;
}

const hasWal = (file: string): boolean => (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;

/**
 * Names in this form need the environment variable SQLITE_USE_URI=1 when the process loads SQLite, which
 * `run-cli-command.ts` sets. Without it there is no such file, and the file is copied.
 */
function openImmutable(
  file: string,
  configure: (db: SqliteConnection) => void,
  copyBytesMax: number,
): SqliteConnection {
  let db: SqliteConnection;
  try {
    db = connectSqlite(`${pathToFileURL(file).href}?mode=ro&immutable=1`, { readonly: true, timeout: BUSY_MS });
  } catch (error) {
    if (errorCode(error) !== 'SQLITE_CANTOPEN') throw error;
    return openCopy(file, configure, copyBytesMax);
  }
  return configured(db, configure);
}

/**
 * Opens a copy and removes it at once: the open connection keeps its content, and nothing is left behind, however the
 * process ends.
 */
function openCopy(file: string, configure: (db: SqliteConnection) => void, bytesMax: number): SqliteConnection {
  const parts = ['', '-wal'].filter((end) => existsSync(`${file}${end}`));
  const bytes = parts.reduce((sum, end) => sum + statSync(`${file}${end}`).size, 0);
  if (bytes > bytesMax) {
    throw unavailableError(
      `${file} was not closed, and its ${bytes} bytes are too many to copy for a reader: open the home for writing once`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-read-'));
  try {
    const copy = join(folder, 'copy.db');
    for (const end of parts) {
      copyFileSync(`${file}${end}`, `${copy}${end}`, constants.COPYFILE_FICLONE);
      chmodSync(`${copy}${end}`, 0o600);
    }
    recover(copy);
    const db = connect(copy, configure);
    // The connection opens its file with the first read.
    db.prepare('SELECT 1 FROM sqlite_schema').get();
    return db;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Moves the commits of the WAL into the file, which then needs no WAL. */
function recover(copy: string): void {
  const db = connectSqlite(copy, { fileMustExist: true });
  try {
    db.pragma('trusted_schema = OFF');
    db.pragma('synchronous = OFF');
    db.pragma('journal_mode = DELETE');
  } finally {
    db.close();
  }
}

/**
 * Opens an existing ledger file for reading, and changes nothing.
 * @throws as `openDatabase`
 */
export function openUntouchedDatabase(file: string, migrations = MIGRATIONS): UntouchedFile {
  return openForReading(file, (db) => requireFormat(db, migrations));
}

function openForReading(file: string, check: (db: SqliteConnection) => void): UntouchedFile {
  if (!existsSync(file)) throw missingLedgerError(file);
  try {
    refuseSpecialFile(file);
    return openUntouched(file, (db) => {
      configureConnection(db, true);
      checkIdentity(db, file);
      check(db);
    });
  } catch (cause) {
    throw asLedgerError(cause, cannotOpen(file));
  }
}

/** The format of a ledger file, also of one that is not migrated yet. @throws LedgerError for a foreign file */
export function sqliteFormat(file: string): number {
  const { db } = openForReading(file, () => undefined);
  try {
    return formatOf(db);
  } finally {
    db.close();
  }
}
