// Signs what a replaced key has signed in a key folder again: the notes of erased
// and replaced case keys, and the list of erasures.

import { join } from 'node:path';
import type { ErasureSeal } from '../../engine/ports/ledger/ledger-store.js';
import { folderNames } from '../../system/files/folder-names.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { ERASURE_LIST, resignErasureList } from './erasure-list.js';

const FILE_BYTES_MAX = 4_096;

/**
 * Each file is replaced in one step, so this can be interrupted and repeated. A note that `seal` does not open stays as
 * it is: reading it reports that.
 * @param seal opens notes of the old keys, and signs with the new one
 */
export function resignErasures(directory: string, seal: ErasureSeal): void {
  for (const name of folderNames(directory)) {
    if (!/\.\d+\.(?:erased|replaced)$/.test(name)) continue;
    const path = join(directory, name);
    const bytes = readSmallFile(path, { bytesMax: FILE_BYTES_MAX, forbiddenMode: 0o077 });
    const statement = bytes === null ? null : seal.open(Buffer.from(bytes).toString('utf8'));
    if (statement !== null) replaceFile(path, seal.seal(statement), 0o600);
  }
  resignErasureList(join(directory, ERASURE_LIST), seal);
}
