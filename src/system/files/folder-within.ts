// Whether one folder lies in another, whatever links lead there.

import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** Whether `folder` is `other`, or lies below it. Neither needs to exist yet. */
export function isFolderWithin(folder: string, other: string): boolean {
  const path = relative(realPathOf(resolve(other)), realPathOf(resolve(folder)));
  return path.split(sep)[0] !== '..' && !isAbsolute(path);
}

/** Resolves symbolic links in the existing part of a path. */
function realPathOf(path: string): string {
  const parent = dirname(path);
  return existsSync(path) || parent === path ? realpathSync(path) : join(realPathOf(parent), basename(path));
}
