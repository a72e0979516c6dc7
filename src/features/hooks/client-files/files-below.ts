import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** More are not looked at. */
export const PATHS_MAX = 2_000;

/**
 * The files at and below some paths of a folder, sorted. A link counts as a file and is not followed, and a folder that
 * cannot be read or is not looked at counts as one: anyone with write access to a project may have made them.
 */
export function filesBelow(root: string, paths: readonly string[]): readonly string[] {
  const found: string[] = [];
  const open = [...paths];
  let looked = 0;
  for (; looked < Math.min(open.length, PATHS_MAX); looked += 1) {
    const path = open[looked] ?? '';
    const children = childrenOf(join(root, path));
    if (children === null) found.push(path);
    else open.push(...children.slice(0, PATHS_MAX + 1 - open.length).map((name) => `${path}/${name}`));
  }
  found.push(...open.slice(looked));
  return found.sort();
}

/** @returns null for a file; an empty list for a path that does not exist */
function childrenOf(path: string): readonly string[] | null {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isDirectory() ? readdirSync(path).sort() : null;
  } catch {
    return null;
  }
}
