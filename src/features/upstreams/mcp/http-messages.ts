// The client side of MCP's Streamable HTTP: each message is its own POST. The response carries messages, as one JSON
// text or as events. No stream is kept open for unsolicited messages of a server.

import {
  PROTOCOL_VERSION_META_KEY,
  SdkErrorCode,
  SdkHttpError,
  type JSONRPCMessage,
} from '@modelcontextprotocol/client';
import { ActionNotExecutedError } from '../../../core/errors.js';
import { errorCode } from '../../../system/error-code.js';
import { createParser } from 'eventsource-parser';

const SESSION_ID = /^[\x21-\x7e]{1,256}$/;
const CLOSE_TIMEOUT_MS = 1_000;
/** How much of a refusal of the first request is read. */
const REFUSAL_BYTES_MAX = 65_536;

/** Error codes of fetch when no byte of a request was sent, or no server received it. */
const UNDELIVERED = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_HAS_EXPIRED',
];

/**
 * Statuses that show that the server has not started the request. Other statuses may come too late, from a proxy. These
 * redirects repeat the request elsewhere; other redirects may lead to its result.
 */
const REDIRECTS = [307, 308];
const REFUSALS = [400, 401, 403, 404, 405, 406, 413, 415, 429];
const TOO_MANY = 429;

interface HttpOptions {
  readonly url: URL;
  readonly token: string | null;
  readonly messageBytesMax: number;
}

/** Parses the address of a server. @throws Error if a token or content would be sent unencrypted or in the URL */
export function parseServerUrl(text: string): URL {
  if (!URL.canParse(text)) throw new Error('its url is not valid');
  const url = new URL(text);
  const local = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/u.test(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local)) {
    throw new Error('its url must begin with https, unless it is on this machine');
  }
  if (url.username !== '' || url.password !== '') throw new Error('its url must not hold a password');
  return url;
}

export class HttpMessages {
  readonly #options: HttpOptions;
  readonly #onMessage: (text: string) => void;
  readonly #inFlight = new Set<AbortController>();
  #closed = false;
  #session: string | null = null;
  #protocol: string | null = null;
  #lost = false;

  constructor(options: HttpOptions, onMessage: (text: string) => void) {
    this.#options = options;
    this.#onMessage = onMessage;
  }

  /** There is no child whose last words could be shown. */
  readonly stderrTail = '';

  /** Whether the server still knows our session. */
  get isOpen(): boolean {
    return !this.#lost && !this.#closed;
  }

  /** Sets the negotiated protocol version, which every later request states. */
  setProtocol(protocol: string): void {
    this.#protocol = protocol;
  }

  /**
   * Sends a message, and resolves when the whole response was read. Each request uses its own connection: the server
   * may close a kept-alive connection just as a request is sent, and then the outcome is unknown.
   * @throws ActionNotExecutedError if it was not delivered or the server rejected it unexecuted; SdkHttpError if the
   * server rejected a request for its versions, so that the SDK tries an older protocol; else another error
   */
  async send(message: JSONRPCMessage, signal: AbortSignal): Promise<'answered'> {
    // Not AbortSignal.any: in Node 20 a long-lived signal keeps references to everything derived from it.
    const until = new AbortController();
    const stop = (): void => until.abort();
    this.#inFlight.add(until);
    signal.addEventListener('abort', stop, { once: true });
    try {
      signal.throwIfAborted();
      await this.#exchange(message, until.signal);
      return 'answered';
    } finally {
      signal.removeEventListener('abort', stop);
      this.#inFlight.delete(until);
    }
  }

  async #exchange(message: JSONRPCMessage, signal: AbortSignal): Promise<void> {
    const text = JSON.stringify(message);
    const headers = { ...this.#headers(), ...headersOf(message), 'content-type': 'application/json' };
    const accept = 'application/json, text/event-stream';
    const init = { method: 'POST', headers: { ...headers, accept }, body: text, signal } as const;
    const response = await fetch(this.#options.url, { ...init, redirect: 'manual' }).catch((error: unknown) => {
      if (UNDELIVERED.includes(errorCode((error as Error).cause)))
        throw new ActionNotExecutedError('the server is not there');
      throw new Error('the server did not answer');
    });
    try {
      if (isProbe(message) && isClientError(response.status)) throw await toProbeError(response);
      await this.#handleResponse(response);
    } finally {
      if (response.body?.locked === false) await response.body.cancel().catch(() => undefined);
    }
  }

  terminate(): void {
    void this.close();
  }

  /** Ends the session if there is one; aborts requests in flight. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const exchange of this.#inFlight) exchange.abort();
    if (this.#session === null || this.#lost) return;
    const signal = AbortSignal.timeout(CLOSE_TIMEOUT_MS);
    const init = { method: 'DELETE', headers: this.#headers(), redirect: 'manual', signal } as const;
    await fetch(this.#options.url, init).then(
      (response) => response.body?.cancel(),
      () => undefined,
    );
  }

  async #handleResponse(response: Response): Promise<void> {
    const { status, headers } = response;
    if (status >= 300) {
      // The server has forgotten the session: the client must initialize again.
      if (status === 404 && this.#session !== null) this.#lost = true;
      const message = `the server answered with the status ${status}`;
      if (REDIRECTS.includes(status) || REFUSALS.includes(status)) {
        throw new ActionNotExecutedError(message, { retryable: status === 404 || status === TOO_MANY });
      }
      throw new Error(message);
    }
    const session = headers.get('mcp-session-id');
    if (this.#session === null && session !== null && SESSION_ID.test(session)) this.#session = session;
    if (response.body === null || status === 202) return;
    const type = (headers.get('content-type') ?? '').split(';', 1).join('').trim().toLowerCase();
    if (type === 'application/json') await this.#readText(response.body);
    else if (type === 'text/event-stream')
      await readEvents(response.body, this.#options.messageBytesMax, this.#onMessage);
  }

  async #readText(body: ReadableStream<Uint8Array>): Promise<void> {
    const bytes = await readBytes(body, this.#options.messageBytesMax);
    this.#onMessage(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  }

  #headers(): Record<string, string> {
    const { token } = this.#options;
    return {
      connection: 'close',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(this.#session === null ? {} : { 'mcp-session-id': this.#session }),
      ...(this.#protocol === null ? {} : { 'mcp-protocol-version': this.#protocol }),
    };
  }
}

/** @throws Error for a longer body */
async function readBytes(body: ReadableStream<Uint8Array>, bytesMax: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > bytesMax) throw new Error('the answer is too large');
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The headers that protocol 2026-07-28 derives from a request; none for older protocols. */
function headersOf(message: JSONRPCMessage): Record<string, string> {
  if (!('method' in message) || !('id' in message)) return {};
  const { method, params } = message;
  const version = params?._meta?.[PROTOCOL_VERSION_META_KEY];
  if (typeof version !== 'string') return {};
  const name = method === 'tools/call' ? params?.['name'] : undefined;
  return {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': toHeaderValue(name) } : {}),
  };
}

/** A text that is no header value, or looks encoded, is sent in base64. */
const toHeaderValue = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/u.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;

/** The first request: it asks a server which versions it has. */
const isProbe = (message: JSONRPCMessage): boolean => 'method' in message && message.method === 'server/discover';

const isClientError = (status: number): boolean => status >= 400 && status < 500 && status !== TOO_MANY;

async function toProbeError({ status, statusText, body }: Response): Promise<SdkHttpError> {
  const bytes = body === null ? '' : await readBytes(body, REFUSAL_BYTES_MAX).catch(() => '');
  const message = `the server answered with the status ${status}`;
  const data = { status, statusText, text: bytes.toString() };
  return new SdkHttpError(SdkErrorCode.EraNegotiationFailed, message, data);
}

// The parser of eventsource-parser has a limit for one event only.
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** Limits of a stream with all its comments: lines, and size in messages of maximum size. */
const STREAM_LINES_MAX = 100_000;
const STREAM_MESSAGES_MAX = 2;

/**
 * Calls `onMessage` with the data of each event that is a message. Ids and retry times are ignored.
 * @throws Error if the stream exceeds a limit or is not UTF-8
 */
async function readEvents(
  body: AsyncIterable<Uint8Array>,
  messageBytesMax: number,
  onMessage: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const remaining = { bytes: STREAM_MESSAGES_MAX * messageBytesMax, lines: STREAM_LINES_MAX };
  const parser = createParser({
    maxBufferSize: messageBytesMax,
    onEvent: ({ event = 'message', data }) => {
      if (data.length > messageBytesMax) throw tooLargeError();
      if (event === 'message') onMessage(data);
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw tooLargeError();
    },
  });
  for await (const piece of body) {
    remaining.bytes -= piece.length;
    // Before they are parsed: for each line, the parser searches the rest of the piece.
    remaining.lines -= countLines(piece);
    if (remaining.bytes < 0 || remaining.lines < 0) throw tooLargeError();
    parser.feed(decoder.decode(piece, { stream: true }));
  }
  decoder.decode();
}

/** The number of line ends; one that is divided between two pieces counts twice. */
function countLines(piece: Uint8Array): number {
  let lines = 0;
  piece.forEach((byte, at) => {
    if (byte === LINE_FEED || (byte === CARRIAGE_RETURN && piece[at + 1] !== LINE_FEED)) lines += 1;
  });
  return lines;
}

const tooLargeError = (): Error => new Error('the answer is too large');
