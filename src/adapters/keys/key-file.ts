// A private key as one line of text in a file that is the owner's alone, and beside it what others may have of it.

import { randomBytes } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { readSmallFile, replaceFile } from '../files/small-file.js';

const KEY_BYTES_MAX = 1_024;

/** The line in a file that nobody else may read. @returns null where there is no file @throws PolicyError */
export const readPrivateLine = (path: string): string | null => readTrimmedLine(path, 0o077);

/** The line in a file that others may read and nobody else write. @returns null where there is no file */
export const readPublicLine = (path: string): string | null => readTrimmedLine(path, 0o022);

export const writePrivateLine = (path: string, line: string): void => replaceFile(path, `${line}\n`, 0o600);
export const writePublicLine = (path: string, line: string): void => replaceFile(path, `${line}\n`, 0o644);

/** Moves a file to the name under which it counts. */
export const renameIntoPlace = (draft: string, path: string): void => renameSync(draft, path);

export const hasFile = (path: string): boolean => existsSync(path);

/** Random bytes that nobody can guess. */
export const drawSeed = (bytes: number): Uint8Array => randomBytes(bytes);

function readTrimmedLine(path: string, forbiddenMode: number): string | null {
  const bytes = readSmallFile(path, { bytesMax: KEY_BYTES_MAX, forbiddenMode });
  return bytes === null ? null : Buffer.from(bytes).toString('utf8').trimEnd();
}
