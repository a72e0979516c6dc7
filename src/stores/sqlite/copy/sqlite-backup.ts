// Copies a ledger file that another process may be writing, as of one moment.

import { closeSync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { NO_PROGRESS, type ProgressReporter } from '../../../engine/ports/progress.js';
import { fsyncDirectorySync } from '../../../system/files/fsync-directory.js';
import { connectSqlite, type SqliteBackupProgress, type SqliteConnection, asLedgerError } from '../sqlite-binding.js';
import { openDatabase } from '../sqlite-database.js';

/** Pages of 4 KiB that are copied between two turns of the event loop. */
const PAGES_PER_TURN = 1_024;

/**
 * Copies the ledger with SQLite's backup interface to a file that does not exist, and makes it durable. The writer of
 * the ledger never waits: the copy reads one snapshot, and until it ends the WAL is only not truncated.
 * @throws LedgerError
 */
export async function backupSqliteFile(
  file: string,
  target: string,
  progress: ProgressReporter = NO_PROGRESS,
): Promise<void> {
  closeSync(openSync(target, 'wx', 0o600));
  const db = openDatabase(file, true);
  try {
    // An open read transaction keeps the snapshot. Without it, each commit of the writer would start the copy again.
    db.exec('BEGIN');
    db.prepare('SELECT size FROM meta').get();
    await db.backup(target, { progress: pageProgress(progress, db) });
  } catch (cause) {
    throw asLedgerError(cause, `the ledger ${file} cannot be copied to ${target}`);
  } finally {
    db.close();
  }
  withoutWal(target);
  syncFile(target);
}

/** Makes a closed file and its name durable. */
export function syncFile(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  fsyncDirectorySync(dirname(path));
}

/** Reports the pages as bytes. SQLite names their number with the first report. */
function pageProgress(progress: ProgressReporter, db: SqliteConnection): SqliteBackupProgress {
  const pageBytes = Number(db.pragma('page_size', { simple: true }));
  let done: number | null = null;
  return ({ totalPages, remainingPages }) => {
    if (done === null) progress.begin({ label: 'copying the ledger', unit: 'bytes', total: totalPages * pageBytes });
    const copied = (totalPages - remainingPages) * pageBytes;
    progress.advance(copied - (done ?? 0));
    done = copied;
    return PAGES_PER_TURN;
  };
}

/** Leaves a closed ledger file without a WAL: its content is then exactly that of the file. */
export function withoutWal(target: string): void {
  const copy = connectSqlite(target);
  try {
    copy.pragma('journal_mode = DELETE');
  } catch (cause) {
    throw asLedgerError(cause, `the copy ${target} cannot be finished`);
  } finally {
    copy.close();
  }
}
