import { join } from 'node:path';
import { folderNames } from '../files/folder-names.js';

/** A key of a case, without its secret. */
export interface ListedCaseKey {
  /** The case and the number of the key. */
  readonly id: string;
  readonly state: 'current' | 'erased';
  /** The file of the key, or of the note that it was erased. */
  readonly path: string;
}

/** The keys of cases in a folder, by case and number. A key with a note of its erasure is erased. */
export function listCaseKeys(directory: string): readonly ListedCaseKey[] {
  const found = new Map<string, ListedCaseKey>();
  for (const name of folderNames(directory)) {
    const [, case_id, no, kind] = /^(.+)\.([1-9]\d*)\.(erased|key)$/.exec(name) ?? [];
    if (case_id === undefined) continue;
    const id = `${case_id}.${no ?? ''}`;
    // In the order of names, the note comes first.
    if (kind === 'erased' || !found.has(id)) {
      found.set(id, { id, state: kind === 'erased' ? 'erased' : 'current', path: join(directory, name) });
    }
  }
  return [...found.values()];
}
