// Reads the content of one entry of a .zip file and checks it against its headers.

import { Readable } from 'node:stream';
import { crc32, createInflateRaw, inflateRawSync } from 'node:zlib';
import { LayoutError, type FileWindow } from './zip-layout.js';

export const STORED = 0;
export const DEFLATED = 8;

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
