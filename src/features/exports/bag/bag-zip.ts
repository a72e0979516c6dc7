// Reads a bag in a .zip file. An archive describes its entries twice: both must agree, and every byte of the file must
// be part of an entry (zip-layout.ts). Nothing is written to disk, so no name can lead outside; and decompression is
// limited.

import { closeSync, constants } from 'node:fs';
import { Readable } from 'node:stream';
import yauzl from 'yauzl';
import { BagError } from '../../../core/errors.js';
import type { BagTree, BagTreeEntry, BagTreeProblem } from '../../../engine/ports/bag-tree.js';
import { hashFile } from '../../../system/files/hash-file.js';
import { openRegularSync } from '../../../system/files/open-file.js';
import { errnoOf } from '../../../sandbox/files/sandbox-walk.js';
import { checkLayout, FileWindow, type ListedEntry, LayoutError } from './zip-layout.js';
import { crc32, createInflateRaw, inflateRawSync } from 'node:zlib';

export const ZIP_LIMITS = {
  entries_max: 110_000,
  /** Of the central directory, which is read as a whole. */
  directory_bytes_max: 67_108_864,
  name_bytes_max: 4_096,
  /** Uncompressed size divided by compressed size. Repetitive text reaches a hundred. */
  ratio_max: 250,
  /** Up to this uncompressed size any ratio is accepted. */
  ratio_free_bytes: 1_048_576,
  /** The same for all entries together, relative to the whole file: decompression takes time, too. */
  total_ratio_max: 50,
  total_ratio_free_bytes: 134_217_728,
} as const satisfies Record<string, number>;
export type ZipLimits = { readonly [Name in keyof typeof ZIP_LIMITS]: number };

export const STORED = 0;
export const DEFLATED = 8;
const ENCRYPTED = 0x41;
/** An extra field with another name for the same entry. */
const UNICODE_PATH = 0x7075;
/** Opens a .zip file. @throws BagError BAG_UNREADABLE if it is not one or cannot be read */
export async function openBagZip(path: string, limits: Partial<ZipLimits> = {}): Promise<BagTree> {
  let fd: number | null = null;
  try {
    fd = openRegularSync(path);
    const file = new FileWindow(fd);
    const zip = await yauzl.fromRandomAccessReaderPromise(new WindowReader(file), file.size, {
      autoClose: false,
      decodeStrings: false,
      validateEntrySizes: true,
    });
    // Errors of our calls are rejections; this event only reports problems of closing.
    zip.on('error', () => undefined);
    return new ZipTree({ path, zip, fd, file }, { ...ZIP_LIMITS, ...limits });
  } catch (error) {
    if (fd !== null) closeSync(fd);
    throw error instanceof BagError ? error : unreadableError(path, messageOf(error), error);
  }
}

/** SHA-256 of the file, in lower-case hex. @throws BagError BAG_UNREADABLE */
export async function hashBagZip(path: string): Promise<string> {
  try {
    return await hashFile(path);
  } catch (error) {
    throw unreadableError(path, messageOf(error), error);
  }
}

/** Lets yauzl read through the buffer: it reads the directory in pieces of about 50 bytes. */
class WindowReader extends yauzl.RandomAccessReader {
  readonly #file: FileWindow;

  constructor(file: FileWindow) {
    super();
    this.#file = file;
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null, bytesRead: number) => void,
  ): void {
    let read = 0;
    try {
      read = this.#file.at(position, length).copy(buffer, offset);
    } catch (error) {
      queueMicrotask(() => {
        callback(error instanceof Error ? error : new Error(String(error)), 0);
      });
      return;
    }
    queueMicrotask(() => {
      callback(null, read);
    });
  }

  override _readStreamForRange(): Readable {
    return Readable.from([]);
  }
}

interface OpenZip {
  readonly path: string;
  readonly zip: yauzl.ZipFile;
  readonly fd: number;
  readonly file: FileWindow;
}

class ZipTree implements BagTree {
  readonly #open: OpenZip;
  readonly #limits: ZipLimits;
  readonly #items = new Map<string, ZipItem>();
  /** The one directory that contains a zipped bag (RFC 8493 4), with a slash; else empty. */
  #base = '';
  #listed: Promise<readonly BagTreeEntry[]> | null = null;
  #closed = false;

  constructor(open: OpenZip, limits: ZipLimits) {
    this.#open = open;
    this.#limits = limits;
  }

  async *entries(): AsyncGenerator<BagTreeEntry> {
    this.#listed ??= this.#list();
    const listed = await this.#listed;
    this.#base = baseOf(listed);
    for (const entry of listed) {
      const path = entry.path.startsWith(this.#base) ? entry.path.slice(this.#base.length) : entry.path;
      if (path !== '' || entry.kind === 'refused') yield { ...entry, path };
    }
  }

  async *read(path: string): AsyncGenerator<Uint8Array> {
    const name = this.#base + path;
    const item = this.#items.get(name);
    if (item === undefined) throw unreadableError(this.#open.path, `it has no entry ${name}`);
    try {
      yield* readZipContent(this.#open.file, item);
    } catch (error) {
      throw error instanceof BagError ? error : hostileError(this.#open.path, `${name}: ${messageOf(error)}`, error);
    }
  }

  close(): Promise<void> {
    if (!this.#closed) closeSync(this.#open.fd);
    this.#closed = true;
    return Promise.resolve();
  }

  async #list(): Promise<readonly BagTreeEntry[]> {
    const { zip, path, file } = this.#open;
    if (zip.entryCount > this.#limits.entries_max) {
      throw hostileError(path, `it has more than ${this.#limits.entries_max} entries`);
    }
    const start = cursorOf(zip);
    if (file.size - start > this.#limits.directory_bytes_max) throw hostileError(path, 'its directory is too large');
    const { total_ratio_max, total_ratio_free_bytes } = this.#limits;
    const bytesMax = Math.max(total_ratio_free_bytes, total_ratio_max * file.size);
    let bytes = 0;
    const raw: ListedEntry[] = [];
    const listed: BagTreeEntry[] = [];
    const directories = new Set<string>();
    const names = new Map<string, number>();
    try {
      for await (const entry of zip.eachEntry()) {
        const found = this.#classify(entry, { names, directories });
        if (found.kind === 'file') names.set(found.path, raw.length);
        raw.push(listedEntry(entry));
        listed.push(found);
        bytes += entry.uncompressedSize;
        if (bytes > bytesMax) throw hostileError(path, 'its entries would grow too much');
      }
      const place = { start, end: cursorOf(zip), entries: raw.length };
      const starts = checkLayout(file, raw, place);
      for (const [name, index] of names) this.#items.set(name, itemOf(raw[index], starts[index] ?? 0));
    } catch (error) {
      throw error instanceof BagError ? error : hostileError(path, messageOf(error), error);
    }
    return listed.map((entry) =>
      entry.kind === 'file' && directories.has(entry.path) ? refusedEntry(entry.path, 'duplicate_name') : entry,
    );
  }

  #classify(entry: yauzl.Entry, { names, directories }: ListedNames): BagTreeEntry {
    const name = decodeName(entry.fileNameRaw);
    if (name === null) return refusedEntry(entry.fileNameRaw.toString('latin1'), 'name_unfit');
    const isDirectory = name.endsWith('/');
    const path = isDirectory ? name.slice(0, -1) : name;
    const reason = this.#problemOf(entry, path, isDirectory);
    if (reason !== null) return refusedEntry(path, reason);
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) directories.add(path.slice(0, at));
    if (isDirectory) {
      directories.add(path);
      return { kind: 'directory', path };
    }
    if (names.has(path)) return refusedEntry(path, 'duplicate_name');
    return { kind: 'file', path, bytes: entry.uncompressedSize };
  }

  #problemOf(entry: yauzl.Entry, path: string, isDirectory: boolean): BagTreeProblem | null {
    if (entry.fileNameLength > this.#limits.name_bytes_max || isOutside(path)) return 'name_unfit';
    if ((entry.generalPurposeBitFlag & ENCRYPTED) !== 0) return 'encrypted';
    const kind = (entry.externalFileAttributes >>> 16) & constants.S_IFMT;
    if (kind === constants.S_IFLNK) return 'symlink';
    if (kind !== 0 && kind !== (isDirectory ? constants.S_IFDIR : constants.S_IFREG)) return 'special_file';
    const otherName = entry.extraFields.find(({ id }) => id === UNICODE_PATH);
    if (otherName !== undefined && !otherName.data.subarray(5).equals(entry.fileNameRaw)) return 'contradiction';
    if (isDirectory && entry.uncompressedSize !== 0) return 'contradiction';
    if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) return 'compression_method';
    const { ratio_max, ratio_free_bytes } = this.#limits;
    const grows =
      entry.uncompressedSize > ratio_free_bytes && entry.uncompressedSize > ratio_max * entry.compressedSize;
    return grows ? 'compression_ratio' : null;
  }
}

/** The names listed so far. */
interface ListedNames {
  readonly names: ReadonlyMap<string, number>;
  readonly directories: Set<string>;
}

/** Where yauzl reads the directory next: the start before the first entry, the end after the last one. */
const cursorOf = ({ readEntryCursor }: yauzl.ZipFile): number => Number(readEntryCursor);

const listedEntry = (entry: yauzl.Entry): ListedEntry => ({
  offset: entry.relativeOffsetOfLocalHeader,
  compressed: entry.compressedSize,
  bytes: entry.uncompressedSize,
  crc: entry.crc32,
  method: entry.compressionMethod,
  flags: entry.generalPurposeBitFlag,
  time: entry.lastModFileTime,
  date: entry.lastModFileDate,
  name: entry.fileNameRaw,
});

function itemOf(entry: ListedEntry | undefined, start: number): ZipItem {
  const { compressed = 0, bytes = 0, crc = 0, method = STORED } = entry ?? {};
  return { start, compressed, bytes, crc, method };
}

/** The directory that contains all entries, with a slash: then the bag is this directory. Else empty. */
function baseOf(listed: readonly BagTreeEntry[]): string {
  const entries = listed.filter(({ kind }) => kind !== 'refused');
  const first = entries[0]?.path.split('/')[0] ?? '';
  const base = `${first}/`;
  const all = entries.every(({ path, kind }) => path.startsWith(base) || (path === first && kind === 'directory'));
  return all && first !== '' ? base : '';
}

/** Decodes UTF-8, with or without the flag for it: many tools omit the flag. Null for anything else. */
function decodeName(bytes: Buffer): string | null {
  const text = bytes.toString('utf8');
  return text.includes('\ufffd') || text.includes('\0') ? null : text;
}

const isOutside = (path: string): boolean =>
  path === '' ||
  path.includes('\\') ||
  /^(?:\/|~|[A-Za-z]:)/.test(path) ||
  path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..');

const refusedEntry = (path: string, reason: BagTreeProblem): BagTreeEntry => ({ kind: 'refused', path, reason });

const messageOf = (error: unknown): string =>
  errnoOf(error) ?? (error instanceof Error ? error.message : 'it is no archive');

const hostileError = (path: string, why: string, cause?: unknown): BagError =>
  new BagError({ code: 'BAG_HOSTILE', message: `${path}: ${why}`, cause });

const unreadableError = (path: string, why: string, cause?: unknown): BagError =>
  new BagError({ code: 'BAG_UNREADABLE', message: `${path} cannot be read: ${why}`, cause });

// The content of one entry, which must match its headers.

const PIECE_BYTES = 65_536;
/** Entries up to this size are inflated in one call: a stream for each of many small files takes far longer. */
const SMALL_BYTES = 262_144;
const CORRUPT = 'its data is not what its header says';

/** The data of an entry that are needed to read it. */
export interface ZipItem {
  /** Offset of its data. */
  readonly start: number;
  readonly compressed: number;
  readonly bytes: number;
  readonly crc: number;
  readonly method: number;
}

/**
 * Yields the content in pieces, and reads each piece only when the caller needs it. Yields at most one piece more than
 * `bytes`.
 * @throws LayoutError if size or CRC-32 do not match, or bytes follow the data; errors of zlib
 */
export async function* readZipContent(file: FileWindow, item: ZipItem): AsyncGenerator<Uint8Array> {
  if (item.compressed <= SMALL_BYTES && item.bytes <= SMALL_BYTES) yield readWholeItem(file, item);
  else yield* streamItem(file, item);
}

function readWholeItem(file: FileWindow, { start, compressed, bytes, crc, method }: ZipItem): Uint8Array {
  const data = file.at(start, compressed);
  const content = method === DEFLATED ? inflateData(data, bytes) : Buffer.from(data);
  if (content.length !== bytes || crc32(content) !== crc) throw new LayoutError(CORRUPT);
  return content;
}

/** Inflates a whole entry. @throws if it is larger than stated, or bytes follow it */
function inflateData(data: Buffer, bytes: number): Buffer {
  const { buffer, engine } = inflateRawSync(data, { info: true, maxOutputLength: Math.max(1, bytes) }) as unknown as {
    readonly buffer: Buffer;
    readonly engine: { readonly bytesWritten: number };
  };
  if (engine.bytesWritten !== data.length) throw new LayoutError(CORRUPT);
  return buffer;
}

async function* streamItem(file: FileWindow, item: ZipItem): AsyncGenerator<Uint8Array> {
  const { compressed, bytes, crc, method } = item;
  let [length, sum, used] = [0, 0, compressed];
  const inflate = method === DEFLATED ? createInflateRaw() : null;
  const source = Readable.from(piecesOf(file, item));
  if (inflate !== null) source.on('error', (error) => inflate.destroy(error)).pipe(inflate);
  try {
    for await (const piece of (inflate ?? source) as AsyncIterable<Buffer>) {
      length += piece.length;
      if (length > bytes) throw new LayoutError(CORRUPT);
      sum = crc32(piece, sum);
      yield piece;
    }
    if (inflate !== null) used = inflate.bytesWritten;
  } finally {
    source.destroy();
    inflate?.destroy();
  }
  if (length !== bytes || sum !== crc || used !== compressed) throw new LayoutError(CORRUPT);
}

function* piecesOf(file: FileWindow, { start, compressed }: ZipItem): Generator<Buffer> {
  for (let at = 0; at < compressed; at += PIECE_BYTES) {
    yield Buffer.from(file.at(start + at, Math.min(PIECE_BYTES, compressed - at)));
  }
}
