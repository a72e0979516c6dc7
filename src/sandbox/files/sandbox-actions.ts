// The six sandbox actions on held directories. `failed` is answered only where the action certainly did not happen;
// an error after the point of no return is `unknown`, and settled later (`sandbox-settle.ts`).
// The use of space of a case, which they change, is counted here too.

import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  type BigIntStats,
  readSync,
} from 'node:fs';
import { isNativeError } from 'node:util/types';
import type { Effect, EffectResult, PathFact } from '../../core/contract/run/effect.js';
import type { ExecutionCause } from '../../core/contract/fault.js';
import { sha256 } from '../../core/contract/hash.js';
import type { JsonObject } from '../../core/contract/json.js';
import {
  causeOfError,
  readEntries,
  errnoOf,
  factOfHandle,
  withHandle,
  inspect,
  TEMP_PREFIX,
  walkPath,
  type SandboxRoot,
  type PathHandle,
  type ResolvedPath,
  OPEN_PATH_FLAGS,
} from './sandbox-walk.js';

/** The sandbox of one case, with its usage. */
export interface CaseSandbox extends SandboxRoot {
  /** The required path of its root on the host; null if the kernel cannot report paths of open objects. */
  readonly hostPath: string | null;
  readonly usage: SandboxUsage;
  readonly parents: OpenParents;
}

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const FILE_MODE = 0o600;
/** Mode of every directory that the sandbox creates. */
export const DIRECTORY_MODE = 0o700;

/** The effect may have happened. */
export const UNKNOWN_RESULT: EffectResult = { status: 'unknown' };
/** The effect has happened. */
export const doneResult = (result: JsonObject): EffectResult => ({ status: 'done', result });
/** The effect certainly has not happened. */
export const failedResult = (cause: ExecutionCause, error?: unknown): EffectResult =>
  isNativeError(error) ? { status: 'failed', cause, detail: error.message } : { status: 'failed', cause };

/** READ_FILE (S0-74, C34). */
export function readFile(sandbox: CaseSandbox, { args, limits }: Effect): EffectResult {
  return actAt(sandbox, args['path'], (place) =>
    withHandle(sandbox, place.path, (handle) => {
      const fact = factOfHandle(place, handle);
      if (fact.status !== 'file') return actionFailureOf(fact);
      if (place.slash) return failedResult('NOT_A_DIRECTORY');
      return contentResultOf(
        fact.bytes > limits.read_bytes_max ? null : readHandle(sandbox, handle, limits.read_bytes_max),
      );
    }),
  );
}

/** The result of READ_FILE for the bytes of a file; null: there are too many. */
export function contentResultOf(bytes: Buffer | null): EffectResult {
  if (bytes === null) return failedResult('TOO_LARGE');
  return isUtf8(bytes) ? doneResult({ content: bytes.toString('utf8') }) : failedResult('NOT_TEXT');
}

/** LIST_FILES (C09): sorted by UTF-16 code unit. */
export function listFiles(sandbox: CaseSandbox, { args, limits }: Effect): EffectResult {
  return actAt(sandbox, args['path'], ({ path }) =>
    withHandle(sandbox, path, (handle, fact) => {
      if (fact.status === 'file') return failedResult('NOT_A_DIRECTORY');
      if (fact.status !== 'directory') return actionFailureOf(fact);
      const entries: { readonly name: string; readonly type: string }[] = [];
      for (const entry of readEntries(handle)) {
        if (entries.length === limits.list_entries_max) return failedResult('TOO_LARGE');
        const type = entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : 'other';
        entries.push({ name: entry.name, type });
      }
      return doneResult({ entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)) });
    }),
  );
}

/** WRITE_FILE (C30): replaces the file atomically, by renaming a temporary file over it. */
export function writeFile(sandbox: CaseSandbox, effect: Effect): EffectResult {
  const { content, path } = effect.args;
  if (typeof content !== 'string' || !content.isWellFormed()) return failedResult('INTERNAL');
  return actAt(sandbox, path, (place) => {
    const before = inspect(place);
    if (before.status !== 'file' && before.status !== 'absent') return actionFailureOf(before);
    if (place.slash) return failedResult('NOT_A_DIRECTORY');
    const bytes = Buffer.from(content);
    const temp = tempPath(place.directory, effect);
    const result = changeDurably(place.directory, () => {
      try {
        createFile(temp, bytes);
        renameSync(temp, place.path);
      } catch (error) {
        removeTemp(temp);
        throw error;
      }
      return doneResult({ bytes_written: bytes.length });
    });
    const replaced = before.status === 'file' ? before.bytes : 0;
    sandbox.usage.add({ bytes: bytes.length - replaced, files: before.status === 'file' ? 0 : 1 });
    return result;
  });
}

/** CREATE_DIRECTORY (C32): one directory, in a parent that exists. */
export function createDirectory(sandbox: CaseSandbox, { args }: Effect): EffectResult {
  return actAt(sandbox, args['path'], (place) => {
    const before = inspect(place);
    if (before.status !== 'absent') return occupiedFailureOf(before);
    const result = changeDurably(place.directory, () => {
      mkdirSync(place.path, DIRECTORY_MODE);
      return doneResult({});
    });
    sandbox.usage.add({ bytes: 0, files: 1 });
    return result;
  });
}

/** DELETE_FILE (C32): one file, never a directory. */
export function deleteFile(sandbox: CaseSandbox, { args }: Effect): EffectResult {
  return actAt(sandbox, args['path'], (place) => {
    const before = inspect(place);
    if (before.status !== 'file') return actionFailureOf(before);
    const result = changeDurably(place.directory, () => {
      unlinkSync(place.path);
      return doneResult({});
    });
    sandbox.usage.add({ bytes: -before.bytes, files: -1 });
    return result;
  });
}

/** RENAME_FILE (C31): never over an existing target. */
export function renameFile(sandbox: CaseSandbox, { args }: Effect): EffectResult {
  return actAt(sandbox, args['source'], (from) =>
    // Open until the end, so that its inode number cannot be reused in the meantime.
    withHandle(sandbox, from.path, (handle, source) => {
      if (source.status !== 'file') return actionFailureOf(source);
      if (from.slash) return failedResult('NOT_A_DIRECTORY');
      return actAt(sandbox, args['destination'], (to) => {
        const target = inspect(to);
        if (target.status !== 'absent') return occupiedFailureOf(target);
        if (to.slash) return failedResult('NOT_A_DIRECTORY');
        return changeDurably(from.directory, () => moveFile(from, to, handle));
      });
    }),
  );
}

/**
 * Renames without replacing, by link and unlink, because Node has no such rename. It is not atomic across a crash: both
 * names may remain, and each is refused as a hard link until the rename is settled. The new name is durable before the
 * old one is removed.
 */
function moveFile(from: ResolvedPath, to: ResolvedPath, source: PathHandle): EffectResult {
  const linked = changeDurably(to.directory, () => {
    linkSync(from.path, to.path);
    return doneResult({});
  });
  if (linked.status !== 'done') return linked;
  try {
    // link() uses the name: another file, or a link, may have been there by then.
    if (statsAt(to)?.ino !== source.stats.ino) return undoMove(to, failedResult('SANDBOX_CHANGED'));
    unlinkSync(from.path);
  } catch (error) {
    // ENOENT: another program removed the old name, so the new one is the last and must remain.
    if (errnoOf(error) !== 'ENOENT') return undoMove(to, failedResult(causeOfError(error), error));
  }
  return linked;
}

/** Removes the new name again, but never the last one. */
function undoMove(to: ResolvedPath, failure: EffectResult): EffectResult {
  try {
    if ((statsAt(to)?.nlink ?? 0n) < 2n) return UNKNOWN_RESULT;
    return changeDurably(to.directory, () => {
      unlinkSync(to.path);
      return failure;
    });
  } catch (error) {
    causeOfError(error);
    return UNKNOWN_RESULT;
  }
}

const statsAt = (place: ResolvedPath): BigIntStats | undefined =>
  lstatSync(place.path, { bigint: true, throwIfNoEntry: false });

/** Runs `act` at the resolved place of `path`; turns obstacles and errors into failures. */
function actAt(sandbox: CaseSandbox, path: unknown, act: (place: ResolvedPath) => EffectResult): EffectResult {
  try {
    const outcome = walkPath(sandbox, path, act);
    return isResult(outcome) ? outcome : actionFailureOf(outcome);
  } catch (error) {
    return failedResult(causeOfError(error), error);
  }
}

/** Distinguishes the result of an action from an obstacle on its path. */
export const isResult = (outcome: EffectResult | PathFact): outcome is EffectResult =>
  outcome.status === 'done' || outcome.status === 'failed' || outcome.status === 'unknown';

/** The failure of an action that found `fact` instead of what it needed (C29 to C32). */
export function actionFailureOf(fact: PathFact): EffectResult {
  switch (fact.status) {
    case 'absent':
    case 'no_parent':
      return failedResult('FILE_NOT_FOUND');
    case 'not_a_directory':
      return failedResult('NOT_A_DIRECTORY');
    case 'directory':
      return failedResult('IS_A_DIRECTORY');
    case 'file':
      return failedResult('ALREADY_EXISTS');
    case 'refused':
      return failedResult('SANDBOX_CHANGED');
    case 'error':
      return failedResult(fact.cause);
  }
}

/** The failure of an action that needed an unused name and found `fact` (C31, C32). */
export const occupiedFailureOf = (fact: PathFact): EffectResult =>
  fact.status === 'directory' ? failedResult('ALREADY_EXISTS') : actionFailureOf(fact);

/**
 * Makes a change in a directory durable (D9). The directory is opened before the change, so that afterwards only a
 * failed fsync can leave the outcome unknown.
 * @throws what `change` throws, and an errno error before the change
 */
export function changeDurably(directory: PathHandle, change: () => EffectResult): EffectResult {
  const fd = openSync(`${directory.path}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const result = change();
    return trySync(fd) ? result : UNKNOWN_RESULT;
  } finally {
    closeSync(fd);
  }
}

function trySync(fd: number): boolean {
  try {
    fsyncSync(fd);
    return true;
  } catch (error) {
    causeOfError(error);
    return false;
  }
}

/** The path of an effect's temporary file. It is derived from the effect, so that a later attempt finds a leftover. */
export const tempPath = (directory: PathHandle, { idempotency_key }: Effect): string =>
  `${directory.path}/${TEMP_PREFIX}${sha256(idempotency_key)}`;

/** Removes a temporary file if it exists; ignores errors of the operating system. */
export function removeTemp(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    causeOfError(error);
  }
}

function createFile(path: string, bytes: Uint8Array): void {
  const fd = openNew(path);
  try {
    writeFileSync(fd, bytes);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function openNew(path: string): number {
  try {
    return openSync(path, CREATE, FILE_MODE);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    // An earlier attempt of the same effect was killed.
    unlinkSync(path);
    return openSync(path, CREATE, FILE_MODE);
  }
}

/** The bytes of an open file; null if there are more than `max`. @throws an errno error */
export function readHandle({ access }: CaseSandbox, handle: PathHandle, max: number): Buffer | null {
  const fd = access.reopen(handle);
  try {
    return readWhole(fd, Number(handle.stats.size), max);
  } finally {
    closeSync(fd);
  }
}

/** The usage of a sandbox: bytes of its files, and the number of files and directories. */
interface Usage {
  readonly bytes: number;
  readonly files: number;
}

/**
 * No agent can name anything deeper, because a path has at most 1,024 bytes. The limit keeps a deep tree that another
 * program created from using up the descriptors.
 */
const DEPTH_MAX = 512;

/**
 * The usage that the quota of one case is checked against. The first request scans the sandbox; then the changes made
 * here update it. Changes by other programs are seen at the next scan.
 */
export class SandboxUsage {
  #known: Usage | null = null;

  /** @throws an errno error if the sandbox could not be scanned */
  measure(sandbox: SandboxRoot): Usage {
    this.#known ??= scan(sandbox, sandbox.root, 1);
    return this.#known;
  }

  /** Adds a change that has happened. */
  add(change: Usage): void {
    if (this.#known === null) return;
    const bytes = this.#known.bytes + change.bytes;
    const files = this.#known.files + change.files;
    // Below zero, another program has changed the sandbox too: the cached usage is invalid.
    this.#known = bytes < 0 || files < 0 ? null : { bytes, files };
  }

  /** After a change with an unknown outcome, or by a command: the next `measure` scans again. */
  forget(): void {
    this.#known = null;
  }
}

function scan(sandbox: SandboxRoot, directory: PathHandle, depth: number): Usage {
  const directories: string[] = [];
  let bytes = 0;
  let files = 0;
  for (const entry of readEntries(directory)) {
    const path = `${directory.path}/${entry.name}`;
    files += 1;
    if (entry.isDirectory()) directories.push(path);
    else bytes += fileBytes(path);
  }
  // After the listing is closed, so that only one descriptor for each level is open.
  for (const path of directories) {
    const inside = scanBelow(sandbox, path, depth);
    bytes += inside.bytes;
    files += inside.files;
  }
  return { bytes, files };
}

function scanBelow(sandbox: SandboxRoot, path: string, depth: number): Usage {
  const nothing = { bytes: 0, files: 0 };
  if (depth >= DEPTH_MAX) return nothing;
  try {
    return withHandle(sandbox, path, (handle, fact) =>
      fact.status === 'directory' ? scan(sandbox, handle, depth + 1) : nothing,
    );
  } catch (error) {
    // It was removed in the meantime.
    if (errnoOf(error) === 'ENOENT') return nothing;
    throw error;
  }
}

function fileBytes(path: string): number {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true ? stats.size : 0;
}

/** Maximum number of directories of one case that stay open between steps. */
const PARENTS_MAX = 4;

/**
 * Directories of one case that stay open between its steps, by their path below its root. The caller verifies each time
 * where the directory is, and drops it if it is elsewhere.
 */
export class OpenParents {
  /** In the order of opening. */
  readonly #descriptors = new Map<string, number>();

  /** @param rootPath the path of the open root @returns the open directory @throws an errno error */
  open(rootPath: string, parent: string): number {
    const known = this.#descriptors.get(parent);
    if (known !== undefined) return known;
    const [oldest] = this.#descriptors.keys();
    if (this.#descriptors.size >= PARENTS_MAX && oldest !== undefined) this.drop(oldest);
    const fd = openSync(`${rootPath}/${parent}`, OPEN_PATH_FLAGS | constants.O_DIRECTORY);
    this.#descriptors.set(parent, fd);
    return fd;
  }

  drop(parent: string): void {
    const fd = this.#descriptors.get(parent);
    if (fd === undefined) return;
    this.#descriptors.delete(parent);
    closeSync(fd);
  }

  close(): void {
    for (const parent of [...this.#descriptors.keys()]) this.drop(parent);
  }
}

/**
 * Reads a file that had `size` bytes; counts while reading, because the file may grow.
 * @returns null if there are more than `max` bytes @throws an errno error
 */
export function readWhole(fd: number, size: number, max: number): Buffer | null {
  // One byte more than expected, so that the end of the file is seen without a second buffer.
  let buffer = Buffer.allocUnsafe(Math.min(size, max) + 1);
  let length = 0;
  for (;;) {
    const count = readSync(fd, buffer, length, buffer.length - length, null);
    length += count;
    if (length > max) return null;
    // At the expected length the read ends without looking for the end of the file. For a file that grows, this is its
    // content at one point in time.
    if (count === 0 || length === size) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer], max + 1);
  }
}
