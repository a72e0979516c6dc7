// Creates and opens ledger files. These are two operations, so that a wrong path never becomes a new, empty ledger.
// Nothing is written to a file before it is known to be a Turnpike ledger.

import { accessSync, closeSync, constants, existsSync, linkSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { LedgerError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import { NotAFile, refuseSpecialFile } from '../../system/files/open-file.js';
import { OWN_PREFIX } from '../records/sql-table.js';
import {
  APPLICATION_ID,
  FORMAT_OLDEST,
  FORMAT_ROTATED,
  FORMAT_VERSION,
  PAGE_BYTES,
  schemaSteps,
} from './sqlite-schema.js';
import { tamperedError } from '../ledger/store-errors.js';
import { fsyncDirectorySync } from '../../system/files/fsync-directory.js';
import { connectSqlite, type SqliteConnection } from './sqlite-binding.js';
import { openUntouched, type UntouchedFile } from './untouched-file.js';

/** How long a statement waits for another process, in ms. Only a foreign program can hold the lock. */
const BUSY_MS = 2_000;
/** 8 MB between two checkpoints. */
const WAL_PAGES = 1_000;
/** A WAL that grew because of a long read transaction is truncated to this size. */
const WAL_BYTES_KEPT = 64 * 1_024 * 1_024;

/** The shared memory of the WAL starts with 32 KiB. */
const PROBE_BYTES = 128 * 1_024;

/** Includes SQLITE_ERROR: our statements never change, so if one is wrong, the table was changed. */
const TAMPERED = /^SQLITE_(?:CORRUPT|NOTADB|ERROR)/;

/**
 * Opens an existing ledger file.
 * @throws LedgerError LEDGER_UNAVAILABLE if the file does not exist, or another version of Turnpike wrote it
 * @throws LedgerError LEDGER_TAMPERED if the file is not a ledger, or its tables or triggers were changed
 */
export function openDatabase(file: string, readOnly: boolean): SqliteConnection {
  if (!existsSync(file)) throw missingLedgerError(file);
  if (!readOnly) refuseUnwritable(file);
  // Opens it for reading first: a foreign file is not touched, not even to recover it after its last writer.
  const reader = connect(file, true, (db) => checkIdentity(db, file));
  if (readOnly) return reader;
  reader.close();
  return connect(file, false, (db) => checkSchema(db, file));
}

/**
 * Opens an existing ledger file for reading, and changes nothing (untouched-file.ts).
 * @throws as `openDatabase`
 */
export function openUntouchedDatabase(file: string): UntouchedFile {
  if (!existsSync(file)) throw missingLedgerError(file);
  try {
    refuseSpecialFile(file);
    return openUntouched(file, (db) => {
      configure(db, true);
      checkIdentity(db, file);
    });
  } catch (cause) {
    throw asLedgerError(cause, cannotOpen(file));
  }
}

/** SQLite would only report that it cannot open the file. */
function refuseUnwritable(file: string): void {
  try {
    accessSync(file, constants.W_OK);
  } catch (cause) {
    const why = errorCode(cause) === 'EROFS' ? 'is on a read-only file system' : 'cannot be written by this user';
    throw ledgerUnavailableError(`${file} ${why}: only commands that read work with it`, cause);
  }
}

const missingLedgerError = (file: string): LedgerError =>
  ledgerUnavailableError(`there is no ledger at ${file}: name the right path, or make it first`);

const cannotOpen = (file: string): string =>
  `the ledger ${file} cannot be opened: verify it, or restore it from a backup`;

/** The format of a ledger file, and the newest one that this version knows. @throws LedgerError for a foreign file */
export function sqliteFormat(file: string): { readonly found: number; readonly newest: number } {
  const { db } = openUntouchedDatabase(file);
  try {
    const found = formatOf(db);
    return { found, newest: Math.max(found, FORMAT_VERSION) };
  } finally {
    db.close();
  }
}

function connect(file: string, readonly: boolean, check: (db: SqliteConnection) => void): SqliteConnection {
  let db: SqliteConnection | null = null;
  try {
    refuseSpecialFile(file);
    db = connectSqlite(file, { readonly, fileMustExist: true, timeout: BUSY_MS });
    configure(db, readonly);
    check(db);
    return db;
  } catch (cause) {
    db?.close();
    throw asLedgerError(cause, cannotOpen(file));
  }
}

/**
 * Creates an empty ledger file atomically.
 * @throws LedgerError LEDGER_UNAVAILABLE if the file exists already or cannot be created
 */
export function createDatabase(file: string): void {
  const draft = `${file}.new-${process.pid}`;
  try {
    rmSync(draft, { force: true });
    // Created here with its mode: SQLite gives its WAL and shared-memory files the same mode.
    closeSync(openSync(draft, 'wx', 0o600));
    const db = connectSqlite(draft);
    try {
      db.pragma(`page_size = ${PAGE_BYTES}`);
      db.pragma('synchronous = FULL');
      db.exec(`BEGIN; ${schemaSteps(0, FORMAT_VERSION)} COMMIT;`);
      db.pragma('journal_mode = WAL');
    } finally {
      db.close();
    }
    // A link and not a rename: it fails if the target exists.
    linkSync(draft, file);
    fsyncDirectorySync(dirname(file));
  } catch (cause) {
    const advice = errorCode(cause) === 'EEXIST' ? 'open the one that is there' : 'its folder must be there and ours';
    throw ledgerUnavailableError(`the ledger ${file} cannot be made: ${advice}`, cause);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Checks that the disk accepts what opening a ledger writes: the shared memory and the beginning of the WAL.
 * @throws LedgerError LEDGER_UNAVAILABLE if it does not; the ledger is untouched
 */
export function checkWritable(file: string): void {
  const probe = `${file}.probe`;
  try {
    writeFileSync(probe, Buffer.alloc(PROBE_BYTES, 1), { mode: 0o600, flush: true });
  } catch (cause) {
    throw ledgerUnavailableError(`the disk of the ledger ${file} takes no data: see how full it is`, cause);
  } finally {
    removeProbe(probe);
  }
}

function removeProbe(probe: string): void {
  try {
    rmSync(probe, { force: true });
  } catch {
    // `writeFileSync` has reported why this path cannot be used.
  }
}

/**
 * Moves the WAL into the database file and flushes it, so that nothing depends on a flush that failed before.
 * @throws LedgerError LEDGER_UNAVAILABLE if that fails, or while a reader keeps a transaction open
 */
export function truncateWal(db: SqliteConnection): void {
  let busy: unknown;
  try {
    [{ busy }] = db.pragma('wal_checkpoint(TRUNCATE)') as [{ readonly busy: number }];
  } catch (cause) {
    throw asLedgerError(cause, 'the log of the ledger could not be moved into its database');
  }
  if (busy !== 0)
    throw ledgerUnavailableError(
      'the WAL of the ledger cannot be truncated while a reader holds a transaction: close the reader, and try again',
    );
}

const ledgerUnavailableError = (message: string, cause?: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message, cause });

function checkIdentity(db: SqliteConnection, file: string): void {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    const message = `${file} is not a Turnpike ledger: point to the right file, or restore this one from a backup`;
    throw tamperedError(message);
  }
  const version = formatOf(db);
  if (version >= FORMAT_OLDEST && version <= FORMAT_ROTATED) return;
  const other = version > FORMAT_ROTATED ? 'a newer' : 'an older';
  throw ledgerUnavailableError(
    `${file} has format ${version}, this version of Turnpike knows ${FORMAT_ROTATED}: open it with ${other} one, ` +
      'or start a new home',
  );
}

function configure(db: SqliteConnection, readOnly: boolean): void {
  // better-sqlite3 sets SQLITE_DBCONFIG_DEFENSIVE already.
  db.pragma('trusted_schema = OFF');
  if (readOnly) {
    db.pragma('query_only = ON');
    return;
  }
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw ledgerUnavailableError('the file system of the ledger has no shared memory: keep it on a local disk');
  }
  // Must follow journal_mode: better-sqlite3 defaults to NORMAL in WAL mode, which loses commits on power loss.
  db.pragma('synchronous = FULL');
  db.pragma('fullfsync = ON');
  db.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
  db.pragma(`journal_size_limit = ${WAL_BYTES_KEPT}`);
  db.pragma('recursive_triggers = ON');
  // Overwrites deleted rows, for example the snapshots of trees whose case was erased.
  db.pragma('secure_delete = ON');
  db.pragma('temp_store = MEMORY');
}

const formatOf = (db: SqliteConnection): number => Number(db.pragma('user_version', { simple: true }));

/**
 * Upgrades the tables to the current format, within the open transaction. Existing rows do not change.
 * @returns the format before the upgrade
 */
export function upgradeSchema(db: SqliteConnection): number {
  const format = formatOf(db);
  db.exec(schemaSteps(format, FORMAT_VERSION));
  return format;
}

export const isRotatedFormat = (db: SqliteConnection): boolean => formatOf(db) === FORMAT_ROTATED;

/** Sets the format that only versions with rotated keys open, within the open transaction. */
export const setRotatedFormat = (db: SqliteConnection): void => void db.pragma(`user_version = ${FORMAT_ROTATED}`);

function checkSchema(db: SqliteConnection, file: string): void {
  // One transaction for both reads: a writer may be upgrading an older ledger at this moment.
  const found = db.transaction(() => ({ format: formatOf(db), schema: schemaOf(db) }))();
  const model = connectSqlite(':memory:');
  try {
    model.exec(schemaSteps(0, found.format));
    if (found.schema === schemaOf(model)) return;
  } finally {
    model.close();
  }
  const message = `the tables or triggers of ${file} were changed: open it read-only and verify it`;
  throw tamperedError(message);
}

/** The schema without the tables of records, created on demand. Those may not have triggers or views either. */
const schemaOf = (db: SqliteConnection): string =>
  JSON.stringify(
    db
      .prepare(
        `SELECT type, name, sql FROM sqlite_schema
         WHERE name NOT LIKE 'sqlite_%' AND NOT (type = 'table' AND name GLOB '${OWN_PREFIX}*') ORDER BY name`,
      )
      .all(),
  );

/** Maps an SQLite error to a LedgerError; returns every other error unchanged. */
export function asLedgerError(cause: unknown, message: string): unknown {
  const code = errorCode(cause);
  if (!code.startsWith('SQLITE_') && !(cause instanceof NotAFile)) return cause;
  return new LedgerError({ code: TAMPERED.test(code) ? 'LEDGER_TAMPERED' : 'LEDGER_UNAVAILABLE', message, cause });
}

/**
 * Runs `work` without these triggers, within the open transaction. The triggers are then restored with their exact
 * text, because opening a ledger compares it.
 */
export function withoutTriggers(db: SqliteConnection, triggers: readonly string[], work: () => void): void {
  const text = db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?").pluck();
  const guards = triggers.map((name) => text.get(name) as string);
  for (const name of triggers) db.exec(`DROP TRIGGER ${name}`);
  work();
  for (const guard of guards) db.exec(guard);
}
