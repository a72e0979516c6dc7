// MCP over HTTP (Streamable HTTP): many agents. Clients of protocol 2025-11-25 and older each have an MCP session;
// requests of 2026-07-28 are stateless. Requests pass the request guard before the SDK sees them, and the SDK receives
// messages that were parsed strictly.

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { listenHttp } from '../../system/network/http-listener.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import { systemPace } from '../../system/system-pace.js';
import { singleTokenBook } from '../../stores/keys/token-file.js';
import { TlsCertificate, type TlsFiles } from '../../system/network/tls-certificate.js';
import { clientAddressFinder, RequestAdmission, type RequestDemand } from '../service/request-admission.js';
import { systemClock } from '../../system/system-clock.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/caller-input.js';
import { AdmissionController } from '../admission/admission-controller.js';
import type { AdmissionLimits, AdmissionOptions } from '../admission/admission-limits.js';
import {
  readBody,
  checkMethod,
  createRequestGuard,
  checkContentType,
  loopbackNames,
  type RequestGuard,
} from '../service/request-guard.js';
import { createRefusal, type Refusal, sendRefusal } from '../service/problems.js';
import { errorResponse, INVALID_REQUEST, MESSAGE_BYTES_MAX, readMessage } from './read-message.js';
import type { McpService } from './agent-connection.js';
import { createConnection, createStatelessConnection } from './mcp-service.js';
import { MISPLACED_MESSAGE, sdkServer } from './sdk-server.js';
import { once } from 'node:events';
import { drawToken } from '../../stores/keys/access-token.js';

export const MCP_PATH = '/mcp';
export const MCP_DEMAND: RequestDemand = { kind: 'step', bytesMax: MESSAGE_BYTES_MAX };
const SERVER_ERROR = -32_000;
const SESSION_UNKNOWN = -32_001;
const CLOSE_MS = 10_000;

/** Options of an MCP server over HTTP. */
export interface ServeMcpHttpOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** The bearer token that every request needs. */
  readonly token: string;
  /** Further allowed values of the Host header, and allowed origins of pages. */
  readonly hosts?: readonly string[];
  readonly origins?: readonly string[];
  /** Serves HTTPS with this certificate, which is read again when its files change. Default: HTTP. */
  readonly tls?: TlsFiles | null;
  /** Proxies whose `X-Forwarded-For` header is trusted: addresses or networks. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** Limit of MCP sessions; beyond it, the one that was idle longest is closed. Default: 256. */
  readonly sessionsMax?: number;
  /** Limits of one connection, of one token and of the service. Default: `DEFAULT_LIMITS`. */
  readonly admission?: AdmissionOptions;
}

/** An MCP server that listens over HTTP. */
export interface McpHttpServer {
  readonly url: string;
  /** Closes the server after the responses in flight. Agent runs stay active (D3). */
  close(): Promise<void>;
}

/** Serves MCP on its own port. @throws UsageError if the server cannot listen on the address, or use the certificate */
export const serveHttp = (service: McpService, serveOptions: ServeMcpHttpOptions): Promise<McpHttpServer> =>
  serveGuarded((port) => createRequestGuard(rulesOf(service, serveOptions, port)), service, serveOptions);

/** The guard for one token: its bearer is the agent of the service. */
function rulesOf(
  { identity }: McpService,
  { host, token, hosts = [], origins = [], tls = null }: ServeMcpHttpOptions,
  port: number,
): Parameters<typeof createRequestGuard>[0] {
  const names = loopbackNames(port, tls === null ? 'http' : 'https');
  const { actor, role } = { ...AGENT_DEFAULTS, ...identity };
  return {
    hosts: [...names.hosts, `${hostForUrl(host)}:${port}`, ...hosts],
    origins: [...names.origins, ...origins],
    tokens: singleTokenBook(token, { actor, role, rights: ['act'] }, systemClock()),
  };
}

/** There is no GET stream, because this server never sends unsolicited messages. */
const PATHS = { [MCP_PATH]: ['POST', 'DELETE'] };

/** The host as it appears in a URL. */
export const hostForUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** @internal Serves MCP with any request guard: a test shows what the guard prevents by using none. */
export async function serveGuarded(
  guardAt: (port: number) => RequestGuard,
  service: McpService,
  { host, port, sessionsMax, admission: options, tls = null, trustedProxies = [] }: ServeMcpHttpOptions,
): Promise<McpHttpServer> {
  const admission = new AdmissionController({ clock: systemClock(), pace: systemPace(), limits: options ?? {} });
  // There is only one token, so its limit is the limit of all sessions.
  const { mcpSessions: sessionsDefault } = admission.limits;
  const mcpSessions = sessionsMax ?? sessionsDefault;
  const endpoint = new McpEndpoint({ mcpSessions, mcpSessionsPerToken: mcpSessions });
  let guard: RequestGuard = () => Promise.resolve({ refusal: createRefusal('CLOSED') });
  const requestAdmission = new RequestAdmission({
    guard: (head) => guard(head),
    admission,
    addressOf: clientAddressFinder(trustedProxies),
  });
  const certificate = tls === null ? undefined : new TlsCertificate(tls, systemClock(), service.log);
  const listener = await listenHttp({
    host,
    port,
    tls: certificate,
    handle: async (request, response) => {
      const outcome = await requestAdmission.admit(request, response, MCP_DEMAND);
      if (outcome === null) return;
      const serviceOrRefusal = 'reason' in outcome ? outcome : (checkMethod(request, PATHS) ?? service);
      await endpoint.handle(request, response, serviceOrRefusal);
    },
    onError: (error) => service.log.error('a request over HTTP failed', { error }),
  });
  guard = guardAt(listener.port);
  return {
    url: `${certificate === undefined ? 'http' : 'https'}://${hostForUrl(host)}:${listener.port}${MCP_PATH}`,
    close: async () => {
      await listener.close(CLOSE_MS);
      await endpoint.close();
    },
  };
}

/** Refusals by a limit are problem documents, as in the HTTP API. */
const LIMITS_REACHED: readonly string[] = ['TOO_MANY_REQUESTS', 'TOO_MANY_FAILURES', 'OVERLOADED'];

/** A response that the SDK does not send. */
interface HttpReply {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** @internal The MCP endpoint, for requests that have passed the request guard. */
export class McpEndpoint {
  readonly #sessions: McpSessions;

  constructor(limits: McpSessionLimits) {
    this.#sessions = new McpSessions(limits);
  }

  /** @param serviceOrRefusal the MCP service of the caller, or its refusal */
  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    serviceOrRefusal: McpService | Refusal,
  ): Promise<void> {
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    if ('reason' in serviceOrRefusal && LIMITS_REACHED.includes(serviceOrRefusal.code)) {
      sendRefusal(response, serviceOrRefusal);
      return;
    }
    const reply =
      'reason' in serviceOrRefusal
        ? refusalReply(serviceOrRefusal)
        : await replyTo(request, response, serviceOrRefusal, this.#sessions);
    if (reply === null) return;
    const form = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(reply.text) };
    response.writeHead(reply.status, { ...form, ...reply.headers });
    response.end(reply.text);
  }

  close(): Promise<void> {
    return this.#sessions.close();
  }
}

/** @returns null if the SDK has sent the response */
async function replyTo(
  request: IncomingMessage,
  response: ServerResponse,
  service: McpService,
  sessions: McpSessions,
): Promise<HttpReply | null> {
  const contentRefusal = request.method === 'POST' ? checkContentType(request.headers) : null;
  if (contentRefusal !== null) return refusalReply(contentRefusal);
  const web = toWebRequest(request, response);
  const id = request.headers['mcp-session-id'];
  const known = typeof id === 'string' ? sessions.get(id, service) : undefined;
  const lost = id !== undefined && known === undefined ? reply(404, SESSION_UNKNOWN, 'Session not found') : null;
  if (request.method !== 'POST') {
    if (known === undefined) return lost ?? reply(400, SERVER_ERROR, 'Mcp-Session-Id is needed');
    await sendWebResponse(await known.transport.handleRequest(web), response);
    return null;
  }
  const body = await readBody(request, MESSAGE_BYTES_MAX);
  if ('status' in body) return refusalReply(body);
  const read = readMessage(body);
  if (!read.ok) return { status: 400, text: read.answer };
  // As over stdio: a batch would have one stream for all its responses, and one body could demand many times the work.
  if (!isJsonObject(read.message)) return reply(400, INVALID_REQUEST, 'Invalid request: one message at a time');
  if (!(await isLegacyRequest(web, read.message))) {
    await sendWebResponse(await answerStateless(web, read.message, service), response);
    return null;
  }
  if (lost !== null) return lost;
  const session = known ?? (isInitializeRequest(read.message) ? await sessions.open(service) : null);
  if (session === null) return reply(400, SERVER_ERROR, 'Mcp-Session-Id is needed');
  if (session === 'full') return refusalReply(createRefusal('TOO_MANY_REQUESTS', { 'Retry-After': '1' }));
  session.pending += 1;
  response.once('close', () => (session.pending -= 1));
  closeAbandonedStream(session.transport, read.message);
  await sendWebResponse(await session.transport.handleRequest(web, { parsedBody: read.message }), response);
  return null;
}

/** Every request has a server of its own, so that nothing of it remains in this process. */
function answerStateless(request: Request, message: JsonObject, service: McpService): Promise<Response> {
  const handler = createMcpHandler(() => sdkServer(createStatelessConnection(service), service, 'modern'), {
    legacy: 'reject',
    onerror: () => service.log.info(MISPLACED_MESSAGE),
  });
  return handler.fetch(request, { parsedBody: message });
}

/**
 * Closes a stream that the SDK would keep open forever, with a comment every few seconds: that of a cancelled request,
 * or of a repeated request, whose response goes to the later stream. Otherwise such streams could exhaust the
 * connections.
 */
function closeAbandonedStream(
  transport: WebStandardStreamableHTTPServerTransport,
  { method, id, params }: JsonObject,
): void {
  const cancelled = method === 'notifications/cancelled' && isJsonObject(params) ? params['requestId'] : undefined;
  const abandoned: Json | undefined = cancelled ?? (typeof method === 'string' ? id : undefined);
  if (typeof abandoned === 'string' || typeof abandoned === 'number') transport.closeSSEStream(abandoned);
}

const reply = (status: number, code: number, message: string): HttpReply => ({
  status,
  text: errorResponse(code, message),
});

/** Closes the connection, because a refused client may still be sending its body. */
const refusalReply = ({ status, reason, headers }: Refusal): HttpReply => ({
  ...reply(status, SERVER_ERROR, reason),
  headers: { ...headers, Connection: 'close' },
});

/** The SDK reads no address: the path was checked before. */
const ADDRESS = 'http://turnpike.invalid/mcp';

/** The head of a request. Its body was read before; its signal is aborted when the client has disconnected. */
function toWebRequest(request: IncomingMessage, response: ServerResponse): Request {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !name.startsWith(':')) headers.set(name, [value].flat().join(', '));
  }
  return new Request(ADDRESS, { method: request.method ?? 'POST', headers, signal: gone.signal });
}

/** Sends a response, no faster than the client reads it. A client that disconnects ends it. */
async function sendWebResponse(web: Response, response: ServerResponse): Promise<void> {
  // Without a client, a body that nothing reads would never end.
  if (response.destroyed) {
    await web.body?.cancel();
    return;
  }
  const headers = Object.fromEntries(web.headers);
  // The SDK returns JSON when it is complete: its length is known, and it needs no chunks.
  if (headers['content-type']?.startsWith('application/json') === true) {
    const bytes = Buffer.from(await web.arrayBuffer());
    response.writeHead(web.status, { ...headers, 'content-length': bytes.byteLength });
    response.end(bytes);
    return;
  }
  response.writeHead(web.status, headers);
  // A stream of events may be silent for long, and its client waits for the head.
  response.flushHeaders();
  if (web.body !== null) await sendBody(web.body.getReader(), response);
  response.end();
}

async function sendBody(reader: ReadableStreamDefaultReader<Uint8Array>, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  const stop = (): void => {
    gone.abort();
    void reader.cancel().catch(() => undefined);
  };
  response.once('close', stop);
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    if (response.destroyed) break;
    if (!response.write(read.value)) await once(response, 'drain', gone).catch(() => undefined);
  }
  response.off('close', stop);
}

export type McpSessionLimits = Pick<AdmissionLimits, 'mcpSessions' | 'mcpSessionsPerToken'>;

interface McpSession {
  readonly id: string;
  /** The owner: knowing the id of a session is not enough. */
  readonly service: McpService;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** The number of requests without a response. */
  pending: number;
  readonly close: () => Promise<void>;
}

export class McpSessions {
  readonly #limits: McpSessionLimits;
  /** In order of use; the one used last comes last. */
  readonly #sessions = new Map<string, McpSession>();
  /** Serializes openings, so that each one sees the sessions opened before it. */
  #opening: Promise<unknown> = Promise.resolve();

  constructor(limits: McpSessionLimits) {
    this.#limits = limits;
  }

  get(id: string, service: McpService): McpSession | undefined {
    const session = this.#sessions.get(id);
    if (session?.service !== service) return undefined;
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    return session;
  }

  /** @returns `full` if the limit is reached and no session may be closed */
  open(service: McpService): Promise<McpSession | 'full'> {
    const opening = this.#opening.then(() => this.#open(service));
    this.#opening = opening.catch(() => undefined);
    return opening;
  }

  async #open(service: McpService): Promise<McpSession | 'full'> {
    if (!(await this.#evictIdle(service))) return 'full';
    const id = drawToken();
    const connection = createConnection(service, id);
    const server = sdkServer(connection, service, 'legacy');
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      // The agent has closed its session. If it only disconnected, its run stays active until the idle limit.
      onsessionclosed: () => connection.end(),
    });
    const session = { id, service, transport, pending: 0, close: () => server.close() };
    this.#sessions.set(id, session);
    transport.onclose = () => void this.#sessions.delete(id);
    await server.connect(transport);
    return session;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  /** Closes an idle session: of this token if it is at its limit, else of a token with more sessions than this one. */
  async #evictIdle(service: McpService): Promise<boolean> {
    const { mcpSessions, mcpSessionsPerToken } = this.#limits;
    const counts = new Map<McpService, number>();
    for (const { service: owner } of this.#sessions.values()) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    const own = counts.get(service) ?? 0;
    if (own < mcpSessionsPerToken && this.#sessions.size < mcpSessions) return true;
    let from = service;
    if (own < mcpSessionsPerToken)
      for (const [owner, count] of counts) if (count > (counts.get(from) ?? 0)) from = owner;
    const idle = [...this.#sessions.values()].find(({ service: owner, pending }) => owner === from && pending === 0);
    await idle?.close();
    return idle !== undefined;
  }
}
