import { readdirSync } from 'node:fs';
import { errorCode } from '../error-code.js';

/** The names in a folder, sorted; none if it does not exist. @throws an error of the operating system */
export function folderNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
