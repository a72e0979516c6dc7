// Small files that count, a byte for each time. Nothing of them is trusted. A failure to count changes nothing else.

import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { readRegularSync } from '../../../system/files/open-file.js';

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
/** More files are not made. */
const FILES_MAX = 1_024;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The bytes of a file; none if there is no such file, or another one. */
export function readCountFile(path: string, bytesMax: number): Uint8Array {
  try {
    return readRegularSync(path, bytesMax);
  } catch {
    return new Uint8Array();
  }
}

/** @returns whether it is counted: in a file that is full, and in one too many, it is not */
export function addToCountFile(path: string, byte: string, bytesMax: number): boolean {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE });
    const descriptor = openCountFile(path);
    try {
      const file = fstatSync(descriptor);
      return file.isFile() && file.size < bytesMax && writeSync(descriptor, byte) === 1;
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return false;
  }
}

function openCountFile(path: string): number {
  try {
    return openSync(path, APPEND);
  } catch {
    if (readdirSync(dirname(path)).length >= FILES_MAX) throw new RangeError(`${dirname(path)} is full`);
    return openSync(path, APPEND | constants.O_CREAT, FILE_MODE);
  }
}

export const removeCountFile = (path: string): void => rmSync(path, { force: true });

/** The names of the count files of a folder, sorted. */
export function listCountFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort().slice(0, FILES_MAX);
  } catch {
    return [];
  }
}

/** The path by which two processes name one home, whether it exists or not. */
export function canonicalHome(home: string): string {
  try {
    return realpathSync(home);
  } catch {
    return resolve(home);
  }
}
