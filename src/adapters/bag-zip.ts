// A bag as a .zip file, to read. Of the two places in which an archive says what it holds, both must agree; nothing is
// ever written to disk, so that a name can lead nowhere; and what grows when it is opened is stopped.

import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import yauzl from 'yauzl';
import { BagError } from '../errors.js';
import type { BagTree, TreeEntry, TreeRefusal } from '../ports/bag-tree.js';
import { errnoOf } from './sandbox-walk.js';

export const ZIP_LIMITS = {
  entries_max: 250_000,
  name_bytes_max: 4_096,
  /** Uncompressed to compressed. Text that repeats itself comes to a hundred. */
  ratio_max: 250,
  /** Up to here any ratio will do. */
  ratio_free_bytes: 1_048_576,
} as const satisfies Record<string, number>;
export type ZipLimits = { readonly [Name in keyof typeof ZIP_LIMITS]: number };

const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 0x41;
/** An extra field with another name for the same thing. */
const UNICODE_PATH = 0x7075;
const LOCAL_HEADER_BYTES = 30;
const PIECE_BYTES = 65_536;

/** What is kept of an entry. */
interface Item {
  readonly offset: number;
  readonly compressed: number;
  readonly bytes: number;
  readonly method: number;
}

/** @throws BagError BAG_UNREADABLE when there is no zip file */
export async function openBagZip(path: string, limits: Partial<ZipLimits> = {}): Promise<BagTree> {
  let fd: number | null = null;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw unreadable(path, 'it is no file');
    const zip = await yauzl.fromFdPromise(fd, { autoClose: false, decodeStrings: false, validateEntrySizes: true });
    // What it tells beside the answers to our calls is of no use: it is about closing.
    zip.on('error', () => undefined);
    return new ZipTree(path, zip, stats.size, { ...ZIP_LIMITS, ...limits });
  } catch (error) {
    if (fd !== null) closeSync(fd);
    throw error instanceof BagError ? error : unreadable(path, messageOf(error), error);
  }
}

/** SHA-256 of the file as it is, in lower-case hex. @throws BagError BAG_UNREADABLE */
export async function hashBagZip(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    try {
      // One buffer for all pieces: an archive may be far larger than what memory should hold of it.
      const buffer = Buffer.allocUnsafe(PIECE_BYTES);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, PIECE_BYTES, null);
        if (bytesRead === 0) return hash.digest('hex');
        hash.update(buffer.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    throw unreadable(path, messageOf(error), error);
  }
}

class ZipTree implements BagTree {
  readonly #path: string;
  readonly #zip: yauzl.ZipFile;
  readonly #archiveBytes: number;
  readonly #limits: ZipLimits;
  readonly #items = new Map<string, Item>();
  /** The one directory in which a zipped bag stands (RFC 8493 4), with a slash; empty when it stands in none. */
  #base = '';
  #listed: Promise<readonly TreeEntry[]> | null = null;

  constructor(path: string, zip: yauzl.ZipFile, archiveBytes: number, limits: ZipLimits) {
    this.#path = path;
    this.#zip = zip;
    this.#archiveBytes = archiveBytes;
    this.#limits = limits;
  }

  async *entries(): AsyncGenerator<TreeEntry> {
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
    if (item === undefined) throw unreadable(this.#path, `it has no entry ${name}`);
    try {
      const start = await this.#startOf(name, item);
      for await (const chunk of await this.#open(start, item)) yield chunk as Uint8Array;
    } catch (error) {
      throw error instanceof BagError ? error : hostile(this.#path, `${name}: ${messageOf(error)}`, error);
    }
  }

  close(): Promise<void> {
    this.#zip.close();
    return Promise.resolve();
  }

  async #list(): Promise<readonly TreeEntry[]> {
    if (this.#zip.entryCount > this.#limits.entries_max) {
      throw hostile(this.#path, `it has more than ${this.#limits.entries_max} entries`);
    }
    const listed: TreeEntry[] = [];
    const directories = new Set<string>();
    let compressed = 0;
    try {
      for await (const entry of this.#zip.eachEntry()) {
        compressed += entry.compressedSize + LOCAL_HEADER_BYTES;
        // More than there is: entries lie over one another, and grow out of the same bytes.
        if (compressed > this.#archiveBytes) throw hostile(this.#path, 'its entries overlap');
        listed.push(this.#take(entry, directories));
      }
    } catch (error) {
      throw error instanceof BagError ? error : hostile(this.#path, messageOf(error), error);
    }
    return listed.map((entry) =>
      entry.kind === 'file' && directories.has(entry.path) ? refusal(entry.path, 'duplicate_name') : entry,
    );
  }

  #take(entry: yauzl.Entry, directories: Set<string>): TreeEntry {
    const name = nameOf(entry);
    if (name === null) return refusal(entry.fileNameRaw.toString('latin1'), 'name_unfit');
    const isDirectory = name.endsWith('/');
    const path = isDirectory ? name.slice(0, -1) : name;
    const reason = this.#unfitness(entry, path, isDirectory);
    if (reason !== null) return refusal(path, reason);
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) directories.add(path.slice(0, at));
    if (isDirectory) {
      directories.add(path);
      return { kind: 'directory', path };
    }
    if (this.#items.has(path)) return refusal(path, 'duplicate_name');
    const { relativeOffsetOfLocalHeader: offset, compressedSize, uncompressedSize, compressionMethod } = entry;
    this.#items.set(path, { offset, compressed: compressedSize, bytes: uncompressedSize, method: compressionMethod });
    return { kind: 'file', path, bytes: uncompressedSize };
  }

  #unfitness(entry: yauzl.Entry, path: string, isDirectory: boolean): TreeRefusal | null {
    if (entry.fileNameLength > this.#limits.name_bytes_max || leadsOutside(path)) return 'name_unfit';
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

  /** Where the data begins, if what stands before it agrees with the directory of the archive. */
  async #startOf(name: string, item: Item): Promise<number> {
    const header = await this.#zip.readLocalFileHeaderPromise(entryOf(item));
    const local = decode(header.fileName);
    const agrees = local === name && header.compressionMethod === item.method;
    if (!agrees || (header.generalPurposeBitFlag & ENCRYPTED) !== 0) {
      throw hostile(this.#path, `it contradicts itself about ${name}`);
    }
    return header.fileDataStart;
  }

  #open(start: number, { compressed, bytes, method }: Item): Promise<NodeJS.ReadableStream> {
    // Not the promise form of the library (3.4.0): it calls another function, with arguments that do not fit.
    return new Promise((resolve, reject) => {
      this.#zip.openReadStreamLowLevel(
        start,
        compressed,
        0,
        compressed,
        method === DEFLATED,
        bytes,
        (error, stream) => {
          if (error === null) resolve(stream);
          else reject(error);
        },
      );
    });
  }
}

/** The little of an entry that reading its local header takes. */
function entryOf({ offset, compressed }: Item): yauzl.Entry {
  return Object.assign(new yauzl.Entry(), { relativeOffsetOfLocalHeader: offset, compressedSize: compressed });
}

/** If all stands in one directory, and bagit.txt is not beside it, then the bag is this directory. */
function baseOf(listed: readonly TreeEntry[]): string {
  const entries = listed.filter(({ kind }) => kind !== 'refused');
  const first = entries[0]?.path.split('/')[0] ?? '';
  const base = `${first}/`;
  const all = entries.every(({ path, kind }) => path.startsWith(base) || (path === first && kind === 'directory'));
  return all && first !== '' ? base : '';
}

const nameOf = (entry: yauzl.Entry): string | null => decode(entry.fileNameRaw);

/** UTF-8, whether the archive has the flag for it or not: many tools forget it. Null for anything else. */
function decode(bytes: Buffer): string | null {
  const text = bytes.toString('utf8');
  return text.includes('\ufffd') || text.includes('\0') ? null : text;
}

const leadsOutside = (path: string): boolean =>
  path === '' ||
  path.includes('\\') ||
  /^(?:\/|~|[A-Za-z]:)/.test(path) ||
  path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..');

const refusal = (path: string, reason: TreeRefusal): TreeEntry => ({ kind: 'refused', path, reason });

const messageOf = (error: unknown): string =>
  errnoOf(error) ?? (error instanceof Error ? error.message : 'it is no archive');

const hostile = (path: string, why: string, cause?: unknown): BagError =>
  new BagError({ code: 'BAG_HOSTILE', message: `${path}: ${why}`, cause });

const unreadable = (path: string, why: string, cause?: unknown): BagError =>
  new BagError({ code: 'BAG_UNREADABLE', message: `${path} cannot be read: ${why}`, cause });
