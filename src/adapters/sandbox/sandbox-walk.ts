// The walk: how a sandbox path becomes an open directory and a last name, without a moment in which somebody who
// renames things meanwhile could lead it astray.
//
//   W1. A path is taken apart once (`sandbox-path.ts`); every component is looked up in the directory that is held.
//   W2. What is held is held by descriptor (O_PATH): its name may change, the thing itself may not.
//   W3. No link is ever followed on a walk. A FIFO, a socket or a device is looked at, never opened.
//   W4. Whatever is held is released, on every way out.

import { closeSync, constants, fstatSync, lstatSync, opendirSync, openSync, readlinkSync, renameSync } from 'node:fs';
import type { BigIntStats, Dirent } from 'node:fs';
import { constants as system } from 'node:os';
import { dirname } from 'node:path';
import { isNativeError } from 'node:util/types';
import type { PathFact, RefusedKind } from '../../contract/run/effect.js';
import type { ExecutionCause } from '../../contract/fault.js';
import { parsePath, TEMP_PREFIX } from './sandbox-path.js';

export { TEMP_PREFIX };

/** Linux only, and missing in `node:fs`: take hold of the thing itself, whatever it is, without opening it. */
const O_PATH = 0o10000000;
export const OPEN_PATH_FLAGS = O_PATH | constants.O_NOFOLLOW;
/** How what was found to be a file is opened. */
export const OPEN_READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** How the kernel ends the path of a file whose name is gone. */
const UNLINKED = ' (deleted)';
/** Reaches what a descriptor of this process holds, whatever its name is by now. */
export const descriptorPath = (fd: number): string => `${PROC_SELF}/fd/${fd}`;
/** `/proc/self` by the name that it is a link to: every look at a descriptor is one look less. */
const PROC_SELF = findProcDirectory();

/** Something of the file system that is held: `path` reaches this very thing, whatever its name is by now. */
export interface PathHandle {
  readonly path: string;
  readonly fd: number;
  readonly stats: BigIntStats;
}

/** How things are held: the one difference between the safe sandbox and the unsafe one. */
export interface FileAccess {
  /** Can the kernel be asked where a held thing stands? */
  readonly hasDescriptorPaths: boolean;
  /** Holds what stands at `path`, a link as itself. @throws an errno error, also when nothing stands there */
  openHandle(path: string): PathHandle;
  release(handle: PathHandle): void;
  /** Opens a held thing, found to be a file, for reading. @throws an errno error */
  reopen(handle: PathHandle): number;
  /**
   * Has a held file, found to have one name, that name in this place's directory? If not, its name here was taken away
   * before the names were counted, and the one that is left may stand outside. @throws an errno error
   */
  isNamedAt(place: ResolvedPath, handle: PathHandle): boolean;
}

/** The root directory of one case's sandbox. */
export interface SandboxRoot {
  readonly access: FileAccess;
  readonly root: PathHandle;
}

/** Where a path leads: a held directory and a name in it, at which something may stand or not. */
export interface ResolvedPath {
  readonly sandbox: SandboxRoot;
  readonly directory: PathHandle;
  /** The last component, reached through the held directory. */
  readonly path: string;
  /** The sandbox path ended with a slash, so it can only mean a directory. */
  readonly slash: boolean;
}

/** A fact that ends a walk before its last name. */
export type Obstacle = Extract<PathFact, { status: 'no_parent' | 'not_a_directory' | 'refused' | 'error' }>;

/** Race-free: every path begins at a descriptor of this process, so that only its last name is looked up. */
export const descriptorAccess: FileAccess = {
  hasDescriptorPaths: true,
  openHandle(path) {
    // Without O_DIRECTORY: one fstat of the thing itself then tells a link from a file, with no second look to race.
    const fd = openSync(path, OPEN_PATH_FLAGS);
    try {
      return { path: descriptorPath(fd), fd, stats: fstatSync(fd, { bigint: true }) };
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  },
  release: (handle) => closeSync(handle.fd),
  reopen: (handle) => openSync(handle.path, OPEN_READ_FLAGS),
  isNamedAt(place, { path, stats }) {
    if (!waitForUnlink(place)) return false;
    const now = readlinkSync(path);
    if (dirname(now) !== readlinkSync(place.directory.path)) return false;
    if (!now.endsWith(UNLINKED)) return true;
    // Perhaps it is called that.
    const there = lstatSync(now, { bigint: true, throwIfNoEntry: false });
    return there?.ino === stats.ino && there.dev === stats.dev && there.nlink === 1n;
  },
};

/**
 * While a name is taken away, the file counts one less already, but its name still shows. That is over when the lock of
 * the directory is free, for which whoever renames waits. Renaming a name to itself changes nothing, whatever stands
 * there; where nothing may be renamed, reading the directory waits for the same, and costs more.
 * @returns false when the name is gone
 */
function waitForUnlink({ path, directory }: ResolvedPath): boolean {
  try {
    renameSync(path, path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    causeOfError(error);
  }
  const listing = opendirSync(`${directory.path}/.`, { bufferSize: 1 });
  try {
    listing.readSync();
  } finally {
    listing.closeSync();
  }
  return true;
}

function findProcDirectory(): string {
  try {
    // The number may be one of another PID namespace than the one that /proc shows.
    const pid = String(process.pid);
    return readlinkSync('/proc/self') === pid ? `/proc/${pid}` : '/proc/self';
  } catch {
    return '/proc/self';
  }
}

/** What the file system answers, as the stable error types (S0-54). What is not listed is IO_ERROR. */
const CAUSES: Readonly<Record<string, ExecutionCause>> = {
  ENOENT: 'FILE_NOT_FOUND',
  EISDIR: 'IS_A_DIRECTORY',
  ENOTDIR: 'NOT_A_DIRECTORY',
  EEXIST: 'ALREADY_EXISTS',
  EACCES: 'PERMISSION_DENIED',
  EPERM: 'PERMISSION_DENIED',
  EROFS: 'PERMISSION_DENIED',
  // A name that this file system does not take; what none takes was refused in VALIDATE_ARGS.
  ENAMETOOLONG: 'PERMISSION_DENIED',
  EILSEQ: 'PERMISSION_DENIED',
  ENOSPC: 'NO_SPACE',
  EMLINK: 'NO_SPACE',
  // libuv has no name for EDQUOT.
  [`Unknown system error -${system.errno.EDQUOT}`]: 'NO_SPACE',
  EFBIG: 'TOO_LARGE',
  ELOOP: 'SANDBOX_CHANGED',
  EXDEV: 'SANDBOX_CHANGED',
};

/** The code of an error that the operating system reported, or null: then it is a bug of ours, to be thrown on. */
export const errnoOf = (error: unknown): string | null =>
  isNativeError(error) && 'errno' in error && 'code' in error ? String(error.code) : null;

/** The cause for an error of the operating system. @throws `error` itself if it is anything else */
export function causeOfError(error: unknown): ExecutionCause {
  const code = errnoOf(error);
  if (code === null) throw error;
  return CAUSES[code] ?? 'IO_ERROR';
}

/** The fact that stands for `cause`. */
export const errorFact = (cause: ExecutionCause): Obstacle => ({ status: 'error', cause });

/**
 * Leads `use` to where `path` (attacker-controlled) points in the sandbox of `anchor`. What `use` gets is held only
 * while it runs.
 * @returns what `use` returned, or what was in the way
 * @throws what `use` throws
 */
export function walkPath<T>(sandbox: SandboxRoot, path: unknown, use: (place: ResolvedPath) => T): T | Obstacle {
  const parsed = parsePath(path);
  if (typeof parsed === 'string') return errorFact(parsed);
  const { access, root } = sandbox;
  let directory = root;
  try {
    for (const parent of parsed.parents) {
      const next = openDirectory(sandbox, `${directory.path}/${parent}`);
      if ('status' in next) return next;
      if (directory !== root) access.release(directory);
      directory = next;
    }
    return use({ sandbox, directory, path: `${directory.path}/${parsed.name}`, slash: parsed.slash });
  } finally {
    if (directory !== root) access.release(directory);
  }
}

/** Holds what stands at `path` while `use` runs. @throws an errno error, also when nothing stands there */
export function withHandle<T>(sandbox: SandboxRoot, path: string, use: (handle: PathHandle, fact: PathFact) => T): T {
  const handle = sandbox.access.openHandle(path);
  try {
    return use(handle, factOf(handle.stats, sandbox));
  } finally {
    sandbox.access.release(handle);
  }
}

/** Holds the directory at `path` until the caller releases it, or says what is in the way. */
export function openDirectory(sandbox: SandboxRoot, path: string): PathHandle | Obstacle {
  let handle: PathHandle;
  try {
    handle = sandbox.access.openHandle(path);
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? { status: 'no_parent' } : errorFact(causeOfError(error));
  }
  const fact = factOf(handle.stats, sandbox);
  if (fact.status === 'directory') return handle;
  sandbox.access.release(handle);
  if (fact.status === 'refused') return fact;
  return fact.status === 'absent' ? { status: 'no_parent' } : { status: 'not_a_directory' };
}

/** What stands at a place now. @throws an errno error */
export function inspect(place: ResolvedPath): PathFact {
  const stats = lstatSync(place.path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { status: 'absent' };
  const fact = factOf(stats, place.sandbox);
  return place.slash && fact.status === 'file' ? { status: 'not_a_directory' } : fact;
}

/** What `path` leads to now. With `portable`, an absent name that has a twin in its directory is refused. */
export function factAt(sandbox: SandboxRoot, path: unknown, portable: boolean): PathFact {
  try {
    return walkPath(sandbox, path, (place) => {
      const fact = inspect(place);
      if (fact.status === 'file') return withHandle(sandbox, place.path, (handle) => factOfHandle(place, handle));
      return portable && fact.status === 'absent' && hasTwin(place) ? refusedFact('name_twin') : fact;
    });
  } catch (error) {
    return errorFact(causeOfError(error));
  }
}

/**
 * What is held at a place. Unlike `inspect`, it cannot take the file at a hard link that is just being removed for a
 * file of the sandbox, and so it is what a fact or the reading of content goes by. @throws an errno error
 */
export function factOfHandle(place: ResolvedPath, handle: PathHandle): PathFact {
  const fact = factOf(handle.stats, place.sandbox);
  return fact.status !== 'file' || place.sandbox.access.isNamedAt(place, handle) ? fact : { status: 'absent' };
}

/** The fact that `stats` stand for, on the device of the sandbox. */
export function factOf(stats: BigIntStats, { root }: Pick<SandboxRoot, 'root'>): PathFact {
  const kind = Number(stats.mode) & constants.S_IFMT;
  if (kind === constants.S_IFLNK) return refusedFact('symlink');
  if (stats.dev !== root.stats.dev) return refusedFact('other_file_system');
  if (stats.nlink === 0n) return { status: 'absent' };
  const identity = { inode: String(stats.ino), mtime_ns: String(stats.mtimeNs) };
  if (kind === constants.S_IFDIR) return { status: 'directory', ...identity };
  if (kind === constants.S_IFIFO) return refusedFact('fifo');
  if (kind === constants.S_IFSOCK) return refusedFact('socket');
  if (kind !== constants.S_IFREG) return refusedFact('device');
  // Its other name may stand outside of the sandbox.
  if (stats.nlink > 1n) return refusedFact('hard_link');
  return { status: 'file', bytes: Number(stats.size), ...identity };
}

/** The entries of a held directory, without temporary files. @throws an errno error */
export function* readEntries(directory: PathHandle): Generator<Dirent> {
  const listing = opendirSync(`${directory.path}/.`, { bufferSize: 256 });
  try {
    for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
      if (!entry.name.startsWith(TEMP_PREFIX)) yield entry;
    }
  } finally {
    listing.closeSync();
  }
}

const refusedFact = (kind: RefusedKind): Obstacle => ({ status: 'refused', kind });

/** Would another file system, or another eye, take the name for one that is there already? */
function hasTwin({ directory, path }: ResolvedPath): boolean {
  const name = foldName(path.slice(directory.path.length + 1));
  for (const entry of readEntries(directory)) if (foldName(entry.name) === name) return true;
  return false;
}

// Lower case first, then upper: so that ẞ, ß and ss are one, as they are to file systems with full case folding.
const foldName = (name: string): string => name.normalize('NFC').toLowerCase().toUpperCase();
