// The hook program outside of the package and of every project: writes it, and reads what settings start in its place.

import { mkdirSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { sha256 } from '../../../core/contract/hash.js';
import { usageError } from '../../../core/errors.js';
import { readRegularSync } from '../../../system/files/open-file.js';
import { replaceFile } from '../../../system/files/small-file.js';
import { isWithin } from './client-files.js';
import { existingFolder } from './install-file.js';

/** Far more than the hook program has. */
const PROGRAM_BYTES_MAX = 1_048_576;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o400;

/** What is at a path that settings start. An interpreter is too large to be read. */
export function readProgramFile(path: string): { readonly real: string | null; readonly sha256: string | null } {
  let real: string | null = null;
  try {
    real = realpathSync(path);
    return { real, sha256: sha256(readRegularSync(real, PROGRAM_BYTES_MAX)) };
  } catch {
    return { real, sha256: null };
  }
}

/**
 * Writes the hook program, unless it is there already.
 * @throws UsageError for a path in the project
 */
export function installHookProgram(path: string, text: string, project: string): void {
  const folder = dirname(path);
  if (isWithin(realpathSync(existingFolder(folder)), realpathSync(project)))
    throw usageError(`${folder} is in the project: set XDG_DATA_HOME to a folder outside of it`);
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  if (readProgramFile(path).sha256 !== sha256(text)) replaceFile(path, text, FILE_MODE);
}
