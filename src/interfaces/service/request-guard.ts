// Admits or refuses HTTP requests before anything in them is read, trusted or parsed. A local server can be reached
// by every page in its user's browser, by a name that resolves to 127.0.0.1, and by every other user of the machine.
// So the Host and Origin of a request must be configured ones, and its caller must be known: by a token of the token
// book, by a token of an accepted issuer, or by a session of the page. Every request over HTTP and MCP passes this
// guard. Nothing here throws, whatever a header contains.

import type { IncomingMessage } from 'node:http';
import type { Principal, TokenBook } from '../../engine/ports/token-book.js';
import type { IdentityResult, RequestIdentity } from '../../engine/ports/request-identity.js';
import { createRefusal, type Refusal } from './problems.js';

export type { Refusal } from './problems.js';

/** The parts of a request that the guard reads. */
export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>;

/** The caller, or the reason of the refusal. The caller is null for a request that needs no token. */
export type GuardResult =
  { readonly refusal: Refusal } | { readonly refusal: null; readonly principal: Principal | null };
export type RequestGuard = (head: RequestHead) => Promise<GuardResult>;

export interface RequestGuardRules {
  /** Values of the Host header, with the port: `127.0.0.1:7390`, `[::1]:7390`. Compared exactly. */
  readonly hosts: readonly string[];
  /** Values of the Origin header. A request without one does not come from a page. */
  readonly origins: readonly string[];
  readonly tokens: Pick<TokenBook, 'find'>;
  /** Callers of issuers, and sessions of the page. Default: only tokens of the token book are accepted. */
  readonly identity?: Pick<RequestIdentity, 'identify' | 'withPerson'> | undefined;
  /** Where a person can sign in, for a page whose request was refused. Default: nowhere. */
  readonly signIn?: string;
  /** Which requests another site may send a browser to make: the return of a login. Default: none. */
  readonly isReturn?: (method: string, path: string) => boolean;
  /** Which requests need no token: none that return data. Default: none at all. */
  readonly isOpen?: (method: string, path: string) => boolean;
}

/** Headers for which programs disagree on the meaning of duplicates. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'origin',
  'authorization',
  'cookie',
  'x-turnpike-csrf',
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

/** The checks in order: the form of the request, its origin, its caller. The rights of the caller are checked later. */
export function createRequestGuard(rules: RequestGuardRules): RequestGuard {
  const { hosts, origins, isOpen = () => false, isReturn = () => false } = rules;
  return async ({ method = '', url = '', rawHeaders }) => {
    const headers = parseHeaders(rawHeaders);
    if (headers === null) return { refusal: createRefusal('HEADER_TWICE') };
    const header: HeaderLookup = (name) => headers.get(name);
    const refused = checkOrigin(header, hosts, origins, isReturn(method, pathOf(url)));
    if (refused !== null) return { refusal: refused };
    if (isOpen(method, pathOf(url))) return { refusal: null, principal: null };
    return authenticate(method, header, rules);
  };
}

type HeaderLookup = (name: string) => string | undefined;

function checkOrigin(
  header: HeaderLookup,
  hosts: readonly string[],
  origins: readonly string[],
  isReturn: boolean,
): Refusal | null {
  const [host, origin, site] = [header('host'), header('origin'), header('sec-fetch-site')];
  if (host === undefined || !hosts.includes(host)) return createRefusal('HOST_NOT_SERVED');
  if (origin !== undefined && !origins.includes(origin)) return createRefusal('ORIGIN_NOT_ALLOWED');
  // The browser sets this header; a page cannot change it.
  if (!isReturn && site !== undefined && site !== 'none' && site !== 'same-origin')
    return createRefusal('ORIGIN_NOT_ALLOWED');
  return null;
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]{1,8192}=*)$/i;

/** The book compares digests, so that neither time nor length reveals anything about a token. */
async function authenticate(
  method: string,
  header: HeaderLookup,
  { tokens, identity, signIn }: RequestGuardRules,
): Promise<GuardResult> {
  const authorization = header('authorization');
  const [, bearer = null] = BEARER.exec(authorization ?? '') ?? [];
  const principal = bearer === null ? null : tokens.find(bearer);
  if (principal !== null) {
    // Requests and votes of one person are compared by the person, whichever token the person uses.
    const known = await identity?.withPerson(principal);
    return known === undefined ? { refusal: null, principal } : toGuardResult(known, createRefusal('UNAUTHENTICATED'));
  }
  // A request with an Authorization header stands for itself: the cookie of the browser adds nothing to it.
  const cookie = authorization === undefined ? (header('cookie') ?? null) : null;
  const [csrf, origin] = [header('x-turnpike-csrf') ?? null, header('origin') ?? null];
  const refused = unauthorized(authorization !== undefined, signIn);
  const result = (await identity?.identify({ method, bearer, cookie, csrf, origin })) ?? null;
  return result === null ? { refusal: refused } : toGuardResult(result, refused);
}

/** Of all problems, a caller learns only of those that it can solve. */
function toGuardResult(result: IdentityResult, refused: Refusal): GuardResult {
  if ('principal' in result) return { refusal: null, principal: result.principal };
  if (result.problem === 'unavailable')
    return { refusal: createRefusal('IDENTITY_UNAVAILABLE', { 'Retry-After': '5' }) };
  return { refusal: result.problem === 'csrf' ? createRefusal('CSRF_REFUSED') : refused };
}

const unauthorized = (given: boolean, signIn: string | undefined): Refusal =>
  createRefusal('UNAUTHENTICATED', {
    'WWW-Authenticate': `Bearer realm="turnpike"${given ? ', error="invalid_token"' : ''}`,
    ...(signIn === undefined ? {} : { 'Turnpike-Sign-In': signIn }),
  });

/** The path of a request target: the part before the query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/**
 * Refuses unknown paths and methods.
 * @param paths each path with its methods
 */
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

/** Refuses bodies of other types: a page can send forms and plain text without a CORS preflight. */
export function checkContentType(headers: IncomingMessage['headers'], bytes = false): Refusal | null {
  const { 'content-type': type = '', 'content-encoding': encoding } = headers;
  if (!JSON_TYPE.test(type) && !(bytes && BYTES_TYPE.test(type))) return createRefusal('UNSUPPORTED_TYPE');
  return encoding === undefined || encoding === 'identity' ? null : createRefusal('UNSUPPORTED_TYPE');
}

/**
 * The body, counted while it arrives, or the reason of its refusal.
 * @throws the error of the connection if it closes early
 */
export async function readBody(request: IncomingMessage, bytes_max: number): Promise<Uint8Array | Refusal> {
  const tooLarge = createRefusal('BODY_TOO_LARGE');
  if (Number(request.headers['content-length'] ?? 0) > bytes_max) return tooLarge;
  const chunks: Uint8Array[] = [];
  let length = 0;
  // The answer uses the connection that is still being read.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > bytes_max) return tooLarge;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The hosts that name a loopback address, and the origins of pages that it serves itself. */
export function loopbackNames(
  port: number,
  scheme: 'http' | 'https' = 'http',
): Pick<RequestGuardRules, 'hosts' | 'origins'> {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  return { hosts, origins: hosts.map((host) => `${scheme}://${host}`) };
}

/** The headers by lower-case name, or null if a header that must be unique is not: Node would use the first. */
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
