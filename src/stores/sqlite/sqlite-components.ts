import type { CaseKeys } from '../keys/case-keys.js';
import { SqliteArchives } from './content/sqlite-archives.js';
import { SqliteArtifacts, originOf } from './content/sqlite-artifacts.js';
import type { SqliteConnection } from './sqlite-binding.js';
import { openDatabase, openUntouchedDatabase } from './sqlite-database.js';
import { asLedgerError } from './sqlite-errors.js';
import { SqliteTail, SqliteMarkIndex } from './sqlite-index.js';
import { SqliteReader, SqliteTrees } from './sqlite-reader.js';
import { MIGRATIONS, type SqliteMigration } from './sqlite-schema.js';
import { SqliteRunRecords } from './sqlite-run-records.js';

/** A connection to a ledger, and the objects that use it. */
export interface SqliteComponents {
  readonly db: SqliteConnection;
  readonly artifacts: SqliteArtifacts;
  readonly tail: SqliteTail;
  readonly markIndex: SqliteMarkIndex;
  readonly archives: SqliteArchives;
  readonly reader: SqliteReader;
  readonly runRecords: SqliteRunRecords;
  readonly trees: SqliteTrees;
  /** False once these components must be opened again, because another process has changed the file. */
  readonly isCurrent: () => boolean;
}

/** `untouched`: for reading, and without changing any file. */
export type LedgerAccess = 'write' | 'read' | 'untouched';

/** The directory of contents that are not in the database, and the keys that decrypt contents. */
export interface ContentStorage {
  readonly directory: string;
  readonly keys: CaseKeys;
}

/** @throws LedgerError like `openDatabase` */
export function openComponents(
  file: string,
  { directory, keys }: ContentStorage,
  access: LedgerAccess,
  migrations: readonly SqliteMigration[] = MIGRATIONS,
): SqliteComponents {
  const { db, isCurrent } =
    access === 'untouched'
      ? openUntouchedDatabase(file, migrations)
      : { db: openDatabase(file, access === 'read', migrations), isCurrent: () => true };
  try {
    const tail = new SqliteTail(db);
    const markIndex = new SqliteMarkIndex(db, tail);
    const archives = new SqliteArchives(db);
    const reader = new SqliteReader(db, tail, archives);
    const artifacts = new SqliteArtifacts(db, directory, keys);
    // A writer compares the key folder when it begins.
    if (access !== 'write') artifacts.guard.refuseOther(originOf({ db, reader }));
    return {
      db,
      artifacts,
      tail,
      markIndex,
      archives,
      reader,
      runRecords: new SqliteRunRecords(db),
      trees: new SqliteTrees(db, reader),
      isCurrent,
    };
  } catch (error) {
    db.close();
    throw asLedgerError(error, `the ledger ${file} cannot be read`);
  }
}
