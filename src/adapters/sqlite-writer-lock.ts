import { closeSync, existsSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { LedgerError } from '../errors.js';
import { errorCode } from './error-code.js';
import { asLedgerError } from './sqlite-database.js';

/** The right to write one ledger, until it is released or the process is gone. */
export interface WriterLock {
  release(): void;
}

/**
 * Takes the lock of a ledger: an exclusive transaction on a file of its own, which the operating system ends with the
 * process, however that dies. The ledger file itself stays free for readers.
 * @throws LedgerError LEDGER_LOCKED at once, while somebody else has it
 */
export function lockWriter(file: string): WriterLock {
  const path = `${file}.lock`;
  // Only where there is none: to close a descriptor of the file would drop a lock that this process holds on it.
  if (!existsSync(path)) createLockFile(path);
  const lock = new Database(path, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return { release: () => lock.close() };
  } catch (cause) {
    lock.close();
    if (errorCode(cause) !== 'SQLITE_BUSY') throw asLedgerError(cause, `the lock ${path} cannot be taken`);
    const message = `another process writes to ${file}: go through it, or stop it first`;
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
