// A private key as one line of text in a file with mode 0600, and its public key in a file next to it.

import { randomBytes } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { readSmallFile, replaceFile } from '../files/small-file.js';

const KEY_BYTES_MAX = 1_024;

/** The line of a file that no other user may access. @returns null if there is no file @throws PolicyError */
export const readPrivateLine = (path: string): string | null => readTrimmedLine(path, 0o077);

/** The line of a file that other users may read but not write. @returns null if there is no file @throws PolicyError */
export const readPublicLine = (path: string): string | null => readTrimmedLine(path, 0o022);

export const writePrivateLine = (path: string, line: string): void => replaceFile(path, `${line}\n`, 0o600);
export const writePublicLine = (path: string, line: string): void => replaceFile(path, `${line}\n`, 0o644);

/** Renames a draft to its final name. */
export const renameIntoPlace = (draft: string, path: string): void => renameSync(draft, path);

export const hasFile = (path: string): boolean => existsSync(path);

/** Cryptographically secure random bytes. */
export const drawSeed = (bytes: number): Uint8Array => randomBytes(bytes);

function readTrimmedLine(path: string, forbiddenMode: number): string | null {
  const bytes = readSmallFile(path, { bytesMax: KEY_BYTES_MAX, forbiddenMode });
  return bytes === null ? null : Buffer.from(bytes).toString('utf8').trimEnd();
}
