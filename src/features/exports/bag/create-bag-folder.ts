// Writes a bag as a folder: first a draft, which then gets its name atomically.

import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { mkdir, open, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { BagError } from '../../../core/errors.js';
import type { BagSink } from '../../../engine/ports/bag-tree.js';
import { errorCode } from '../../../system/error-code.js';
import { fsyncDirectory } from '../../../system/files/fsync-directory.js';

/** 1980-01-01 UTC, as in a .zip file: the time of writing has no meaning for the content. */
const TIME_S = 315_532_800;

/** Creates a sink. @throws BagError BAG_EXISTS if the path exists, BAG_UNWRITABLE if its parent does not */
export function createBagFolder(folder: string): BagSink {
  const target = resolve(folder);
  if (existsSync(target)) throw existsError(target);
  try {
    return new FolderSink(target, mkdtempSync(join(dirname(target), '.bag-partial-')));
  } catch (error) {
    throw unwritableError(target, error);
  }
}

/** Removes the empty folder with which a killed writer had claimed its name, and nothing else. */
export async function releaseBagFolder(folder: string): Promise<void> {
  try {
    await rmdir(resolve(folder));
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST'].includes(errorCode(error))) throw unwritableError(folder, error);
  }
}

class FolderSink implements BagSink {
  readonly #target: string;
  readonly #draft: string;
  readonly #directories = new Set(['']);

  constructor(target: string, draft: string) {
    this.#target = target;
    this.#draft = draft;
  }

  writeDirectory(path: string): Promise<void> {
    return this.#guard(() => {
      this.#makeDirectory(path);
      return Promise.resolve();
    });
  }

  writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#guard(async () => {
      this.#makeDirectory(path.slice(0, Math.max(0, path.lastIndexOf('/'))));
      const file = await open(join(this.#draft, path), 'wx', 0o600);
      try {
        for await (const chunk of content) await file.writeFile(chunk);
        await file.utimes(TIME_S, TIME_S);
        await file.sync();
      } finally {
        await file.close();
      }
    });
  }

  async finish(): Promise<void> {
    await this.#guard(async () => {
      // Deepest first: creating an entry changes the time of its directory.
      for (const path of [...this.#directories].reverse()) await syncDated(join(this.#draft, path));
    });
    try {
      // Claims the name first: renaming a folder replaces an empty one, so that one must be ours.
      await mkdir(this.#target, { mode: 0o700 });
    } catch (error) {
      throw errorCode(error) === 'EEXIST' ? existsError(this.#target) : unwritableError(this.#target, error);
    }
    await this.#guard(async () => {
      try {
        await rename(this.#draft, this.#target);
      } catch (error) {
        // Releases the claim. If the folder is not empty any more, another program uses it.
        await rmdir(this.#target).catch(() => undefined);
        throw error;
      }
      await fsyncDirectory(dirname(this.#target));
    });
  }

  async discard(): Promise<void> {
    await rm(this.#draft, { recursive: true, force: true });
  }

  #makeDirectory(path: string): void {
    if (this.#directories.has(path)) return;
    const at = path.lastIndexOf('/');
    this.#makeDirectory(at === -1 ? '' : path.slice(0, at));
    mkdirSync(join(this.#draft, path), { mode: 0o700 });
    this.#directories.add(path);
  }

  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // Errors of the content source are rethrown unchanged, unless they are errors of the operating system too.
      throw errorCode(error).startsWith('E') ? unwritableError(this.#target, error) : error;
    }
  }
}

async function syncDated(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.utimes(TIME_S, TIME_S);
    await directory.sync();
  } finally {
    await directory.close();
  }
}

const existsError = (target: string): BagError =>
  new BagError({ code: 'BAG_EXISTS', message: `${target} is there already: nothing is written over` });

const unwritableError = (target: string, cause: unknown): BagError =>
  new BagError({ code: 'BAG_UNWRITABLE', message: `${target} cannot be written: ${errorCode(cause)}`, cause });
