// The working folder of a command: resolved component by component in open directories, like every path in a sandbox,
// and entered by descriptor.

import { accessSync, constants, mkdirSync, realpathSync } from 'node:fs';
import { CaseId } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import type { CommandProblem } from '../../engine/ports/effects/command-runner.js';
import { DIRECTORY_MODE } from '../files/sandbox-actions.js';
import {
  descriptorAccess,
  causeOfError,
  openDirectory,
  errnoOf,
  walkPath,
  unsafeAccess,
} from '../files/sandbox-walk.js';
import type { SandboxRoot, PathHandle, Obstacle } from '../files/sandbox-walk.js';

/** An open folder, which cannot be replaced while it is used. */
export interface CommandFolder {
  /** A path to it for a child process of this process. */
  readonly path: string;
  /** The folder of its case, as a path of the host. */
  readonly sandbox: string;
}

/**
 * Calls `use` with the folder `cwd` of a case; creates the folder of the case if it does not exist.
 * @returns what `use` returned, or why there is no such folder
 * @throws what `use` throws, and an errno error if the sandbox itself cannot be used
 */
export function withCommandFolder<T>(root: string, case_id: string, cwd: string, use: (folder: CommandFolder) => T) {
  if (!isConforming(CaseId, case_id)) return 'INVALID_ORDER';
  const access = process.platform === 'linux' ? descriptorAccess : unsafeAccess;
  const hostRoot = realpathSync(root);
  const handles: PathHandle[] = [];
  const trackHandle = (found: PathHandle | Obstacle): found is PathHandle => {
    if (!('path' in found)) return false;
    handles.push(found);
    return true;
  };
  try {
    const rootHandle = access.openHandle(hostRoot);
    trackHandle(rootHandle);
    const caseFolder = enterCase({ access, root: rootHandle }, case_id);
    if (!trackHandle(caseFolder)) return problemOf(caseFolder);
    const folder = walkPath({ access, root: caseFolder }, cwd, (place) => openDirectory(place.sandbox, place.path));
    if (!trackHandle(folder)) return problemOf(folder);
    if (!isOpen(folder)) return 'CWD_REFUSED';
    // In the child process, `self` is the child: it has the descriptor until it executes the program.
    const path = access.hasDescriptorPaths ? `/proc/self/fd/${folder.fd}` : folder.path;
    return use({ path, sandbox: `${hostRoot}/${case_id}` });
  } finally {
    for (const one of handles) access.release(one);
  }
}

function enterCase(sandbox: SandboxRoot, case_id: string): PathHandle | Obstacle {
  const path = `${sandbox.root.path}/${case_id}`;
  const there = openDirectory(sandbox, path);
  if (!('status' in there) || there.status !== 'no_parent') return there;
  try {
    mkdirSync(path, DIRECTORY_MODE);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  return openDirectory(sandbox, path);
}

/** Whether the folder can be entered: an earlier command may have removed its permissions. */
function isOpen(folder: PathHandle): boolean {
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
