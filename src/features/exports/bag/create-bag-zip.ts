// Writes a bag as a .zip file: first a draft, which then gets its name atomically.

import { existsSync } from 'node:fs';
import { link, mkdtemp, open, rm, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { BagError, usageError } from '../../../core/errors.js';
import type { BagSink } from '../../../engine/ports/bag-tree.js';
import { errorCode } from '../../../system/error-code.js';
import { centralHeader, endRecords, localHeader, localHeaderBytes, ZIP_FILE_BYTES_MAX } from './zip-format.js';
import type { ZipRecord } from './zip-format.js';
import { fsyncDirectory } from '../../../system/files/fsync-directory.js';

/** Size of the pieces in which the central directory is written. */
const PIECE_BYTES = 65_536;

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
    const folder = await mkdtemp(join(dirname(target), '.bag-partial-'));
    return new ZipSink({ target, folder, base, file: await open(join(folder, 'bag.zip'), 'wx', 0o600) });
  } catch (error) {
    throw unwritableError(target, error);
  }
}

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
    return this.#guard(() => this.#finishRecord({ name: `${this.#draft.base}/${path}/`, crc: 0, bytes: 0 }));
  }

  writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#guard(async () => {
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
    await this.#guard(async () => {
      await this.#writeCentralDirectory();
      await file.sync();
      await this.#close();
    });
    try {
      // Unlike a rename, a link never replaces an existing file.
      await link(join(folder, 'bag.zip'), target);
    } catch (error) {
      throw errorCode(error) === 'EEXIST' ? existsError(target) : unwritableError(target, error);
    }
    await this.#guard(async () => {
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

  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // Errors of the content source are rethrown unchanged, unless they are errors of the operating system too.
      throw errorCode(error).startsWith('E') ? unwritableError(this.#draft.target, error) : error;
    }
  }
}

const existsError = (target: string): BagError =>
  new BagError({ code: 'BAG_EXISTS', message: `${target} is there already: nothing is written over` });

const tooLargeError = (path: string): BagError =>
  new BagError({ code: 'BAG_UNWRITABLE', message: `${path} is too large for a .zip file: write a folder` });

const unwritableError = (target: string, cause: unknown): BagError =>
  new BagError({ code: 'BAG_UNWRITABLE', message: `${target} cannot be written: ${errorCode(cause)}`, cause });
