// The fast path to a file, for inspecting and reading, never for a change. It opens the whole path at once and then
// asks the kernel where the opened file is. Only if that is exactly the requested path, no link was followed. In every
// other case it returns null, and the walk finds out the reason.
//
//   D1. A reported file was at its own path in the directory of the case, on its device, after it was opened. So that
//       directory was in its place too and need not be checked first.
//   D2. Until that is known, nothing is changed, whatever was reached: the file is inspected, perhaps through a link in
//       the middle of the path, and a name is renamed to itself.
//   D3. That rename uses an open directory. By its path it would be resolved twice, and a link put there in between
//       would make it a real rename.
//
// The walk rejects one case that this does not see: a foreign file system on the path with a mount of the sandbox's own
// device inside it.

import { closeSync, fstatSync, openSync, readlinkSync, renameSync } from 'node:fs';
import type { Effect, EffectResult, PathFact } from '../../core/contract/run/effect.js';
import { contentResultOf, failedResult, actionFailureOf, type CaseSandbox, readWhole } from './sandbox-actions.js';
import { causeOfError, descriptorPath, factOf, OPEN_PATH_FLAGS, OPEN_READ_FLAGS, parsePath } from './sandbox-walk.js';

/** An open file, and the open directory in which its name was renamed. */
interface ReachedFile {
  readonly fd: number;
  readonly directory: string;
  /** The required paths of the directory and of the file on the host. */
  readonly folder: string;
  readonly path: string;
  readonly name: string;
  readonly slash: boolean;
  /** Whether someone else closes the descriptor. */
  isKept: boolean;
}

/**
 * The fact for `path` (attacker-controlled); null: use `factAt`.
 * @param keep takes over the descriptor of a file, for the read that follows
 */
export function lookDirectly(
  sandbox: CaseSandbox,
  path: unknown,
  keep: (file: InspectedFile) => void,
): PathFact | null {
  return withOpenPath(sandbox, path, (target) => {
    const fact = factOf(fstatSync(target.fd, { bigint: true }), sandbox);
    if (fact.status === 'directory') return isInPlace(target) ? fact : null;
    if (fact.status !== 'file' || target.slash || !isInPlace(waitForPendingUnlink(target))) return null;
    keep({ fd: target.fd, path: target.path });
    target.isKept = true;
    return fact;
  });
}

/** D4: READ_FILE of a file whose facts the decision was about. Null: use `readDirectly`. */
export function readInspected(file: InspectedFile, { limits }: Effect): EffectResult | null {
  try {
    const { nlink, size } = fstatSync(file.fd);
    if (nlink !== 1 || readlinkSync(descriptorPath(file.fd)) !== file.path) return null;
    return readOpenFile(file.fd, size, limits.read_bytes_max);
  } catch (error) {
    causeOfError(error);
    return null;
  } finally {
    closeSync(file.fd);
  }
}

/** READ_FILE; null: use `readFile`. */
export function readDirectly(sandbox: CaseSandbox, { args, limits }: Effect): EffectResult | null {
  return withOpenPath(sandbox, args['path'], (target) => {
    // Not BigInts: these values are exact as numbers, and none of them is recorded.
    const stats = fstatSync(target.fd);
    if (!stats.isFile() || stats.dev !== Number(sandbox.root.stats.dev)) return null;
    if (stats.nlink > 1)
      return isFolderInPlace(target) ? actionFailureOf({ status: 'refused', kind: 'hard_link' }) : null;
    if (stats.nlink < 1 || target.slash || !isInPlace(waitForPendingUnlink(target))) return null;
    return readOpenFile(target.fd, stats.size, limits.read_bytes_max);
  });
}

/** @throws an errno error */
function readOpenFile(pathFd: number, size: number, bytesMax: number): EffectResult {
  if (size > bytesMax) return failedResult('TOO_LARGE');
  const fd = openSync(descriptorPath(pathFd), OPEN_READ_FLAGS);
  try {
    return contentResultOf(readWhole(fd, size, bytesMax));
  } finally {
    closeSync(fd);
  }
}

/** Opens the whole `path` while `use` runs. @returns null also on any error of the operating system */
function withOpenPath<T>(
  { hostPath, root, parents }: CaseSandbox,
  path: unknown,
  use: (target: ReachedFile) => T | null,
): T | null {
  const parsed = parsePath(path);
  if (hostPath === null || typeof parsed === 'string' || parsed.ambiguous) return null;
  const { parent, name, slash } = parsed;
  const folder = parent === '' ? hostPath : `${hostPath}/${parent}`;
  const there = name === '.' ? folder : `${folder}/${name}`;
  let target: ReachedFile | null = null;
  let found: T | null = null;
  try {
    const directory = parent === '' ? root.path : descriptorPath(parents.open(root.path, parent));
    const fd = openSync(`${directory}/${name}`, OPEN_PATH_FLAGS);
    target = { fd, directory, folder, path: there, name, slash, isKept: false };
    found = use(target);
  } catch (error) {
    causeOfError(error);
  } finally {
    if (target !== null && !target.isKept) closeSync(target.fd);
    // D5.
    if (found === null) parents.drop(parent);
  }
  return found;
}

/**
 * Waits until a name that is being unlinked is gone, like `waitForUnlink`. The caller must read the link count before,
 * and the path of the file afterwards.
 */
function waitForPendingUnlink(target: ReachedFile): ReachedFile {
  const path = `${target.directory}/${target.name}`;
  // Throws if the name is gone, or if renaming is not permitted: then the walk is used.
  renameSync(path, path);
  return target;
}

const isInPlace = (target: ReachedFile): boolean =>
  readlinkSync(descriptorPath(target.fd)) === target.path && isFolderInPlace(target);

/** Without this check, the rename might have waited on another directory than the file's. */
const isFolderInPlace = ({ directory, folder }: ReachedFile): boolean => readlinkSync(directory) === folder;

/** A file that was in its place when its facts were gathered, open without access to its content (O_PATH). */
interface InspectedFile {
  readonly fd: number;
  /** Its path on the host at that time. */
  readonly path: string;
}

/** Maximum number of files that stay open for their reads. */
const FILES_MAX = 64;

/**
 * Files that stay open from their facts to their reads, within one synchronous turn of the program. The read then
 * reaches the very file that the decision was about, and need not open its path again.
 */
export class InspectedFiles {
  readonly #files = new Map<string, InspectedFile[]>();
  #count = 0;

  /** Takes over the descriptor. */
  add(case_id: string, path: string, file: InspectedFile): void {
    if (this.#count === FILES_MAX) {
      closeSync(file.fd);
      return;
    }
    if (this.#count === 0) queueMicrotask(() => this.close());
    this.#count += 1;
    const key = keyOf(case_id, path);
    const files = this.#files.get(key);
    if (files === undefined) this.#files.set(key, [file]);
    else files.push(file);
  }

  /** Hands the descriptor over to the caller. @returns null if no facts about the file were gathered in this turn */
  take(case_id: string, path: unknown): InspectedFile | null {
    if (this.#count === 0 || typeof path !== 'string') return null;
    const file = this.#files.get(keyOf(case_id, path))?.pop() ?? null;
    if (file !== null) this.#count -= 1;
    return file;
  }

  close(): void {
    for (const files of this.#files.values()) for (const { fd } of files) closeSync(fd);
    this.#files.clear();
    this.#count = 0;
  }
}

// A path has no NUL character.
const keyOf = (case_id: string, path: string): string => `${case_id}\0${path}`;
