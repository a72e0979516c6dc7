// Where the files of this package are. A bundle moves code to other files, so paths start at the folder that contains
// `src`, never at the file itself.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(import.meta.url).replaceAll('\\', '/');

/** The folder that contains `src`: the checkout for source files, `dist` for built files. */
const CODE_ROOT = HERE.slice(0, HERE.lastIndexOf('/src/'));

/** A file or folder of this package, for source files and for built files. */
export function packageFile(path: string): string {
  const candidates = [join(CODE_ROOT, path), join(CODE_ROOT, '..', path)] as const;
  return candidates.find((candidate) => existsSync(candidate)) ?? candidates[0];
}

/** A file or folder that the build writes beside the code; it does not exist for source files. */
export const builtFile = (path: string): string => join(CODE_ROOT, path);
