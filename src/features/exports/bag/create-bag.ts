// Writes a bag as a folder or as a .zip file: first a draft, which then gets its name atomically.

import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { link, mkdir, mkdtemp, open, rename, rm, rmdir, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { BagError, usageError } from '../../../core/errors.js';
import type { BagSink } from '../../../engine/ports/bag-tree.js';
import { errorCode } from '../../../system/error-code.js';
import { fsyncDirectory } from '../../../system/files/fsync-directory.js';
import {
  centralHeader,
  endRecords,
  localHeader,
  localHeaderBytes,
  ZIP_FILE_BYTES_MAX,
  type ZipRecord,
} from './zip-format.js';

/** 1980-01-01 UTC, as in a .zip file: the time of writing has no meaning for the content. */
const TIME_S = 315_532_800;
/** The name of the private folder of a draft, next to its target. */
const DRAFT_PREFIX = '.bag-partial-';

/** Creates a sink. @throws BagError BAG_EXISTS if the path exists, BAG_UNWRITABLE if its parent does not */
export function createBagFolder(folder: string): BagSink {
  const target = resolve(folder);
  if (existsSync(target)) throw existsError(target);
  try {
    return new FolderSink(target, mkdtempSync(join(dirname(target), DRAFT_PREFIX)));
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

/**
 * Creates a sink. `base` is the one directory in the archive that contains the bag (RFC 8493 4); default: the file
 * name.
 * @throws UsageError if `base` is not a plain name
 * @throws BagError BAG_EXISTS if the path exists, BAG_UNWRITABLE if its parent does not
 */
export async function createBagZip(path: string, base = basename(path).replace(/\.zip$/i, '')): Promise<BagSink> {
  if (!/^[^/\\~\0-\x1f\x7f][^/\\\0-\x1f\x7f]*$/.test(base) || base === '.' || base === '..') {
    throw usageError(`${JSON.stringify(base)} cannot be the directory of a bag`);
  }
  const target = resolve(path);
  if (existsSync(target)) throw existsError(target);
  try {
    const folder = await mkdtemp(join(dirname(target), DRAFT_PREFIX));
    return new ZipSink({ target, folder, base, file: await open(join(folder, 'bag.zip'), 'wx', 0o600) });
  } catch (error) {
    throw unwritableError(target, error);
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
    return guardWriting(this.#target, () => {
      this.#makeDirectory(path);
      return Promise.resolve();
    });
  }

  writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    return guardWriting(this.#target, async () => {
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
    await guardWriting(this.#target, async () => {
      // Deepest first: creating an entry changes the time of its directory.
      for (const path of [...this.#directories].reverse()) await syncDated(join(this.#draft, path));
    });
    try {
      // Claims the name first: renaming a folder replaces an empty one, so that one must be ours.
      await mkdir(this.#target, { mode: 0o700 });
    } catch (error) {
      throw takenOrUnwritableError(this.#target, error);
    }
    await guardWriting(this.#target, async () => {
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

/** Size of the pieces in which the central directory is written. */
const PIECE_BYTES = 65_536;

interface ZipDraft {
  readonly target: string;
  /** A private folder next to the target. */
  readonly folder: string;
  readonly base: string;
  readonly file: FileHandle;
}

class ZipSink implements BagSink {
  readonly #draft: ZipDraft;
  readonly #records: ZipRecord[] = [];
  #end = 0;
  #closed = false;

  constructor(draft: ZipDraft) {
    this.#draft = draft;
  }

  writeDirectory(path: string): Promise<void> {
    return guardWriting(this.#draft.target, () =>
      this.#finishRecord({ name: `${this.#draft.base}/${path}/`, crc: 0, bytes: 0 }),
    );
  }

  writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    return guardWriting(this.#draft.target, async () => {
      const name = `${this.#draft.base}/${path}`;
      const start = this.#end + localHeaderBytes(name);
      let [crc, bytes] = [0, 0];
      for await (const chunk of content) {
        if (bytes + chunk.length > ZIP_FILE_BYTES_MAX) throw tooLargeError(path);
        await this.#write(chunk, start + bytes);
        crc = crc32(chunk, crc);
        bytes += chunk.length;
      }
      await this.#finishRecord({ name, crc, bytes });
    });
  }

  async finish(): Promise<void> {
    const { file, folder, target } = this.#draft;
    await guardWriting(target, async () => {
      await this.#writeCentralDirectory();
      await file.sync();
      await this.#close();
    });
    try {
      // Unlike a rename, a link never replaces an existing file.
      await link(join(folder, 'bag.zip'), target);
    } catch (error) {
      throw takenOrUnwritableError(target, error);
    }
    await guardWriting(target, async () => {
      await rm(folder, { recursive: true });
      await fsyncDirectory(dirname(target));
    });
  }

  async discard(): Promise<void> {
    await this.#close();
    await rm(this.#draft.folder, { recursive: true, force: true });
  }

  /** Writes the header after the content that follows it in the file, when its fields are known. */
  async #finishRecord(record: Omit<ZipRecord, 'offset'>): Promise<void> {
    const header = localHeader(record);
    await this.#write(header, this.#end);
    this.#records.push({ ...record, offset: this.#end });
    this.#end += header.length + record.bytes;
  }

  async #writeCentralDirectory(): Promise<void> {
    const offset = this.#end;
    let piece: Buffer[] = [];
    let length = 0;
    const flush = async (): Promise<void> => {
      await this.#write(Buffer.concat(piece), this.#end);
      this.#end += length;
      [piece, length] = [[], 0];
    };
    for (const record of this.#records) {
      const header = centralHeader(record);
      piece.push(header);
      length += header.length;
      if (length >= PIECE_BYTES) await flush();
    }
    await flush();
    const directory = { entries: this.#records.length, offset, bytes: this.#end - offset };
    await this.#write(endRecords(directory), this.#end);
  }

  async #write(bytes: Uint8Array, at: number): Promise<void> {
    for (let from = 0; from < bytes.length;) {
      const { bytesWritten } = await this.#draft.file.write(bytes, from, bytes.length - from, at + from);
      from += bytesWritten;
    }
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#draft.file.close();
  }
}

async function guardWriting(target: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // Errors of the content source are rethrown unchanged, unless they are errors of the operating system too.
    throw errorCode(error).startsWith('E') ? unwritableError(target, error) : error;
  }
}

const takenOrUnwritableError = (target: string, error: unknown): BagError =>
  errorCode(error) === 'EEXIST' ? existsError(target) : unwritableError(target, error);

const existsError = (target: string): BagError =>
  new BagError({ code: 'BAG_EXISTS', message: `${target} is there already: nothing is written over` });

const tooLargeError = (path: string): BagError =>
  new BagError({ code: 'BAG_UNWRITABLE', message: `${path} is too large for a .zip file: write a folder` });

const unwritableError = (target: string, cause: unknown): BagError =>
  new BagError({ code: 'BAG_UNWRITABLE', message: `${target} cannot be written: ${errorCode(cause)}`, cause });
