import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { LedgerError } from '../../errors.js';
import { errorCode } from '../system/error-code.js';
import { refuseSpecialFile } from '../files/open-file.js';
import { asLedgerError } from './sqlite-database.js';

/** The right to write one ledger or file, or to use one folder, until it is released or the process is gone. */
export interface WriterLock {
  release(): void;
}

/** How long somebody waits for a lock that others have for a moment only. */
const LOCK_WAIT_MS = 5_000;

/**
 * Takes the lock of a ledger: an exclusive transaction on a file of its own, which the operating system ends with the
 * process, however that dies. The ledger file itself stays free for readers.
 * @throws LedgerError LEDGER_LOCKED at once, while somebody else has it
 */
export const lockWriter = (file: string): WriterLock =>
  lockWithin(file, 0, `another process writes to ${file}: go through it, or stop it first`);

/** The same for a folder that one process uses at a time: the lock is `<folder>/state.lock`. */
export const lockFolder = (folder: string): WriterLock =>
  lockWithin(join(folder, 'state'), 0, `another process uses ${folder}: stop it first, or name another folder`);

/**
 * Reads and replaces a file while nobody else does, in whatever process: waits for its turn.
 * @throws LedgerError LEDGER_LOCKED when that does not come; what `work` throws
 */
export function withFileLock<T>(file: string, work: () => T): T {
  const lock = lockWithin(file, LOCK_WAIT_MS, `another process has been changing ${file} for a long time: try again`);
  try {
    return work();
  } finally {
    lock.release();
  }
}

function lockWithin(file: string, timeout: number, message: string): WriterLock {
  const path = `${file}.lock`;
  // Only where there is none: to close a descriptor of the file would drop a lock that this process holds on it.
  if (!existsSync(path)) createLockFile(path);
  try {
    refuseSpecialFile(path);
  } catch (cause) {
    throw asLedgerError(cause, `the lock ${path} cannot be taken`);
  }
  const lock = new Database(path, { timeout });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return { release: () => lock.close() };
  } catch (cause) {
    lock.close();
    if (errorCode(cause) !== 'SQLITE_BUSY') throw asLedgerError(cause, `the lock ${path} cannot be taken`);
    throw new LedgerError({ code: 'LEDGER_LOCKED', message, cause });
  }
}

function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (cause) {
    if (errorCode(cause) === 'EEXIST') return;
    throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the lock ${path} cannot be made`, cause });
  }
}
