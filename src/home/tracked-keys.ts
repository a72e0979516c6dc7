// The secrets of a home must not get into a Git repository: everyone with a copy of it could sign as the ledger and
// decrypt the content of cases.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createFile } from '../system/files/small-file.js';
import { findTrackedFile } from '../system/git/tracked-file.js';
import { usageError } from '../core/errors.js';
import type { HomePaths } from './home-paths.js';

const IGNORE_FILE = '.gitignore';
/** Git ignores every file in the folder, also this one. */
const IGNORE_ALL = '*\n';
const MODE = 0o600;

/** Makes Git ignore all files in a folder, unless the folder has a file of its own that says what to ignore. */
export const ignoreInGit = (folder: string): void => void createFile(join(folder, IGNORE_FILE), IGNORE_ALL, MODE);

/** Whether a file is what `ignoreInGit` has written. */
export const isIgnoringAll = (path: string): boolean => {
  const { size } = statSync(path);
  return size === IGNORE_ALL.length && readFileSync(path, 'utf8') === IGNORE_ALL;
};

/** Of the key folder, only the public key may be tracked, and the file that says what to ignore. */
const PUBLIC_FILES: readonly string[] = ['ledger.vkey', 'key-history.list', IGNORE_FILE];

/** @throws UsageError if a secret of the home is in the index of a Git repository */
export async function refuseTrackedKeys({ home, keys }: Pick<HomePaths, 'home' | 'keys'>): Promise<void> {
  const tracked = await findTrackedFile(keys, (name) => PUBLIC_FILES.includes(name));
  if (tracked === null) return;
  throw usageError(
    `Git tracks ${join(keys, tracked)}, so everyone with a copy of the repository has the key: remove it from the index ` +
      `(git rm -r --cached ${keys}), and rotate the keys: make a new home with \`turnpike init --home\`, new tokens with ` +
      `\`turnpike token\`, and stop using ${home}`,
  );
}
