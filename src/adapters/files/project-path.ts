// Paths of a coding agent as policy sees them.

import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** How many missing folders a path may end with. */
const MISSING_MAX = 64;

/**
 * The canonical form of a path: relative to the project if it is inside, `.` for the project itself, else absolute.
 * Links are resolved as far as the path exists now; the client may still change them before it uses the path.
 * @param project an absolute path
 * @param cwd the folder of a relative path
 */
export function projectPath(path: string, project: string, cwd: string): string {
  const expanded = path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path;
  const inProject = relative(realPath(project), realPath(resolve(cwd, expanded)));
  if (inProject === '') return '.';
  const isOutside = inProject === '..' || inProject.startsWith(`..${sep}`) || isAbsolute(inProject);
  return isOutside ? realPath(resolve(cwd, expanded)) : inProject;
}

/** The path without links. What does not exist is kept as it is. */
function realPath(path: string): string {
  let existing = path;
  const missing: string[] = [];
  for (let level = 0; level < MISSING_MAX; level += 1) {
    try {
      return join(realpathSync(existing), ...missing.reverse());
    } catch {
      missing.push(basename(existing));
      existing = dirname(existing);
    }
  }
  return path;
}
