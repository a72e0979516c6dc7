// The walk: resolves a sandbox path to an open directory and a last name, so that no concurrent rename can redirect it.
//
//   W1. A path is parsed once (`parsePath`); every component is looked up in the open directory before it.
//   W2. Directories and files are held by descriptor (O_PATH): the name may change, the object cannot.
//   W3. A walk never follows a link. It inspects a FIFO, a socket or a device, but never opens it.
//   W4. Every handle is released on every way out.

import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readlinkSync,
  renameSync,
  type BigIntStats,
  type Dirent,
} from 'node:fs';
import { constants as system } from 'node:os';
import { dirname } from 'node:path';
import { isNativeError } from 'node:util/types';
import type { PathFact, RefusedKind } from '../../core/contract/run/effect.js';
import type { ExecutionCause } from '../../core/contract/fault.js';

/** Linux only, and missing in `node:fs`: refers to a file-system object of any kind without opening it. */
const O_PATH = 0o10000000;
export const OPEN_PATH_FLAGS = O_PATH | constants.O_NOFOLLOW;
/** Flags to open what was found to be a file. */
export const OPEN_READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Suffix that the kernel appends to the path of a file whose name is gone. */
const UNLINKED = ' (deleted)';
/** A path that reaches the object of a descriptor, whatever its name is now. */
export const descriptorPath = (fd: number): string => `${PROC_SELF}/fd/${fd}`;
/** The target of the link `/proc/self`: saves one lookup for each access to a descriptor. */
const PROC_SELF = findProcDirectory();

/** An open file-system object: `path` reaches exactly this object, whatever its name is now. */
export interface PathHandle {
  readonly path: string;
  readonly fd: number;
  readonly stats: BigIntStats;
}

/** How objects are opened: the only difference between the safe sandbox and the unsafe one. */
export interface FileAccess {
  /** Whether the kernel reports the current path of an open object. */
  readonly hasDescriptorPaths: boolean;
  /** Opens what is at `path`; does not follow a link. @throws an errno error, also if `path` does not exist */
  openHandle(path: string): PathHandle;
  release(handle: PathHandle): void;
  /** Opens a file behind a handle for reading. @throws an errno error */
  reopen(handle: PathHandle): number;
  /**
   * Whether an open file with a link count of 1 has its name in the directory of this place. If not, its name here was
   * unlinked before the links were counted, and the remaining name may be outside. @throws an errno error
   */
  isNamedAt(place: ResolvedPath, handle: PathHandle): boolean;
}

/** The root directory of one case's sandbox. */
export interface SandboxRoot {
  readonly access: FileAccess;
  readonly root: PathHandle;
}

/** A resolved path: an open directory and a name in it, at which something may exist or not. */
export interface ResolvedPath {
  readonly sandbox: SandboxRoot;
  readonly directory: PathHandle;
  /** The last component, reached through the open directory. */
  readonly path: string;
  /** The sandbox path ends with a slash, so it can only name a directory. */
  readonly slash: boolean;
}

/** A fact that ends a walk before its last name. */
export type Obstacle = Extract<PathFact, { status: 'no_parent' | 'not_a_directory' | 'refused' | 'error' }>;

/** Race-free access: every path starts from a descriptor of this process, so only its last name is looked up. */
export const descriptorAccess: FileAccess = {
  hasDescriptorPaths: true,
  openHandle(path) {
    // Without O_DIRECTORY: then one fstat of the object itself tells a link from a file, without a second lookup.
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
    // The file may really have this name.
    const there = lstatSync(now, { bigint: true, throwIfNoEntry: false });
    return there?.ino === stats.ino && there.dev === stats.dev && there.nlink === 1n;
  },
};

/**
 * During an unlink the link count is already lower while the name still exists. The unlink is over when the lock of the
 * directory is free, and a rename waits for that lock. Renaming a name to itself changes nothing, whatever it names. If
 * renaming is not permitted, reading the directory waits for the same lock, but costs more.
 * @returns false if the name is gone
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
    // The process id may belong to another PID namespace than /proc.
    const pid = String(process.pid);
    return readlinkSync('/proc/self') === pid ? `/proc/${pid}` : '/proc/self';
  } catch {
    return '/proc/self';
  }
}

/** Maps errors of the file system to the stable error types (S0-54). Unlisted errors are IO_ERROR. */
const CAUSES: Readonly<Record<string, ExecutionCause>> = {
  ENOENT: 'FILE_NOT_FOUND',
  EISDIR: 'IS_A_DIRECTORY',
  ENOTDIR: 'NOT_A_DIRECTORY',
  EEXIST: 'ALREADY_EXISTS',
  EACCES: 'PERMISSION_DENIED',
  EPERM: 'PERMISSION_DENIED',
  EROFS: 'PERMISSION_DENIED',
  // A name that only this file system rejects; VALIDATE_ARGS rejects names that all file systems reject.
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

/** The code of an operating-system error, or null: then the error is a bug and must be rethrown. */
export const errnoOf = (error: unknown): string | null =>
  isNativeError(error) && 'errno' in error && 'code' in error ? String(error.code) : null;

/** The cause for an operating-system error. @throws `error` itself if it is anything else */
export function causeOfError(error: unknown): ExecutionCause {
  const code = errnoOf(error);
  if (code === null) throw error;
  return CAUSES[code] ?? 'IO_ERROR';
}

export const errorFact = (cause: ExecutionCause): Obstacle => ({ status: 'error', cause });

/**
 * Resolves `path` (attacker-controlled) in `sandbox` and calls `use` with the place, which is valid only during the
 * call.
 * @returns what `use` returned, or the obstacle on the path
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

/** Opens what is at `path` while `use` runs. @throws an errno error, also if `path` does not exist */
export function withHandle<T>(sandbox: SandboxRoot, path: string, use: (handle: PathHandle, fact: PathFact) => T): T {
  const handle = sandbox.access.openHandle(path);
  try {
    return use(handle, factOf(handle.stats, sandbox));
  } finally {
    sandbox.access.release(handle);
  }
}

/** Opens the directory at `path`, for the caller to release; or returns the obstacle. */
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

/** The fact at a place now. @throws an errno error */
export function inspect(place: ResolvedPath): PathFact {
  const stats = lstatSync(place.path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { status: 'absent' };
  const fact = factOf(stats, place.sandbox);
  return place.slash && fact.status === 'file' ? { status: 'not_a_directory' } : fact;
}

/** The fact at `path` now. With `portable`, an absent name is refused if the directory has a twin of it. */
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
 * The fact of an open file. Unlike `inspect`, it cannot mistake a hard link that is just being unlinked for a file of
 * the sandbox. So facts and reads use this function. @throws an errno error
 */
export function factOfHandle(place: ResolvedPath, handle: PathHandle): PathFact {
  const fact = factOf(handle.stats, place.sandbox);
  return fact.status !== 'file' || place.sandbox.access.isNamedAt(place, handle) ? fact : { status: 'absent' };
}

/** The fact for `stats`, with the device of the sandbox. */
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
  // The other name may be outside the sandbox.
  if (stats.nlink > 1n) return refusedFact('hard_link');
  return { status: 'file', bytes: Number(stats.size), ...identity };
}

/** The entries of an open directory, without temporary files. @throws an errno error */
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

/** Whether another file system, or a reader, could confuse the name with an existing one. */
function hasTwin({ directory, path }: ResolvedPath): boolean {
  const name = foldName(path.slice(directory.path.length + 1));
  for (const entry of readEntries(directory)) if (foldName(entry.name) === name) return true;
  return false;
}

// Lower case first, then upper: makes ẞ, ß and ss equal, as file systems with full case folding do.
const foldName = (name: string): string => name.normalize('NFC').toLowerCase().toUpperCase();

/** Prefix of every temporary file: never listed, never counted, not addressable. */
export const TEMP_PREFIX = '.turnpike-tmp-';
const ROOT = '/sandbox/';
/** AUTHORIZE denies these before (C28); checked again so that nothing depends on it. */
const UNFIT = /[\0-\x1f\x7f-\x9f\\]/;
/** The kernel appends ` (deleted)` to the path of a removed file, and invalid UTF-8 in a path reads as U+FFFD. */
const AMBIGUOUS = / \(deleted\)|\ufffd/;

/** A parsed sandbox path. */
interface ParsedPath {
  readonly parents: readonly string[];
  /** The parents joined with slashes; empty for a name in the root, and for the root itself. */
  readonly parent: string;
  readonly name: string;
  /** The path ends with a slash, so it can only name a directory. */
  readonly slash: boolean;
  /** Whether the kernel may report this path for another file too. */
  readonly ambiguous: boolean;
}

/** Facts are gathered and then the action runs on the same path, so the last result is cached. */
let latest: { readonly path: string; readonly parsed: ParsedPath } | null = null;

/** Parses a path (attacker-controlled). @returns the parsed path, or why it is invalid */
export function parsePath(path: unknown): ParsedPath | ExecutionCause {
  if (latest !== null && path === latest.path) return latest.parsed;
  if (typeof path !== 'string') return 'INTERNAL';
  const parsed = parse(path);
  if (typeof parsed !== 'string') latest = { path, parsed };
  return parsed;
}

/** The root has the name `.` in itself, so that no other code needs a special case for it. */
function parse(path: string): ParsedPath | ExecutionCause {
  if (path === ROOT) return { parents: [], parent: '', name: '.', slash: true, ambiguous: false };
  if (!path.startsWith(ROOT) || !path.isWellFormed() || UNFIT.test(path)) return 'INTERNAL';
  const slash = path.endsWith('/');
  const parents = path.slice(ROOT.length, slash ? -1 : undefined).split('/');
  if (parents.some((segment) => segment === '' || segment === '.' || segment === '..')) return 'INTERNAL';
  if (parents.some((segment) => segment.toLowerCase().startsWith(TEMP_PREFIX))) return 'PERMISSION_DENIED';
  const name = parents.pop() ?? '';
  return { parents, parent: parents.join('/'), name, slash, ambiguous: AMBIGUOUS.test(path) };
}

/**
 * Plain paths instead of descriptors, for development without /proc (macOS). Every check is made, but the checked
 * object can be replaced afterwards: a program that renames directories in the sandbox can redirect an action to
 * another place (CVE-2018-15664). Needs a case-sensitive file system; otherwise two cases may share one directory.
 */
export const unsafeAccess: FileAccess = {
  hasDescriptorPaths: false,
  openHandle: (path) => ({ path, fd: -1, stats: lstatSync(path, { bigint: true }) }),
  release: () => undefined,
  reopen: ({ path }) => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW),
  isNamedAt: () => true,
};
