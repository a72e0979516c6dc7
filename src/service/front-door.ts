// Who may come in over HTTP at all: looked at before anything of a request is read, believed or parsed.
//
// A server on this machine can be reached by every page in its user's browser, by a name that leads to 127.0.0.1, and
// by whoever else is logged in. So the Host and Origin of a request must be ones that were named, and its bearer token
// the one that was drawn when the server started. Nothing here throws, whatever a header holds.

import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Why a request goes no further, as HTTP says it. The reason is a constant: nothing of the request is in it. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 404 | 405 | 413 | 415;
  readonly reason: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What is looked at of a request. */
export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>;
export type FrontDoor = (head: RequestHead) => Refusal | null;

export interface FrontDoorRules {
  /** As they stand in the Host header, with their port: `127.0.0.1:7390`, `[::1]:7390`. Compared exactly. */
  readonly hosts: readonly string[];
  /** As they stand in the Origin header. A request without one comes from no page. */
  readonly origins: readonly string[];
  readonly token: string;
  /** What there is: each path with its methods. */
  readonly paths: Readonly<Record<string, readonly string[]>>;
}

/** Headers of which a second one would be read by one program and not by the next. */
const ONCE = [
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
];

/** In the order in which it is asked: is this a request, from where, from whom, for what, in which form? */
export function frontDoor({ hosts, origins, token, paths }: FrontDoorRules): FrontDoor {
  const expected = digest(token);
  return ({ method = '', url = '', rawHeaders }) => {
    const headers = headersOf(rawHeaders);
    if (ONCE.some((name) => (headers.get(name)?.length ?? 0) > 1)) return refusal(400, 'A header is there twice');
    const header = (name: string): string | undefined => headers.get(name)?.[0];
    return (
      fromWhere(header, hosts, origins) ??
      (isBearer(header('authorization'), expected) ? null : unauthorized(header('authorization') !== undefined)) ??
      forWhat(method, url, paths) ??
      inWhichForm(method, header)
    );
  };
}

type Header = (name: string) => string | undefined;

function fromWhere(header: Header, hosts: readonly string[], origins: readonly string[]): Refusal | null {
  const [host, origin, site] = [header('host'), header('origin'), header('sec-fetch-site')];
  if (host === undefined || !hosts.includes(host)) return refusal(403, 'This host is not served');
  if (origin !== undefined && !origins.includes(origin)) return refusal(403, 'This origin is not allowed');
  // What a browser says of the page that asks; a page cannot set it.
  if (site !== undefined && site !== 'none' && site !== 'same-origin')
    return refusal(403, 'This origin is not allowed');
  return null;
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]{1,512}=*)$/i;
const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Digests are compared, so that neither the time nor the length tells anything of the token. */
function isBearer(header: string | undefined, expected: Buffer): boolean {
  const [, given] = BEARER.exec(header ?? '') ?? [];
  return given !== undefined && timingSafeEqual(digest(given), expected);
}

const unauthorized = (given: boolean): Refusal =>
  refusal(401, 'A bearer token is needed', {
    'WWW-Authenticate': `Bearer realm="turnpike"${given ? ', error="invalid_token"' : ''}`,
  });

function forWhat(method: string, url: string, paths: FrontDoorRules['paths']): Refusal | null {
  const [path = ''] = url.split('?', 1);
  const methods = Object.hasOwn(paths, path) ? paths[path] : undefined;
  if (methods === undefined) return refusal(404, 'There is nothing here');
  return methods.includes(method) ? null : refusal(405, 'This method is not served', { Allow: methods.join(', ') });
}

/** Forms and plain text are what a page can send without asking anybody. */
function inWhichForm(method: string, header: Header): Refusal | null {
  if (method !== 'POST') return null;
  const encoding = header('content-encoding');
  if (!/^application\/json(?: *; *charset=(?:utf-8|"utf-8"))? *$/i.test(header('content-type') ?? '')) {
    return refusal(415, 'The body must be application/json');
  }
  return encoding === undefined || encoding === 'identity' ? null : refusal(415, 'The body must not be encoded');
}

/** The body, counted while it comes, or why it is not taken. @throws what the connection says when it breaks off */
export async function bodyOf(request: IncomingMessage, bytes_max: number): Promise<Uint8Array | Refusal> {
  const tooLarge = refusal(413, `The body must not have more than ${bytes_max} bytes`);
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
export function loopbackNames(port: number): Pick<FrontDoorRules, 'hosts' | 'origins'> {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  return { hosts, origins: hosts.map((host) => `http://${host}`) };
}

/** Every header by its name in lower case, with all its values: Node keeps only the first of some. */
function headersOf(raw: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const headers = new Map<string, string[]>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), raw[at + 1] ?? '']);
  }
  return headers;
}

export const refusal = (
  status: Refusal['status'],
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): Refusal => ({ status, reason, headers });
