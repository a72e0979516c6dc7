// Files of contents that no row speaks of: what a removal has left, cut short or not.

import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../system/error-code.js';

const FOLDER = /^[0-9a-f]{2}$/;
/** As they are named by us, with the number of their key: whatever else somebody has put there stays. */
const CONTENT = /^[0-9a-f]{64}(?:\.[1-9]\d*)?(?:\.part)?$/;

/** Removes the contents in `directory` that are not among these paths. Only while nobody else writes there. */
export function sweepArtifactFiles(directory: string, retained: ReadonlySet<string>): void {
  for (const owner of readNames(directory)) {
    for (const folder of readNames(join(directory, owner)).filter((name) => FOLDER.test(name))) {
      for (const name of readNames(join(directory, owner, folder)).filter((one) => CONTENT.test(one))) {
        const path = join(directory, owner, folder, name);
        if (!retained.has(path)) unlinkSync(path);
      }
    }
  }
}

/** What is no folder, or is not there, has nothing in it. */
function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error))) return [];
    throw error;
  }
}
