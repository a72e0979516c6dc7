// Answers packed for the way: the only file that compresses.

import { pipeline, Readable } from 'node:stream';
import { constants, createGzip, gzip, gzipSync } from 'node:zlib';
import { promisify } from 'node:util';

/** Below it, a packed answer is hardly less, and comes later. */
export const COMPRESSED_BYTES_MIN = 4_096;
/** Of what is packed for one reader, at once; beside the thread that answers. */
const LEVEL = 3;

const gzipAsync = promisify<Uint8Array, { readonly level: number }, Buffer>(gzip);

/** Packs what is made for one answer. */
export const compress = (bytes: Uint8Array): Promise<Uint8Array> => gzipAsync(bytes, { level: LEVEL });

/** Packs pieces as they are made. Where the reader ends, so does what makes them. */
export function compressPieces(pieces: AsyncIterable<string>): AsyncIterable<Uint8Array> {
  const gzip = createGzip({ level: LEVEL });
  // An error is thrown where the packed pieces are read.
  pipeline(Readable.from(pieces, { highWaterMark: 1 }), gzip, () => undefined);
  return gzip as AsyncIterable<Uint8Array>;
}

/** Packs what is answered again and again, as well as it can be; null where it does not become less. */
export function compressBest(bytes: Uint8Array): Uint8Array | null {
  const less = gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION });
  return less.byteLength < bytes.byteLength ? less : null;
}

/** Whether whoever sends this Accept-Encoding takes gzip. What is no such header names nothing. */
export function isGzipAccepted(header: string | readonly string[] | undefined): boolean {
  if (typeof header !== 'string') return false;
  const quality = new Map<string, number>();
  for (const part of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((one) => one.trim());
    const [, q = '1'] = /^q=([01](?:\.\d{0,3})?)$/.exec(parameters.join(';')) ?? [];
    if (parameters.length === 0 || /^q=/.test(parameters.join(';'))) quality.set(name, Number(q));
  }
  return (quality.get('gzip') ?? quality.get('x-gzip') ?? quality.get('*') ?? 0) > 0;
}
