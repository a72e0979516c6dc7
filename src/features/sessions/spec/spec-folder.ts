// Finds specs in one folder by their ids. An id is untrusted: it comes from an agent.

import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { SpecId } from '../contract/session-spec.js';
import { isConforming } from '../../../core/contract/validators.js';

const ENDINGS = ['.yaml', '.yml', '.json'];

/**
 * The file of the spec with this id, directly in the folder, or null. Symbolic links are not followed: only a user who
 * can write to the folder may decide what agents work on.
 */
export function findSpecFile(folder: string, spec_id: string): string | null {
  if (!isConforming(SpecId, spec_id)) return null;
  const paths = ENDINGS.map((ending) => join(folder, `${spec_id}${ending}`));
  return paths.find((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true) ?? null;
}

/** The real path of the folder. @throws the error of the operating system if it does not exist */
export const resolveSpecFolder = (folder: string): string => realpathSync(folder);
