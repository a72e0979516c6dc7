// A SQLite ledger in its own folder, and what another program can do to its file.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { diskFolder } from '../../fixtures/temp-folder.js';

export interface LedgerFolder {
  readonly folder: string;
  readonly file: string;
  readonly artifactsDir: string;
  readonly remove: () => void;
}

export function ledgerFolder(): LedgerFolder {
  const folder = diskFolder('ledger');
  return {
    folder,
    file: join(folder, 'ledger.db'),
    artifactsDir: join(folder, 'artifacts'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Opens the file like any other program. */
export function withDatabase<T>(file: string, work: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** Removes the triggers, as any program with access to the file can. */
export const dropGuards = (db: Database.Database): void => {
  const triggers = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`).pluck().all() as string[];
  for (const name of triggers) db.exec(`DROP TRIGGER ${name}`);
};

/** Changes the tables of a closed ledger as another program can that restores the triggers. */
export const withoutGuards = (file: string, work: (db: Database.Database) => void): void =>
  withDatabase(file, (db) => {
    const guards = db.prepare(`SELECT sql FROM sqlite_schema WHERE type = 'trigger'`).pluck().all() as string[];
    dropGuards(db);
    work(db);
    for (const sql of guards) db.exec(sql);
  });

/** The error of `work`, or its result. */
export function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
