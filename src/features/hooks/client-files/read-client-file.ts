// Reads settings files of clients. Anyone with write access to a project may have made them, so nothing of a file is
// trusted: it may be a link, a device, a FIFO, huge, or no text.

import { constants, lstatSync, realpathSync } from 'node:fs';
import { isUtf8 } from 'node:buffer';
import { readRegularSync } from '../../../system/files/open-file.js';
import { errorCode } from '../../../system/error-code.js';

/** Far more than any settings. */
const SETTINGS_BYTES_MAX = 1_048_576;

/** A file as it was read. */
export interface ClientFile {
  /** Null if there is no file, or it cannot be used. */
  readonly text: string | null;
  readonly problem: string | null;
  readonly executable: boolean;
}

const ABSENT: ClientFile = { text: null, problem: null, executable: false };

/** @param root the folder in which the file must be, after links are resolved */
export function readClientFile(path: string, root: string): ClientFile {
  try {
    lstatSync(path);
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error)) ? ABSENT : unusable('cannot be read');
  }
  try {
    const real = realpathSync(path);
    if (!isWithin(real, realpathSync(root))) return unusable(`leads out of ${root}`);
    const bytes = readRegularSync(real, SETTINGS_BYTES_MAX);
    if (!isUtf8(bytes)) return unusable('is not UTF-8');
    const executable = (lstatSync(real).mode & constants.S_IXUSR) !== 0;
    return { text: bytes.toString('utf8'), problem: null, executable };
  } catch (error) {
    return unusable(error instanceof RangeError ? `is larger than ${SETTINGS_BYTES_MAX} bytes` : 'cannot be read');
  }
}

const unusable = (problem: string): ClientFile => ({ ...ABSENT, problem });

/** Whether a path without links is in a folder without links. */
export const isWithin = (path: string, folder: string): boolean =>
  folder === '/' || path.startsWith(`${folder}/`) || path === folder;
