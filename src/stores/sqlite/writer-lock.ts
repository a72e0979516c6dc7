import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { LedgerError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import { refuseSpecialFile } from '../../system/files/open-file.js';
import { connectSqlite, asLedgerError } from './sqlite-binding.js';

/** The exclusive right to write a ledger or file, or to use a folder, until released or the process ends. */
export interface WriterLock {
  release(): void;
}

/** How long a process waits for a lock that others hold briefly, in ms. */
const LOCK_WAIT_MS = 5_000;

/**
 * Takes the writer lock of a ledger: an exclusive transaction on a separate file. The operating system releases it when
 * the process ends, in whatever way. Readers of the ledger file are not affected.
 * @throws LedgerError LEDGER_LOCKED at once, while another process holds it
 */
export const lockWriter = (file: string): WriterLock =>
  lockWithin(file, 0, `another process writes to ${file}: go through it, or stop it first`);

/** The path whose `.lock` file `lockFolder` locks. */
export const folderLockOf = (folder: string): string => join(folder, 'state');

/** Takes the lock `<folder>/state.lock`, so that one process at a time uses the folder. @throws like `lockWriter` */
export const lockFolder = (folder: string): WriterLock =>
  lockWithin(folderLockOf(folder), 0, `another process uses ${folder}: stop it first, or name another folder`);

/**
 * Takes the lock `<keys>/rotation.lock`, so that one process at a time rotates the key in a folder that several use. It
 * also excludes a process that has lost its lock in the database. @throws like `lockWriter`
 */
export const lockRotation = (keys: string): WriterLock =>
  lockWithin(join(keys, 'rotation'), 0, `another process rotates the key in ${keys}: wait until it has ended`);

/**
 * Runs `work` while no other process changes the file; waits at most 5 s for the lock.
 * @throws LedgerError LEDGER_LOCKED after that time; what `work` throws
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
  // Only if it does not exist: closing any descriptor of the file would drop a lock that this process holds on it.
  if (!existsSync(path)) createLockFile(path);
  try {
    refuseSpecialFile(path);
  } catch (cause) {
    throw asLedgerError(cause, `the lock ${path} cannot be taken`);
  }
  const lock = connectSqlite(path, { timeout });
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
