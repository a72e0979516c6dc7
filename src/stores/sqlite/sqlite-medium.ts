// Where an SQLite ledger is stored, and the objects that work on a connection to it.

import { SqliteArchives, sweepContents, vacuum } from './content/sqlite-archives.js';
import { SqliteArtifacts, originOf, type ContentStorage } from './content/sqlite-artifacts.js';
import { type SqliteConnection, asLedgerError } from './sqlite-binding.js';
import { checkWritable, openDatabase, requireTruncatedWal } from './sqlite-database.js';
import { SqliteTail, SqliteMarkIndex } from './sqlite-index.js';
import { SqliteReader, SqliteTrees } from './sqlite-reader.js';
import type { SqliteMigration } from './sqlite-schema.js';
import { SqliteRunRecords } from './sqlite-run-records.js';
import { lockWriter, type WriterLock } from './writer-lock.js';

/** A connection to a ledger. `isCurrent` is false once another process has changed what it reads. */
export interface LedgerConnection {
  readonly db: SqliteConnection;
  readonly isCurrent: () => boolean;
}

/** Opens a ledger file for reading, and changes nothing: `openUntouchedDatabase`. */
export type OpenUntouched = (file: string, migrations?: readonly SqliteMigration[]) => LedgerConnection;

/** `untouched`: for reading, and without changing any file. */
export type LedgerAccess = 'write' | 'read' | 'untouched';

/** Where a ledger is stored: in files, or in the memory of this process. */
export interface LedgerMedium {
  /** For messages. */
  readonly name: string;
  readonly access: LedgerAccess;
  /** Null if the database has all contents, not encrypted. */
  readonly storage: ContentStorage | null;
  /** @throws LedgerError like `openDatabase` */
  connect(): LedgerConnection;
  /** Replaces a connection by one that shows the ledger as a new process would see it. @throws like `connect` */
  reconnect(db: SqliteConnection): LedgerConnection;
  /** Becomes the only writer. @throws LedgerError LEDGER_LOCKED while another process writes */
  lock(): WriterLock;
  /** @throws LedgerError LEDGER_UNAVAILABLE if the disk accepts no data */
  checkWritable(): void;
  /** Removes what archived contents and rows have left. */
  tidy(db: SqliteConnection): void;
}

/** See `SqliteStoreOptions`. */
export interface LedgerFileOptions {
  readonly readOnly?: boolean;
  readonly untouched?: OpenUntouched;
  readonly migrations?: readonly SqliteMigration[];
}

/** A ledger file, and the directory of its large contents. */
export function ledgerFile(
  file: string,
  storage: ContentStorage,
  { readOnly = false, untouched, migrations }: LedgerFileOptions,
): LedgerMedium {
  const connect = (): LedgerConnection =>
    untouched?.(file, migrations) ?? { db: openDatabase(file, readOnly, migrations), isCurrent: () => true };
  return {
    name: `the ledger ${file}`,
    access: untouched !== undefined ? 'untouched' : readOnly ? 'read' : 'write',
    storage,
    connect,
    reconnect: (db) => {
      db.close();
      const opened = connect();
      requireTruncatedWal(opened.db);
      return opened;
    },
    lock: () => lockWriter(file),
    checkWritable: () => checkWritable(file),
    tidy: (db) => {
      sweepContents(db, storage.directory);
      vacuum(file);
    },
  };
}

/** A connection to a ledger, and the objects that use it. */
export interface SqliteComponents extends LedgerConnection {
  readonly artifacts: SqliteArtifacts;
  readonly tail: SqliteTail;
  readonly markIndex: SqliteMarkIndex;
  readonly archives: SqliteArchives;
  readonly reader: SqliteReader;
  readonly runRecords: SqliteRunRecords;
  readonly trees: SqliteTrees;
}

/** Closes the connection if it throws. @throws LedgerError LEDGER_TAMPERED, LEDGER_CONFLICT for other case keys */
export function componentsOf({ name, access, storage }: LedgerMedium, connection: LedgerConnection): SqliteComponents {
  const { db } = connection;
  try {
    const tail = new SqliteTail(db);
    const markIndex = new SqliteMarkIndex(db, tail);
    const archives = new SqliteArchives(db);
    const reader = new SqliteReader(db, tail, archives);
    const artifacts = new SqliteArtifacts(db, storage);
    // A writer compares the key folder when it begins.
    if (access !== 'write') artifacts.guard?.refuseOther(originOf({ db, reader }));
    const [runRecords, trees] = [new SqliteRunRecords(db), new SqliteTrees(db, reader)];
    return { ...connection, artifacts, tail, markIndex, archives, reader, runRecords, trees };
  } catch (error) {
    db.close();
    throw asLedgerError(error, `${name} cannot be read`);
  }
}
