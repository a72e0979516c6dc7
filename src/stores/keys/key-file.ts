// A private key as one line of text in a file with mode 0600, and its public key in a file next to it.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from '../../system/error-code.js';
import { fsyncDirectorySync } from '../../system/files/fsync-directory.js';
import { createFile, readSmallFile, replaceFile } from '../../system/files/small-file.js';

const KEY_BYTES_MAX = 1_024;

/** The line of a file that no other user may access. @returns null if there is no file @throws PolicyError */
export const readPrivateLine = (path: string): string | null => readTrimmedLine(path, 0o077);

/** The line of a file that other users may read but not write. @returns null if there is no file @throws PolicyError */
export const readPublicLine = (path: string): string | null => readTrimmedLine(path, 0o022);

export const writePrivateLine = (path: string, line: string): void => replaceFile(path, `${line}\n`, 0o600);
export const writePublicLine = (path: string, line: string): void => replaceFile(path, `${line}\n`, 0o644);

/** Creates a private key, unless there is one. Of several processes the first wins. */
export const createPrivateLine = (path: string, line: string): boolean => createFile(path, `${line}\n`, 0o600);

/** Gives a draft its final name, unless another process has. Afterwards there is no draft. */
export function linkIntoPlace(draft: string, path: string): void {
  try {
    linkSync(draft, path);
    fsyncDirectorySync(dirname(path));
  } catch (error) {
    // Another process has given it its name, and may have removed the draft since.
    if (!existsSync(path)) throw error;
  }
  removeDraft(draft);
}

export const removeDraft = (draft: string): void => rmSync(draft, { force: true });

/** Overwrites a secret before unlinking it, because unlinking leaves its bytes on the disk. */
export function shredFile(path: string): void {
  let file: number;
  try {
    file = openSync(path, 'r+');
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return;
    throw cause;
  }
  try {
    writeSync(file, Buffer.alloc(fstatSync(file).size), 0, null, 0);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  unlinkSync(path);
  fsyncDirectorySync(dirname(path));
}

/** Gives a file another name durably. A file of that name keeps its content under the name `kept`. */
export function exchangeFile(from: string, path: string, kept: string): void {
  rmSync(kept, { force: true });
  linkSync(path, kept);
  fsyncDirectorySync(dirname(path));
  renameSync(from, path);
  fsyncDirectorySync(dirname(path));
}

export const hasFile = (path: string): boolean => existsSync(path);

/** Cryptographically secure random bytes. */
export const drawSeed = (bytes: number): Uint8Array => randomBytes(bytes);

function readTrimmedLine(path: string, forbiddenMode: number): string | null {
  const bytes = readSmallFile(path, { bytesMax: KEY_BYTES_MAX, forbiddenMode });
  return bytes === null ? null : Buffer.from(bytes).toString('utf8').trimEnd();
}
