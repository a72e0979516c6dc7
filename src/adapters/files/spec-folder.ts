// Specs in one folder, by their ids. An id comes from an agent.

import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { SpecId } from '../../contract/session/session-spec.js';
import { isConforming } from '../../contract/validators.js';

const ENDINGS = ['.yaml', '.yml', '.json'];

/**
 * The file of the spec with this id, directly in the folder, or null. A symbolic link is no file, whatever it leads to;
 * whoever can write to the folder decides what is worked on.
 */
export function findSpecFile(folder: string, spec_id: string): string | null {
  if (!isConforming(SpecId, spec_id)) return null;
  const paths = ENDINGS.map((ending) => join(folder, `${spec_id}${ending}`));
  return paths.find((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true) ?? null;
}

/** The folder as it is called without links. @throws what the system says where there is none */
export const resolveSpecFolder = (folder: string): string => realpathSync(folder);
