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
import type { Effect, EffectResult, PathFact } from '../contract/effect.js';
import { contentOf, failed, failedBy, type CaseSandbox } from './sandbox-files.js';
import { parsePath } from './sandbox-path.js';
import { readWhole } from './sandbox-read.js';
import { causeOfError, descriptorPath, factOf, LOOK, READ } from './sandbox-walk.js';

/** A thing that is held, and the directory that its name was renamed in, held as well. */
interface Reached {
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
  return reach(sandbox, path, (reached) => {
    const fact = factOf(fstatSync(reached.fd, { bigint: true }), sandbox);
    if (fact.status === 'directory') return isThere(reached) ? fact : null;
    return fact.status === 'file' && !reached.slash && isThere(outwaited(reached)) ? fact : null;
  });
}

/** READ_FILE; null: ask `readFile`. */
export function readDirectly(sandbox: CaseSandbox, { args, limits }: Effect): EffectResult | null {
  return reach(sandbox, args['path'], (reached) => {
    // Not in BigInts: what is asked for here is exact in numbers, and nothing of it is recorded.
    const stats = fstatSync(reached.fd);
    if (!stats.isFile() || stats.dev !== Number(sandbox.root.stats.dev)) return null;
    if (stats.nlink > 1) return isFolderThere(reached) ? failedBy({ status: 'refused', kind: 'hard_link' }) : null;
    if (stats.nlink < 1 || reached.slash || !isThere(outwaited(reached))) return null;
    if (stats.size > limits.read_bytes_max) return failed('TOO_LARGE');
    const fd = openSync(descriptorPath(reached.fd), READ);
    try {
      return contentOf(readWhole(fd, stats.size, limits.read_bytes_max));
    } finally {
      closeSync(fd);
    }
  });
}

/** Opens `path` whole, holding what stands there while `use` runs. @returns null, too, where anything fails */
function reach<T>({ home, root }: CaseSandbox, path: unknown, use: (reached: Reached) => T | null): T | null {
  const parsed = parsePath(path);
  if (home === null || typeof parsed === 'string' || parsed.ambiguous) return null;
  const { parent, name, slash } = parsed;
  const folder = parent === '' ? home : `${home}/${parent}`;
  const there = name === '.' ? folder : `${folder}/${name}`;
  let above = -1;
  let fd = -1;
  try {
    if (parent !== '') above = openSync(`${root.path}/${parent}`, LOOK | constants.O_DIRECTORY);
    const directory = above === -1 ? root.path : descriptorPath(above);
    fd = openSync(`${directory}/${name}`, LOOK);
    return use({ fd, directory, folder, path: there, name, slash });
  } catch (error) {
    causeOfError(error);
    return null;
  } finally {
    if (fd !== -1) closeSync(fd);
    if (above !== -1) closeSync(above);
  }
}

/**
 * Waits until a name that is being taken away is gone, as the walk does (`outwaitRemoval`). Before this, the file's
 * names must have been counted; after it, where the file stands must be asked.
 */
function outwaited(reached: Reached): Reached {
  const path = `${reached.directory}/${reached.name}`;
  // Throws where the name is gone, and where nothing may be renamed: the walk knows what to do then.
  renameSync(path, path);
  return reached;
}

const isThere = (reached: Reached): boolean =>
  readlinkSync(descriptorPath(reached.fd)) === reached.path && isFolderThere(reached);

/** Without it, the name might have been renamed, and so waited for, in another directory than the file's. */
const isFolderThere = ({ directory, folder }: Reached): boolean => readlinkSync(directory) === folder;
