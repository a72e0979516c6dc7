// Who may come in over HTTP at all: looked at before anything of a request is read, believed or parsed.
//
// A server on this machine can be reached by every page in its user's browser, by a name that leads to 127.0.0.1, and
// by whoever else is logged in. So the Host and Origin of a request must be ones that were named, and its bearer token
// one that the book of tokens knows: whoever that was given to is who asks. This is the one way in, for agents over MCP
// as for everybody over HTTP. Nothing here throws, whatever a header holds.

import type { IncomingMessage } from 'node:http';
import type { Principal, TokenBook } from '../ports/token-book.js';
import { createRefusal, type Refusal } from './problems.js';

export type { Refusal } from './problems.js';

/** What is looked at of a request. */
export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>;

/** Who has come in, or why nobody has. Null is whoever asks for what is open to all. */
export type GuardResult =
  { readonly refusal: Refusal } | { readonly refusal: null; readonly principal: Principal | null };
export type RequestGuard = (head: RequestHead) => GuardResult;

export interface RequestGuardRules {
  /** As they stand in the Host header, with their port: `127.0.0.1:7390`, `[::1]:7390`. Compared exactly. */
  readonly hosts: readonly string[];
  /** As they stand in the Origin header. A request without one comes from no page. */
  readonly origins: readonly string[];
  readonly tokens: Pick<TokenBook, 'find'>;
  /** What may be had without a token: nothing that holds data. Default: nothing at all. */
  readonly isOpen?: (method: string, path: string) => boolean;
}

/** Headers of which a second one would be read by one program and not by the next. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'origin',
  'authorization',
  'sec-fetch-site',
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'mcp-session-id',
  'mcp-protocol-version',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'last-event-id',
]);

/** In the order in which it is asked: is this a request, from where, from whom? What for is asked behind it. */
export function createRequestGuard({ hosts, origins, tokens, isOpen = () => false }: RequestGuardRules): RequestGuard {
  return ({ method = '', url = '', rawHeaders }) => {
    const headers = parseHeaders(rawHeaders);
    if (headers === null) return { refusal: createRefusal('HEADER_TWICE') };
    const header: HeaderLookup = (name) => headers.get(name);
    const refused = checkOrigin(header, hosts, origins);
    if (refused !== null) return { refusal: refused };
    if (isOpen(method, pathOf(url))) return { refusal: null, principal: null };
    const principal = authenticateBearer(header('authorization'), tokens);
    return principal === null
      ? { refusal: unauthorized(header('authorization') !== undefined) }
      : { refusal: null, principal };
  };
}

type HeaderLookup = (name: string) => string | undefined;

function checkOrigin(header: HeaderLookup, hosts: readonly string[], origins: readonly string[]): Refusal | null {
  const [host, origin, site] = [header('host'), header('origin'), header('sec-fetch-site')];
  if (host === undefined || !hosts.includes(host)) return createRefusal('HOST_NOT_SERVED');
  if (origin !== undefined && !origins.includes(origin)) return createRefusal('ORIGIN_NOT_ALLOWED');
  // What a browser says of the page that asks; a page cannot set it.
  if (site !== undefined && site !== 'none' && site !== 'same-origin') return createRefusal('ORIGIN_NOT_ALLOWED');
  return null;
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]{1,512}=*)$/i;

/** The book compares digests, so that neither the time nor the length tells anything of a token. */
function authenticateBearer(header: string | undefined, tokens: RequestGuardRules['tokens']): Principal | null {
  const [, given] = BEARER.exec(header ?? '') ?? [];
  return given === undefined ? null : tokens.find(given);
}

const unauthorized = (given: boolean): Refusal =>
  createRefusal('UNAUTHENTICATED', {
    'WWW-Authenticate': `Bearer realm="turnpike"${given ? ', error="invalid_token"' : ''}`,
  });

/** The path of a request target: what stands before the query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/** Refuses what is not there. @param paths each path with its methods */
export function checkMethod(
  { method = '', url = '' }: RequestHead,
  paths: Readonly<Record<string, readonly string[]>>,
): Refusal | null {
  const path = pathOf(url);
  const methods = Object.hasOwn(paths, path) ? paths[path] : undefined;
  if (methods === undefined) return createRefusal('NOT_FOUND');
  return methods.includes(method) ? null : createRefusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') });
}

const JSON_TYPE = /^application\/json(?: *; *charset=(?:utf-8|"utf-8"))? *$/i;
const BYTES_TYPE = /^application\/octet-stream *$/i;

/** Refuses bodies in another form: forms and plain text are what a page can send without asking anybody. */
export function checkContentType(headers: IncomingMessage['headers'], bytes = false): Refusal | null {
  const { 'content-type': type = '', 'content-encoding': encoding } = headers;
  if (!JSON_TYPE.test(type) && !(bytes && BYTES_TYPE.test(type))) return createRefusal('UNSUPPORTED_TYPE');
  return encoding === undefined || encoding === 'identity' ? null : createRefusal('UNSUPPORTED_TYPE');
}

/** The body, counted while it comes, or why it is not taken. @throws what the connection says when it breaks off */
export async function readBody(request: IncomingMessage, bytes_max: number): Promise<Uint8Array | Refusal> {
  const tooLarge = createRefusal('BODY_TOO_LARGE');
  if (Number(request.headers['content-length'] ?? 0) > bytes_max) return tooLarge;
  const chunks: Uint8Array[] = [];
  let length = 0;
  // The answer goes out over the connection that is still being read.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > bytes_max) return tooLarge;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The hosts by which a loopback address is called, and the origins of pages that it would serve itself. */
export function loopbackNames(port: number): Pick<RequestGuardRules, 'hosts' | 'origins'> {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  return { hosts, origins: hosts.map((host) => `http://${host}`) };
}

/** The headers by their names in lower case, or null where one is there twice that must not: Node keeps the first. */
function parseHeaders(raw: readonly string[]): ReadonlyMap<string, string> | null {
  const headers = new Map<string, string>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    if (!SINGLE_HEADERS.has(name)) continue;
    if (headers.has(name)) return null;
    headers.set(name, raw[at + 1] ?? '');
  }
  return headers;
}
