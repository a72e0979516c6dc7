// Paths of a coding agent as policy sees them.

import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';

/** As many links as Linux follows in one path. */
const LINKS_MAX = 40;

/**
 * The canonical form of a path: relative to the project if it is inside, `.` for the project itself, else absolute.
 * Links are resolved as they are now; the client may still change them before it uses the path.
 * A path that cannot be resolved with certainty ends with `/..`, so that it has no reading.
 * @param project an absolute path
 * @param cwd the folder of a relative path
 */
export function projectPath(path: string, project: string, cwd: string): string {
  const expanded = path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path;
  const from = isAbsolute(expanded) ? expanded : `${cwd}/${expanded}`;
  const real = kernelPath(from);
  // Some clients remove `..` before they open a path, and the kernel follows links first: both must mean the same.
  const isPlain = !/(?:^|\/)\.\.(?:\/|$)/.test(from);
  if (real === null || (!isPlain && kernelPath(resolve(from)) !== real)) return `${resolve(from)}/..`;
  const inProject = relative(existingPath(project), real);
  if (inProject === '') return '.';
  const isOutside = inProject === '..' || inProject.startsWith(`..${sep}`) || isAbsolute(inProject);
  return isOutside ? real : inProject;
}

const existingPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return kernelPath(path) ?? path;
  }
};

/**
 * The path as the kernel follows it, one name after another: a link leads to its target, also one to a file that does
 * not exist yet, and `..` to the parent of what was reached. A missing folder has no links below it.
 * @returns null if the kernel would refuse it, or if a folder cannot be searched
 */
function kernelPath(path: string): string | null {
  const names = path.split('/').reverse();
  let [reached, links] = ['/', 0];
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      reached = join(reached, '..');
      continue;
    }
    const found = join(reached, name);
    const target = targetOf(found);
    if (target === null) return null;
    if (target === '') {
      reached = found;
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) return null;
    if (target.startsWith('/')) reached = '/';
    names.push(...target.split('/').reverse());
  }
  return reached;
}

/** Where a link leads; empty for anything else, also for what does not exist. */
function targetOf(path: string): string | null {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isSymbolicLink() === true ? readlinkSync(path) : '';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG' ? '' : null;
  }
}
