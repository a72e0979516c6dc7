// The folder in which a command runs: looked up component by component in folders that are held, as everything in a
// sandbox is, and entered by descriptor.

import { accessSync, constants, mkdirSync, realpathSync } from 'node:fs';
import { CaseId } from '../contract/shapes.js';
import { conforms } from '../contract/validators.js';
import type { CommandProblem } from '../ports/command-runner.js';
import { DIRECTORY_MODE } from './sandbox-files.js';
import { anchoredFooting, causeOfError, enter, errnoOf, walk } from './sandbox-walk.js';
import type { Anchor, Held, Obstacle } from './sandbox-walk.js';
import { plainFooting } from './unsafe-sandbox.js';

/** A folder that stays where it is while it is used. */
export interface CommandFolder {
  /** A path to it for a process that this one starts. */
  readonly path: string;
  /** The folder of its case, as a path of the host. */
  readonly sandbox: string;
}

/**
 * Leads `use` to the folder `cwd` of a case; the case's own is made if there is none yet.
 * @returns what `use` returned, or why there is no such folder
 * @throws what `use` throws, and an errno error if the sandbox itself cannot be used
 */
export function inFolder<T>(root: string, case_id: string, cwd: string, use: (folder: CommandFolder) => T) {
  if (!conforms(CaseId, case_id)) return 'INVALID_ORDER';
  const footing = process.platform === 'linux' ? anchoredFooting : plainFooting;
  const hostRoot = realpathSync(root);
  const held: Held[] = [];
  const keep = (found: Held | Obstacle): found is Held => {
    if (!('path' in found)) return false;
    held.push(found);
    return true;
  };
  try {
    const all = footing.hold(hostRoot);
    keep(all);
    const home = enterCase({ footing, root: all }, case_id);
    if (!keep(home)) return problemOf(home);
    const folder = walk({ footing, root: home }, cwd, (place) => enter(place.anchor, place.path));
    if (!keep(folder)) return problemOf(folder);
    if (!isOpen(folder)) return 'CWD_REFUSED';
    // In the process that is started, `self` is that process: it has the descriptor until the program takes over.
    const path = footing.isAnchored ? `/proc/self/fd/${folder.fd}` : folder.path;
    return use({ path, sandbox: `${hostRoot}/${case_id}` });
  } finally {
    for (const one of held) footing.release(one);
  }
}

function enterCase(anchor: Anchor, case_id: string): Held | Obstacle {
  const path = `${anchor.root.path}/${case_id}`;
  const there = enter(anchor, path);
  if (!('status' in there) || there.status !== 'no_parent') return there;
  try {
    mkdirSync(path, DIRECTORY_MODE);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  return enter(anchor, path);
}

/** A command may have closed a folder to itself. */
function isOpen(folder: Held): boolean {
  try {
    accessSync(`${folder.path}/.`, constants.X_OK);
    return true;
  } catch (error) {
    causeOfError(error);
    return false;
  }
}

function problemOf({ status }: Obstacle): CommandProblem {
  if (status === 'no_parent') return 'CWD_NOT_FOUND';
  return status === 'not_a_directory' ? 'CWD_NOT_A_DIRECTORY' : 'CWD_REFUSED';
}
