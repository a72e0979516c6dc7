// Reads a bag in a folder. Another program may rename files in it at the same time: every path is resolved from an open
// directory, no link is followed, and only regular files are opened (see sandbox-walk.ts).

import { constants, opendirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { BagError } from '../../../core/errors.js';
import type { BagTree, BagTreeEntry } from '../../../engine/ports/bag-tree.js';
import { descriptorAccess, errnoOf, type PathHandle } from '../../../sandbox/files/sandbox-walk.js';

const PIECE_BYTES = 65_536;
const DEPTH_MAX = 64;

/** Opens a folder. @throws BagError BAG_UNREADABLE if it is not a directory or cannot be opened */
export function openBagFolder(folder: string): BagTree {
  if (process.platform !== 'linux') throw unreadableError(folder, 'a folder can be read without races on Linux only');
  return new FolderTree(folder, openRoot(folder));
}

/** The folder itself may be reached through links, because the caller named it. */
function openRoot(folder: string): PathHandle {
  try {
    const handle = descriptorAccess.openHandle(`${folder}/.`);
    if (kindOf(handle) === constants.S_IFDIR) return handle;
    descriptorAccess.release(handle);
  } catch (error) {
    throw unreadableError(folder, errnoOf(error) ?? 'it cannot be opened', error);
  }
  throw unreadableError(folder, 'it is no folder');
}

class FolderTree implements BagTree {
  readonly #folder: string;
  readonly #root: PathHandle;
  #closed = false;

  constructor(folder: string, root: PathHandle) {
    this.#folder = folder;
    this.#root = root;
  }

  async *entries(): AsyncGenerator<BagTreeEntry> {
    const directories = [''];
    for (let path = directories.pop(); path !== undefined; path = directories.pop()) {
      const directory = this.#walk(path);
      const listing = this.#attempt(path, () => opendirSync(`${directory.path}/.`, { bufferSize: 256 }));
      try {
        for await (const { name } of listing) {
          const entry = this.#inspect(directory, path === '' ? name : `${path}/${name}`, name);
          if (entry === null) continue;
          if (entry.kind === 'directory') directories.push(entry.path);
          yield entry;
        }
      } catch (error) {
        if (error instanceof BagError || errnoOf(error) === null) throw error;
        throw unreadableError(`${this.#folder}/${path}`, errnoOf(error) ?? '', error);
      } finally {
        if (directory !== this.#root) descriptorAccess.release(directory);
      }
    }
  }

  async *read(path: string): AsyncGenerator<Uint8Array> {
    const at = path.lastIndexOf('/');
    const directory = this.#walk(at === -1 ? '' : path.slice(0, at));
    let file;
    try {
      const handle = this.#attempt(path, () => descriptorAccess.openHandle(`${directory.path}/${path.slice(at + 1)}`));
      try {
        if (kindOf(handle) !== constants.S_IFREG) throw changedError(path);
        file = await open(handle.path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
      } finally {
        descriptorAccess.release(handle);
      }
      for (;;) {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(PIECE_BYTES), 0, PIECE_BYTES, null);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } catch (error) {
      if (error instanceof BagError || errnoOf(error) === null) throw error;
      throw unreadableError(path, errnoOf(error) ?? '', error);
    } finally {
      await file?.close();
      if (directory !== this.#root) descriptorAccess.release(directory);
    }
  }

  close(): Promise<void> {
    if (!this.#closed) descriptorAccess.release(this.#root);
    this.#closed = true;
    return Promise.resolve();
  }

  /** Null if the entry no longer exists. */
  #inspect(directory: PathHandle, path: string, name: string): BagTreeEntry | null {
    if (name.includes('\ufffd')) return { kind: 'refused', path, reason: 'name_unfit' };
    let handle: PathHandle;
    try {
      handle = descriptorAccess.openHandle(`${directory.path}/${name}`);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null;
      throw unreadableError(path, errnoOf(error) ?? 'it cannot be looked at', error);
    }
    try {
      const kind = kindOf(handle);
      if (kind === constants.S_IFREG) return { kind: 'file', path, bytes: Number(handle.stats.size) };
      if (kind === constants.S_IFLNK) return { kind: 'refused', path, reason: 'symlink' };
      if (kind !== constants.S_IFDIR) return { kind: 'refused', path, reason: 'special_file' };
      const deep = path.split('/').length >= DEPTH_MAX;
      return deep ? { kind: 'refused', path, reason: 'name_unfit' } : { kind: 'directory', path };
    } finally {
      descriptorAccess.release(handle);
    }
  }

  /** Opens the directory at `path`, for the caller to release; the root is never released. */
  #walk(path: string): PathHandle {
    let directory = this.#root;
    for (const name of path === '' ? [] : path.split('/')) {
      const from = directory;
      try {
        directory = this.#attempt(path, () => descriptorAccess.openHandle(`${from.path}/${name}`));
      } finally {
        if (from !== this.#root) descriptorAccess.release(from);
      }
      if (kindOf(directory) === constants.S_IFDIR) continue;
      descriptorAccess.release(directory);
      throw changedError(path);
    }
    return directory;
  }

  #attempt<T>(path: string, work: () => T): T {
    if (this.#closed) throw unreadableError(this.#folder, 'it was closed');
    try {
      return work();
    } catch (error) {
      throw errnoOf(error) === 'ENOENT'
        ? changedError(path)
        : unreadableError(path, errnoOf(error) ?? 'it cannot be read', error);
    }
  }
}

const kindOf = ({ stats }: PathHandle): number => Number(stats.mode) & constants.S_IFMT;

const changedError = (path: string): BagError =>
  new BagError({ code: 'BAG_HOSTILE', message: `${path} is not what it was when it was listed` });

const unreadableError = (path: string, why: string, cause?: unknown): BagError =>
  new BagError({ code: 'BAG_UNREADABLE', message: `${path} cannot be read: ${why}`, cause });
