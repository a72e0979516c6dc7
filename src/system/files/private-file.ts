// Files with content of a ledger that commands write for their caller. Only the owner can read them, whatever the umask
// is, and whatever permissions a file that is replaced had.

import { realpathSync, statSync, writeFileSync } from 'node:fs';
import { createFile, replaceFile } from './small-file.js';

const MODE = 0o600;

/** Creates a private file. @returns false if there is a file of this name, which stays as it is */
export const createPrivateFile = (path: string, text: string): boolean => createFile(path, text, MODE);

/** Writes a private file; replaces one of this name by a new one. A pipe or a device stays what it is. */
export function writePrivateFile(path: string, text: string): void {
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing === undefined) replaceFile(path, text, MODE);
  // A new file, and not the old one with other permissions: another process may have the old one open.
  else if (existing.isFile()) replaceFile(realpathSync(path), text, MODE);
  else writeFileSync(path, text);
}
