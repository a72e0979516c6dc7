// Compresses HTTP responses.

import { pipeline, Readable } from 'node:stream';
import { constants, createGzip, gzip, gzipSync } from 'node:zlib';
import { promisify } from 'node:util';

/** Below this size, compression saves little and delays the response. */
export const COMPRESSED_BYTES_MIN = 4_096;
/** gzip level for responses that are compressed once; runs in the thread pool. */
const LEVEL = 3;

const gzipAsync = promisify<Uint8Array, { readonly level: number }, Buffer>(gzip);

/** Compresses one response. */
export const compress = (bytes: Uint8Array): Promise<Uint8Array> => gzipAsync(bytes, { level: LEVEL });

/** Compresses pieces as they are produced. When the reader stops, the source is closed too. */
export function compressPieces(pieces: AsyncIterable<string>): AsyncIterable<Uint8Array> {
  const gzip = createGzip({ level: LEVEL });
  // Errors are thrown where the compressed pieces are read.
  pipeline(Readable.from(pieces, { highWaterMark: 1 }), gzip, () => undefined);
  return gzip as AsyncIterable<Uint8Array>;
}

/** Compresses a response that is sent many times, at the best level. @returns null if it does not become smaller */
export function compressBest(bytes: Uint8Array): Uint8Array | null {
  const less = gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION });
  return less.byteLength < bytes.byteLength ? less : null;
}

/** Whether a request with this Accept-Encoding header accepts gzip. An invalid header accepts nothing. */
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
