// The only way to open a file for reading that this process did not just create: a path from a caller, or a path in a
// home directory, a bag or a bundle. It may be of any kind. Opening a FIFO waits for its other end, and opening a
// device can trigger an action, so neither is opened.

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import { lstat, open, stat, type FileHandle } from 'node:fs/promises';

// A FIFO can replace the file between the check and the opening: without O_NONBLOCK, opening it waits for a writer.
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const PIECE_BYTES = 262_144;

/** The path is not a regular file. */
export class NotAFile extends Error {
  constructor(path: string) {
    super(`${path} is not a regular file: name a file that is one`);
  }
}

interface OpenOptions {
  /** Further flags of open(2), for example O_NOFOLLOW: then a symbolic link fails with ELOOP. */
  readonly flags?: number;
}

/**
 * Opens a regular file for reading.
 * @returns its descriptor, which the caller closes
 * @throws NotAFile for a FIFO, socket, device or folder; errors of the operating system
 */
export function openRegularSync(path: string, { flags = 0 }: OpenOptions = {}): number {
  const follows = (flags & constants.O_NOFOLLOW) === 0;
  const there = follows ? statSync(path) : lstatSync(path);
  if (!there.isFile() && !there.isSymbolicLink()) throw new NotAFile(path);
  const descriptor = openSync(path, READ | flags);
  try {
    if (!fstatSync(descriptor).isFile()) throw new NotAFile(path);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/**
 * Checks a path that a library will open by itself. It need not exist.
 * @throws NotAFile if it exists and is not a regular file
 */
export function refuseSpecialFile(path: string): void {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) throw new NotAFile(path);
}

/** Like `openRegularSync`, as a FileHandle. @throws NotAFile; errors of the operating system */
export async function openRegular(path: string, { flags = 0 }: OpenOptions = {}): Promise<FileHandle> {
  const follows = (flags & constants.O_NOFOLLOW) === 0;
  const there = follows ? await stat(path) : await lstat(path);
  if (!there.isFile() && !there.isSymbolicLink()) throw new NotAFile(path);
  const file = await open(path, READ | flags);
  try {
    if (!(await file.stat()).isFile()) throw new NotAFile(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Reads a whole file of at most `bytesMax` bytes.
 * @throws NotAFile; RangeError for a larger file; errors of the operating system
 */
export async function readRegular(path: string, bytesMax: number): Promise<Buffer> {
  const file = await openRegular(path);
  try {
    const { size } = await file.stat();
    if (size > bytesMax) throw new RangeError(`${path} is larger than ${bytesMax} bytes`);
    const bytes = Buffer.alloc(size);
    let length = 0;
    while (length < size) {
      const { bytesRead } = await file.read(bytes, length, size - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
}

/** Like `readRegular`, synchronously. @throws like `readRegular` */
export function readRegularSync(path: string, bytesMax: number): Buffer {
  const descriptor = openRegularSync(path);
  try {
    const { size } = fstatSync(descriptor);
    if (size > bytesMax) throw new RangeError(`${path} is larger than ${bytesMax} bytes`);
    const bytes = Buffer.alloc(size);
    let length = 0;
    while (length < size) {
      const read = readSync(descriptor, bytes, length, size - length, length);
      if (read === 0) break;
      length += read;
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** Reads an open file in pieces, from `start` up to `end` (exclusive). All pieces share one buffer. */
export async function* readPieces(file: FileHandle, start = 0, end = Infinity): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let at = start; at < end;) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(PIECE_BYTES, end - at), at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
