// Creates and opens ledger files. These are two operations, so that a wrong path never becomes a new, empty ledger.
// Nothing is written to a file before it is known to be a Turnpike ledger.

import { accessSync, closeSync, constants, existsSync, linkSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type LedgerError, oldFormatError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import { refuseSpecialFile } from '../../system/files/open-file.js';
import { OWN_PREFIX } from '../../engine/ports/effects/records.js';
import { newestFormat, pendingMigrations, requireNewestFormat } from '../ledger/migrations.js';
import { APPLICATION_ID, MIGRATIONS, OLD_APPLICATION_ID, PAGE_BYTES, type SqliteMigration } from './sqlite-schema.js';
import { tamperedError, unavailableError } from '../ledger/store-errors.js';
import { fsyncDirectorySync } from '../../system/files/fsync-directory.js';
import { connectSqlite, type SqliteConnection, asLedgerError, truncateWal } from './sqlite-binding.js';
import { lockWriter } from './writer-lock.js';

/** How long a statement waits for another process, in ms. Only a foreign program can hold the lock. */
export const BUSY_MS = 2_000;
/** 8 MB between two checkpoints. */
const WAL_PAGES = 1_000;
/** A WAL that grew because of a long read transaction is truncated to this size. */
const WAL_BYTES_KEPT = 64 * 1_024 * 1_024;

/** The shared memory of the WAL starts with 32 KiB. */
const PROBE_BYTES = 128 * 1_024;

/**
 * Opens an existing ledger file. Opened for writing, older tables are migrated first.
 * @throws LedgerError LEDGER_UNAVAILABLE if the file does not exist
 * @throws LedgerError LEDGER_UNSUPPORTED if another version wrote it in a format that this one does not read
 * @throws LedgerError LEDGER_TAMPERED if the file is not a ledger, or its tables or triggers were changed
 * @throws LedgerError LEDGER_LOCKED if it has to be migrated while another process writes
 */
export function openDatabase(file: string, readOnly: boolean, migrations = MIGRATIONS): SqliteConnection {
  if (!existsSync(file)) throw missingLedgerError(file);
  if (!readOnly) refuseUnwritable(file);
  // Opens it for reading first: a foreign file is not touched, not even to recover it after its last writer.
  const reader = connect(file, true, (db) => {
    checkIdentity(db, file);
    if (readOnly) requireFormat(db, migrations);
  });
  if (readOnly) return reader;
  const isOlder = pendingOf(reader, migrations).length > 0;
  reader.close();
  if (isOlder) migrateFile(file, migrations);
  return connect(file, false, (db) => checkSchema(db, file, migrations));
}

const pendingOf = (db: SqliteConnection, migrations: readonly SqliteMigration[]): readonly SqliteMigration[] =>
  pendingMigrations(migrations, formatOf(db));

/** The writer lock keeps out a process of an older version, which would go on writing rows of its format. */
function migrateFile(file: string, migrations: readonly SqliteMigration[]): void {
  const lock = lockWriter(file);
  try {
    connect(file, false, (db) => {
      checkSchema(db, file, migrations);
      db.transaction(() => migrate(db, migrations)).immediate();
    }).close();
  } finally {
    lock.release();
  }
}

/** Brings the tables to the newest format, within the open transaction. */
function migrate(db: SqliteConnection, migrations: readonly SqliteMigration[]): void {
  for (const { to, apply } of pendingOf(db, migrations)) {
    apply(db);
    db.pragma(`user_version = ${to}`);
  }
}

/** Also for a writer that begins: a later version may have migrated the file since. @throws LedgerError */
export const requireFormat = (db: SqliteConnection, migrations: readonly SqliteMigration[]): void =>
  requireNewestFormat(newestFormat(migrations), formatOf(db));

/** SQLite would only report that it cannot open the file. */
function refuseUnwritable(file: string): void {
  try {
    accessSync(file, constants.W_OK);
  } catch (cause) {
    const why = errorCode(cause) === 'EROFS' ? 'is on a read-only file system' : 'cannot be written by this user';
    throw unavailableError(`${file} ${why}: only commands that read work with it`, cause);
  }
}

export const missingLedgerError = (file: string): LedgerError =>
  unavailableError(`there is no ledger at ${file}: name the right path, or make it first`);

export const cannotOpen = (file: string): string =>
  `the ledger ${file} cannot be opened: verify it, or restore it from a backup`;

function connect(file: string, readonly: boolean, check: (db: SqliteConnection) => void): SqliteConnection {
  let db: SqliteConnection | null = null;
  try {
    refuseSpecialFile(file);
    db = connectSqlite(file, { readonly, fileMustExist: true, timeout: BUSY_MS });
    configureConnection(db, readonly);
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
export function createDatabase(file: string, migrations = MIGRATIONS): void {
  const draft = `${file}.new-${process.pid}`;
  try {
    rmSync(draft, { force: true });
    // Created here with its mode: SQLite gives its WAL and shared-memory files the same mode.
    closeSync(openSync(draft, 'wx', 0o600));
    const db = connectSqlite(draft);
    try {
      db.pragma(`page_size = ${PAGE_BYTES}`);
      db.pragma('synchronous = FULL');
      db.transaction(() => migrate(db, migrations))();
      db.pragma('journal_mode = WAL');
    } finally {
      db.close();
    }
    // A link and not a rename: it fails if the target exists.
    linkSync(draft, file);
    fsyncDirectorySync(dirname(file));
  } catch (cause) {
    const advice = errorCode(cause) === 'EEXIST' ? 'open the one that is there' : 'its folder must be there and ours';
    throw unavailableError(`the ledger ${file} cannot be made: ${advice}`, cause);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Creates an empty ledger in memory. It ends with its connection. */
export function createMemoryDatabase(): SqliteConnection {
  const db = connectSqlite(':memory:');
  db.transaction(() => migrate(db, MIGRATIONS))();
  configureWrites(db);
  return db;
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
    throw unavailableError(`the disk of the ledger ${file} takes no data: see how full it is`, cause);
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
export function requireTruncatedWal(db: SqliteConnection): void {
  let isTruncated: boolean;
  try {
    isTruncated = truncateWal(db);
  } catch (cause) {
    throw asLedgerError(cause, 'the log of the ledger could not be moved into its database');
  }
  if (isTruncated) return;
  throw unavailableError(
    'the WAL of the ledger cannot be truncated while a reader holds a transaction: close the reader, and try again',
  );
}

export function checkIdentity(db: SqliteConnection, file: string): void {
  const application = db.pragma('application_id', { simple: true });
  if (application === OLD_APPLICATION_ID) throw oldFormatError(`the ledger ${file}`);
  if (application === APPLICATION_ID && formatOf(db) > 0) return;
  throw tamperedError(`${file} is not a Turnpike ledger: point to the right file, or restore this one from a backup`);
}

export function configureConnection(db: SqliteConnection, readOnly: boolean): void {
  // better-sqlite3 sets SQLITE_DBCONFIG_DEFENSIVE already.
  db.pragma('trusted_schema = OFF');
  if (readOnly) {
    db.pragma('query_only = ON');
    return;
  }
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw unavailableError('the file system of the ledger has no shared memory: keep it on a local disk');
  }
  // Must follow journal_mode: better-sqlite3 defaults to NORMAL in WAL mode, which loses commits on power loss.
  db.pragma('synchronous = FULL');
  db.pragma('fullfsync = ON');
  db.pragma(`wal_autocheckpoint = ${WAL_PAGES}`);
  db.pragma(`journal_size_limit = ${WAL_BYTES_KEPT}`);
  db.pragma('temp_store = MEMORY');
  configureWrites(db);
}

/** Settings of every connection that writes to a ledger. */
function configureWrites(db: SqliteConnection): void {
  db.pragma('recursive_triggers = ON');
  // Overwrites deleted rows, for example the snapshots of trees whose case was erased.
  db.pragma('secure_delete = ON');
}

export const formatOf = (db: SqliteConnection): number => Number(db.pragma('user_version', { simple: true }));

function checkSchema(db: SqliteConnection, file: string, migrations: readonly SqliteMigration[]): void {
  // One transaction for both reads: another process may be migrating the file at this moment.
  const found = db.transaction(() => ({ format: formatOf(db), schema: schemaOf(db) }))();
  const model = connectSqlite(':memory:');
  try {
    pendingMigrations(migrations, found.format);
    migrate(model, migrations.slice(0, found.format));
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
