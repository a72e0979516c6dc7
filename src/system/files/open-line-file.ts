import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { UsageError, usageError } from '../../core/errors.js';
import type { BoundaryLineLimits, BoundaryLines, LineFile, LinePlace } from '../../engine/ports/ledger/line-file.js';
import { errorCode } from '../error-code.js';
import { NotAFile, openRegular, readPieces } from './open-file.js';

const NEWLINE = 0x0a;
const LINE_BYTES_MAX = 256 * 1024 * 1024;

type FileLine = { readonly bytes: Uint8Array; readonly place: LinePlace };

/** @throws UsageError if the file does not exist, is not a regular file, or cannot be read */
export async function openLineFile(path: string): Promise<LineFile> {
  const file = await openRegular(path).catch((error: unknown) => {
    if (error instanceof NotAFile) throw usageError(error.message);
    throw usageError(`${path}: ${errorCode(error) === 'ENOENT' ? 'there is no such file' : 'it cannot be read'}`);
  });
  return {
    lines: (lineMax = LINE_BYTES_MAX) => linesOf(file, path, lineMax),
    boundaryLines: (limits) => readBoundaryLines(file, path, limits),
    sha256Before: async (end) => {
      const hash = createHash('sha256');
      for await (const piece of readPieces(file, 0, end)) hash.update(piece);
      return hash.digest('hex');
    },
    read: async ({ offset, length }) => {
      const bytes = Buffer.alloc(length);
      const { bytesRead } = await file.read(bytes, 0, length, offset);
      return bytes.subarray(0, bytesRead);
    },
    close: () => file.close(),
  };
}

async function* linesOf(file: FileHandle, path: string, lineMax: number): AsyncGenerator<FileLine> {
  let [offset, length] = [0, 0];
  let parts: Buffer[] = [];
  for await (const piece of readPieces(file)) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
      parts.push(piece.subarray(start, end));
      length += end - start;
      yield { bytes: Buffer.concat(parts), place: { offset, length } };
      offset += length + 1;
      [parts, length, start] = [[], 0, end + 1];
    }
    // A copy: the next piece uses the same buffer.
    if (start < piece.length) parts.push(Buffer.from(piece.subarray(start)));
    length += piece.length - start;
    if (length > lineMax) throw tooLongError(path, lineMax);
  }
  if (length > 0) throw usageError(`${path}: it ends in the middle of a line`);
}

async function readBoundaryLines(
  file: FileHandle,
  path: string,
  { firstMax, lastMax }: BoundaryLineLimits,
): Promise<BoundaryLines | null> {
  const { size } = await file.stat();
  if (size === 0) return null;
  const first = await firstLine(file, Math.min(size, firstMax + 1));
  if (first === null)
    throw size > firstMax ? tooLongError(path, firstMax) : usageError(`${path}: it ends in the middle of a line`);
  const from = Math.max(0, size - lastMax - 2);
  const tail = Buffer.alloc(size - from);
  const { bytesRead } = await file.read(tail, 0, tail.length, from);
  if (bytesRead !== tail.length || tail.at(-1) !== NEWLINE)
    throw usageError(`${path}: it ends in the middle of a line`);
  const at = tail.lastIndexOf(NEWLINE, -2);
  if (at === -1 && from > 0) throw tooLongError(path, lastMax);
  const lastOffset = from + at + 1;
  return lastOffset === 0 ? null : { first, last: tail.subarray(at + 1, -1), lastOffset };
}

async function firstLine(file: FileHandle, bytes: number): Promise<Uint8Array | null> {
  const head = Buffer.alloc(bytes);
  const { bytesRead } = await file.read(head, 0, bytes, 0);
  const end = head.subarray(0, bytesRead).indexOf(NEWLINE);
  return end === -1 ? null : head.subarray(0, end);
}

const tooLongError = (path: string, max: number): UsageError => usageError(`${path}: a line of more than ${max} bytes`);
