// Small files that security depends on: read without following links, and replaced atomically.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { PolicyError } from '../../core/errors.js';
import { errorCode } from '../error-code.js';
import { NotAFile, openRegularSync } from './open-file.js';
import { fsyncDirectorySync } from './fsync-directory.js';

export interface SmallFileLimits {
  readonly bytesMax: number;
  /** Permission bits that the file must not have, for example 0o077. Default: none. */
  readonly forbiddenMode?: number;
}

/**
 * Reads a regular file. @returns its bytes, or null if it does not exist
 * @throws PolicyError POLICY_UNREADABLE for anything that is not a regular file (a symlink, a FIFO, a folder), and for
 * a file that is larger, grows while it is read, or has forbidden permissions
 */
export function readSmallFile(path: string, { bytesMax, forbiddenMode = 0 }: SmallFileLimits): Uint8Array | null {
  let descriptor: number;
  try {
    descriptor = openRegularSync(path, { flags: constants.O_NOFOLLOW });
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return null;
    if (cause instanceof NotAFile) throw unreadableError(path, 'is not a file', cause);
    throw unreadableError(path, errorCode(cause) === 'ELOOP' ? 'is a symbolic link' : 'cannot be read', cause);
  }
  try {
    const { size, mode } = readStats(descriptor);
    if (size > bytesMax) throw unreadableError(path, `is larger than ${bytesMax} bytes`);
    if ((mode & forbiddenMode) !== 0)
      throw unreadableError(
        path,
        `can be touched by others: take away the permissions ${(mode & forbiddenMode).toString(8)}`,
      );
    return readAll(path, descriptor, size);
  } catch (cause) {
    throw cause instanceof PolicyError ? cause : unreadableError(path, 'cannot be read', cause);
  } finally {
    closeSync(descriptor);
  }
}

function readStats(descriptor: number): { size: number; mode: number } {
  const stat = fstatSync(descriptor);
  return { size: stat.size, mode: stat.mode & 0o777 };
}

function readAll(path: string, descriptor: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size + 1);
  let length = 0;
  for (;;) {
    const read = readSync(descriptor, bytes, length, bytes.length - length, null);
    length += read;
    if (length > size) throw unreadableError(path, 'grows while it is read');
    if (read === 0) return bytes.subarray(0, length);
  }
}

/** Replaces the content of a file durably and atomically: a reader sees either the old or the new text. */
export function replaceFile(path: string, text: string, mode: number): void {
  writeDraft(path, text, mode, renameSync);
}

/**
 * Creates a file durably and atomically, unless there is one. Of several processes the first wins.
 * @returns whether this call has created it
 */
export function createFile(path: string, text: string, mode: number): boolean {
  try {
    writeDraft(path, text, mode, (draft) => {
      linkSync(draft, path);
      unlinkSync(draft);
    });
    return true;
  } catch (cause) {
    if (errorCode(cause) === 'EEXIST') return false;
    throw cause;
  }
}

/** @param publish gives the draft, which is durable, its name */
function writeDraft(path: string, text: string, mode: number, publish: (draft: string, path: string) => void): void {
  const draft = `${path}.new-${randomBytes(6).toString('hex')}`;
  try {
    const descriptor = openSync(draft, 'wx', mode);
    try {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    publish(draft, path);
  } catch (cause) {
    rmSync(draft, { force: true });
    throw cause;
  }
  fsyncDirectorySync(dirname(path));
}

const unreadableError = (path: string, why: string, cause?: unknown): PolicyError =>
  new PolicyError({ code: 'POLICY_UNREADABLE', message: `${path} ${why}`, cause });
