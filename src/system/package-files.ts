// Where the files of this package are. A bundle moves code to other folders, so a file is searched for from the code
// up to the root of the package.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** No file of this package is deeper below its root. */
const FOLDERS_MAX = 8;

/** The folders from that of this code up to the root of the package, which has its manifest. */
function foldersUp(): readonly string[] {
  const folders = [dirname(fileURLToPath(import.meta.url))] as [string, ...string[]];
  for (let folder = folders[0]; folders.length < FOLDERS_MAX && !existsSync(join(folder, 'package.json'));) {
    folder = dirname(folder);
    folders.push(folder);
  }
  return folders;
}

/**
 * A file or folder of this package, or one that the build has written next to the code. @returns a path at which
 * nothing exists if the package has no such file, as in a checkout without a build
 */
export function packageFile(path: string): string {
  const candidates = foldersUp().map((folder) => join(folder, path));
  return candidates.find((candidate) => existsSync(candidate)) ?? candidates.at(-1) ?? path;
}
