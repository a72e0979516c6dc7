import { join } from 'node:path';
import { folderNames } from '../../system/files/folder-names.js';
import { caseKeyFileOf } from './case-key-notes.js';

/** A key of a case, without its secret. */
export interface ListedCaseKey {
  /** The case and the number of the key. */
  readonly id: string;
  /** `replacing`: another key has replaced it, and the replacement is unfinished. */
  readonly state: 'current' | 'retired' | 'replacing' | 'erased';
  /** The file of the key, or of the note that ended it. */
  readonly path: string;
}

/** The keys of cases in a folder, by case and number. */
export function listCaseKeys(directory: string): readonly ListedCaseKey[] {
  const found = new Map<string, ListedCaseKey>();
  const names = folderNames(directory);
  const keys = new Set(names.filter((name) => name.endsWith('.key')));
  // In the order of names the note of an erasure comes first, then the key, then the note of a replacement.
  for (const file of names.map(caseKeyFileOf).filter((one) => one !== null)) {
    const { case_id, no, kind, name } = file;
    const id = `${case_id}.${no}`;
    if (found.get(id)?.state === 'erased') continue;
    const replaced = keys.has(`${id}.key`) ? 'replacing' : 'retired';
    const state = kind === 'key' ? 'current' : kind === 'replaced' ? replaced : 'erased';
    found.set(id, { id, state, path: join(directory, name) });
  }
  return [...found.values()];
}
