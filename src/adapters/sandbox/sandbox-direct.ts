// The short way to a file: for looking and for reading, never for a change. The path is opened whole, and afterwards
// the kernel says where the thing that is held stands. Only if that is the very path, no link was followed on the way.
// Whatever else is found, or fails, is null here, and the walk then tells what it is.
//
//   D1. What is answered stood at its own path in the case's directory, on its device, after it was held. So that
//       directory, too, was where it belongs, and need not be looked at first.
//   D2. What is done before that is known changes nothing, wherever it is: looking, for which a link in the middle may
//       have been followed, and renaming a name to itself.
//   D3. That name is renamed in a directory that is held: by its path it would be looked up twice, and a link put
//       there in between would make it a real rename.
//
// One thing is not seen that the walk sees: a foreign file system on the way, with one of the sandbox's own device
// mounted inside of it.

import { closeSync, constants, fstatSync, openSync, readlinkSync, renameSync } from 'node:fs';
import type { Effect, EffectResult, PathFact } from '../../contract/run/effect.js';
import { contentResultOf, failedResult, actionFailureOf, type CaseSandbox } from './sandbox-actions.js';
import { parsePath } from './sandbox-path.js';
import { readWhole } from './read-whole.js';
import { causeOfError, descriptorPath, factOf, OPEN_PATH_FLAGS, OPEN_READ_FLAGS } from './sandbox-walk.js';

/** A thing that is held, and the directory that its name was renamed in, held as well. */
interface ReachedFile {
  readonly fd: number;
  readonly directory: string;
  /** Where the directory, and where the thing must stand, as paths of the host. */
  readonly folder: string;
  readonly path: string;
  readonly name: string;
  readonly slash: boolean;
}

/** What `path` (attacker-controlled) leads to now; null: ask `factAt`. */
export function lookDirectly(sandbox: CaseSandbox, path: unknown): PathFact | null {
  return withOpenPath(sandbox, path, (target) => {
    const fact = factOf(fstatSync(target.fd, { bigint: true }), sandbox);
    if (fact.status === 'directory') return isInPlace(target) ? fact : null;
    return fact.status === 'file' && !target.slash && isInPlace(waitForPendingUnlink(target)) ? fact : null;
  });
}

/** READ_FILE; null: ask `readFile`. */
export function readDirectly(sandbox: CaseSandbox, { args, limits }: Effect): EffectResult | null {
  return withOpenPath(sandbox, args['path'], (target) => {
    // Not in BigInts: what is asked for here is exact in numbers, and nothing of it is recorded.
    const stats = fstatSync(target.fd);
    if (!stats.isFile() || stats.dev !== Number(sandbox.root.stats.dev)) return null;
    if (stats.nlink > 1)
      return isFolderInPlace(target) ? actionFailureOf({ status: 'refused', kind: 'hard_link' }) : null;
    if (stats.nlink < 1 || target.slash || !isInPlace(waitForPendingUnlink(target))) return null;
    if (stats.size > limits.read_bytes_max) return failedResult('TOO_LARGE');
    const fd = openSync(descriptorPath(target.fd), OPEN_READ_FLAGS);
    try {
      return contentResultOf(readWhole(fd, stats.size, limits.read_bytes_max));
    } finally {
      closeSync(fd);
    }
  });
}

/** Opens `path` whole, holding what stands there while `use` runs. @returns null, too, where anything fails */
function withOpenPath<T>(
  { hostPath, root }: CaseSandbox,
  path: unknown,
  use: (target: ReachedFile) => T | null,
): T | null {
  const parsed = parsePath(path);
  if (hostPath === null || typeof parsed === 'string' || parsed.ambiguous) return null;
  const { parent, name, slash } = parsed;
  const folder = parent === '' ? hostPath : `${hostPath}/${parent}`;
  const there = name === '.' ? folder : `${folder}/${name}`;
  let parentFd = -1;
  let fd = -1;
  try {
    if (parent !== '') parentFd = openSync(`${root.path}/${parent}`, OPEN_PATH_FLAGS | constants.O_DIRECTORY);
    const directory = parentFd === -1 ? root.path : descriptorPath(parentFd);
    fd = openSync(`${directory}/${name}`, OPEN_PATH_FLAGS);
    return use({ fd, directory, folder, path: there, name, slash });
  } catch (error) {
    causeOfError(error);
    return null;
  } finally {
    if (fd !== -1) closeSync(fd);
    if (parentFd !== -1) closeSync(parentFd);
  }
}

/**
 * Waits until a name that is being taken away is gone, as the walk does (`outwaitRemoval`). Before this, the file's
 * names must have been counted; after it, where the file stands must be asked.
 */
function waitForPendingUnlink(target: ReachedFile): ReachedFile {
  const path = `${target.directory}/${target.name}`;
  // Throws where the name is gone, and where nothing may be renamed: the walk knows what to do then.
  renameSync(path, path);
  return target;
}

const isInPlace = (target: ReachedFile): boolean =>
  readlinkSync(descriptorPath(target.fd)) === target.path && isFolderInPlace(target);

/** Without it, the name might have been renamed, and so waited for, in another directory than the file's. */
const isFolderInPlace = ({ directory, folder }: ReachedFile): boolean => readlinkSync(directory) === folder;
