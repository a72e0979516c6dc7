// Sends the response of a route, no faster than its client reads it.

import type { FastifyReply } from 'fastify';
import { compress, compressPieces, COMPRESSED_BYTES_MIN, isGzipAccepted } from '../../system/network/gzip.js';
import type { AdmittedWork } from '../admission/admission-controller.js';
import type { RouteResponse } from './routes/route.js';
import { writePieces } from './write-pieces.js';

export const COMMON_HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

/** Larger bodies are sent in pieces: each when the client has read the one before. In bytes. */
const PIECE_BYTES = 65_536;
/** Bytes of a response that take about one millisecond to produce. */
const BYTES_PER_MS = 100_000;

interface SendOptions {
  /** Whether large responses are compressed for clients that accept gzip. */
  readonly isCompressed: boolean;
  readonly work: AdmittedWork;
}

const BYTES_PER_CHAR_MAX = 3;

type Body = string | Uint8Array;

/** Resolves when the body has been produced. Returns no reply: Fastify would wait until the client has read it. */
export async function sendResponse(reply: FastifyReply, response: RouteResponse, options: SendOptions): Promise<void> {
  const { work } = options;
  if ('stream' in response) {
    reply.hijack();
    // A stream has limits of its own, and would hold the slot of a read for as long as its client is connected.
    work.detach();
    response.stream(reply.raw, work.background());
    return;
  }
  if ('chunks' in response) return sendChunks(reply, response, options);
  reply.code(response.status ?? 200).headers({ ...COMMON_HEADERS, ...response.headers });
  if ('json' in response) return sendBody(reply.type('application/json'), JSON.stringify(response.json), options);
  if ('bytes' in response) return sendBody(reply.type(response.type), response.bytes, options);
  void reply.send();
}

async function sendBody(reply: FastifyReply, body: Body, { isCompressed, work }: SendOptions): Promise<void> {
  if (isCompressed) void reply.header('Vary', 'Accept-Encoding');
  const length = typeof body === 'string' ? body.length : body.byteLength;
  if (!isCompressed && length * BYTES_PER_CHAR_MAX <= PIECE_BYTES) return void reply.send(body);
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  if (length > PIECE_BYTES) work.charge(length / BYTES_PER_MS);
  if (
    !isCompressed ||
    bytes.byteLength < COMPRESSED_BYTES_MIN ||
    !isGzipAccepted(reply.request.headers['accept-encoding'])
  ) {
    return sendBytes(reply, bytes, work);
  }
  return sendBytes(reply.header('Content-Encoding', 'gzip'), await compress(bytes), work);
}

async function sendBytes(reply: FastifyReply, bytes: Uint8Array, work: AdmittedWork): Promise<void> {
  if (bytes.byteLength <= PIECE_BYTES || reply.request.method === 'HEAD') return void reply.send(bytes);
  return sendPieces(reply.header('Content-Length', String(bytes.byteLength)), splitBytes(bytes), work);
}

/** Sends a small response as one body with its length, without pieces. */
async function sendChunks(
  reply: FastifyReply,
  { chunks, type }: Extract<RouteResponse, { readonly chunks: unknown }>,
  options: SendOptions,
): Promise<void> {
  void reply.headers(COMMON_HEADERS).type(type);
  const iterator: AsyncIterator<string, unknown> = chunks[Symbol.asyncIterator]();
  let first = '';
  try {
    while (first.length <= COMPRESSED_BYTES_MIN) {
      const next = await iterator.next();
      if (next.done === true) {
        await sendBody(reply, first, options);
        return;
      }
      first += next.value;
    }
  } catch (error) {
    await iterator.return?.();
    throw error;
  }
  const pieces = prependPiece(first, iterator);
  const { isCompressed, work } = options;
  if (isCompressed) void reply.header('Vary', 'Accept-Encoding');
  if (!isCompressed || !isGzipAccepted(reply.request.headers['accept-encoding']))
    return sendPieces(reply, pieces, work);
  return sendPieces(reply.header('Content-Encoding', 'gzip'), compressPieces(pieces), work);
}

async function sendPieces(reply: FastifyReply, pieces: AsyncIterable<Body>, work: AdmittedWork): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  const headers = Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, typeof value === 'number' ? String(value) : value] as const],
  );
  raw.writeHead(reply.statusCode, Object.fromEntries(headers));
  await writePieces(raw, chargePieces(pieces, work), work.drainOptions);
}

async function* chargePieces(pieces: AsyncIterable<Body>, work: AdmittedWork): AsyncGenerator<Body> {
  for await (const piece of pieces) {
    work.charge(piece.length / BYTES_PER_MS);
    yield piece;
  }
}

async function* prependPiece(first: string, rest: AsyncIterator<string, unknown>): AsyncGenerator<string> {
  try {
    yield first;
    for (;;) {
      const next = await rest.next();
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await rest.return?.();
  }
}

// eslint-disable-next-line @typescript-eslint/require-await
async function* splitBytes(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}
