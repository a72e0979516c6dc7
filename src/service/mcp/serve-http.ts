// MCP over HTTP (Streamable HTTP): many agents, each in a session of its own. Requests have come through the front door
// before the SDK sees them; what the SDK gets is a message that was read strictly.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { drawToken } from '../../adapters/access-token.js';
import { listenHttp } from '../../adapters/http-listener.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { bodyOf, frontDoor, loopbackNames, type FrontDoor, type Refusal } from '../front-door.js';
import { errorAnswer, INVALID_REQUEST, MESSAGE_BYTES_MAX, readMessage } from './messages.js';
import { sdkServer } from './sdk-server.js';
import { connect, type McpService } from './service.js';

export const MCP_PATH = '/mcp';
/** Sessions at the same time. For one more, the one that has been silent longest is let go of. */
export const SESSIONS_MAX = 256;
const SERVER_ERROR = -32_000;
const SESSION_UNKNOWN = -32_001;
const CLOSE_MS = 10_000;

export interface HttpServing {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** The secret that every request has to bring. */
  readonly token: string;
  /** Further names by which the server is called, as they stand in Host, and origins of pages that may ask it. */
  readonly hosts?: readonly string[];
  readonly origins?: readonly string[];
  readonly sessionsMax?: number;
}

export interface McpHttpServer {
  readonly url: string;
  /** Ends after the answers that are under way. Runs of agents live on (D3). */
  close(): Promise<void>;
}

/** @throws UsageError where the address cannot be listened on */
export const serveHttp = (service: McpService, serving: HttpServing): Promise<McpHttpServer> =>
  serveBehind((port) => frontDoor(rulesOf(serving, port)), service, serving);

function rulesOf(
  { host, token, hosts = [], origins = [] }: HttpServing,
  port: number,
): Parameters<typeof frontDoor>[0] {
  const names = loopbackNames(port);
  return {
    hosts: [...names.hosts, `${named(host)}:${port}`, ...hosts],
    origins: [...names.origins, ...origins],
    token,
    // No stream is held open for what a server may want to say unasked: this one never does.
    paths: { [MCP_PATH]: ['POST', 'DELETE'] },
  };
}

/** As it stands in an address. */
const named = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** The same behind any door: a test shows what the door is for by leaving it open. */
export async function serveBehind(
  doorAt: (port: number) => FrontDoor,
  service: McpService,
  { host, port, sessionsMax = SESSIONS_MAX }: HttpServing,
): Promise<McpHttpServer> {
  const sessions = new Sessions(service, sessionsMax);
  let door: FrontDoor = () => ({ status: 403, reason: 'The server is not ready', headers: {} });
  const listener = await listenHttp({
    host,
    port,
    handle: (request, response) => handle(request, response, door, sessions),
    failed: (error) => service.log.error('a request over HTTP failed', { error }),
  });
  door = doorAt(listener.port);
  return {
    url: `http://${named(host)}:${listener.port}${MCP_PATH}`,
    close: async () => {
      await listener.close(CLOSE_MS);
      await sessions.close();
    },
  };
}

/** An answer that is not the SDK's. */
interface Reply {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  door: FrontDoor,
  sessions: Sessions,
): Promise<void> {
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  const reply = await replyTo(request, response, door, sessions);
  if (reply === null) return;
  const form = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(reply.text) };
  response.writeHead(reply.status, { ...form, ...reply.headers });
  response.end(reply.text);
}

/** @returns null where the SDK has answered */
async function replyTo(
  request: IncomingMessage,
  response: ServerResponse,
  door: FrontDoor,
  sessions: Sessions,
): Promise<Reply | null> {
  const refusal = door(request);
  if (refusal !== null) return refused(refusal);
  const id = request.headers['mcp-session-id'];
  const known = typeof id === 'string' ? sessions.get(id) : undefined;
  if (id !== undefined && known === undefined) return reply(404, SESSION_UNKNOWN, 'Session not found');
  if (request.method !== 'POST') {
    if (known === undefined) return reply(400, SERVER_ERROR, 'Mcp-Session-Id is needed');
    await known.transport.handleRequest(request, response);
    return null;
  }
  const body = await bodyOf(request, MESSAGE_BYTES_MAX);
  if ('status' in body) return refused(body);
  const read = readMessage(body);
  if (!read.ok) return { status: 400, text: read.answer };
  // As over stdio: a list of them would have one stream for all of its answers, and multiplies what one body asks for.
  if (!isJsonObject(read.message)) return reply(400, INVALID_REQUEST, 'Invalid request: one message at a time');
  const session = known ?? (isInitializeRequest(read.message) ? await sessions.open() : null);
  if (session === null) return reply(400, SERVER_ERROR, 'Mcp-Session-Id is needed');
  if (session === 'full') return reply(503, SERVER_ERROR, 'Too many sessions are at work');
  session.pending += 1;
  response.once('close', () => (session.pending -= 1));
  endForsaken(session.transport, read.message);
  await session.transport.handleRequest(request, response, read.message);
  return null;
}

/**
 * The SDK would keep a stream open for ever, with a comment every few seconds, when its request is cancelled, or comes
 * again while it waits: its answer then goes to the later one. So many of them, and nobody could connect any more.
 */
function endForsaken(transport: StreamableHTTPServerTransport, { method, id, params }: JsonObject): void {
  const cancelled = method === 'notifications/cancelled' && isJsonObject(params) ? params['requestId'] : undefined;
  const forsaken: Json | undefined = cancelled ?? (typeof method === 'string' ? id : undefined);
  if (typeof forsaken === 'string' || typeof forsaken === 'number') transport.closeSSEStream(forsaken);
}

const reply = (status: number, code: number, message: string): Reply => ({ status, text: errorAnswer(code, message) });

/** Whoever is refused may still be sending: the connection is not used again. */
const refused = ({ status, reason, headers }: Refusal): Reply => ({
  ...reply(status, SERVER_ERROR, reason),
  headers: { ...headers, Connection: 'close' },
});

interface Session {
  readonly transport: StreamableHTTPServerTransport;
  /** Requests that have no answer yet. */
  pending: number;
  readonly close: () => Promise<void>;
}

class Sessions {
  readonly #service: McpService;
  readonly #max: number;
  /** The one that was used last comes last. */
  readonly #sessions = new Map<string, Session>();

  constructor(service: McpService, max: number) {
    this.#service = service;
    this.#max = max;
  }

  get(id: string): Session | undefined {
    const session = this.#sessions.get(id);
    if (session !== undefined) {
      this.#sessions.delete(id);
      this.#sessions.set(id, session);
    }
    return session;
  }

  async open(): Promise<Session | 'full'> {
    if (!(await this.#makeRoom())) return 'full';
    const id = drawToken();
    const connection = connect(this.#service, id);
    const server = sdkServer(connection, this.#service.version, this.#service.log);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      // The agent has said goodbye; one that is merely gone has its run until that has been silent for too long.
      onsessionclosed: () => connection.end(),
    });
    const session = { transport, pending: 0, close: () => server.close() };
    this.#sessions.set(id, session);
    transport.onclose = () => void this.#sessions.delete(id);
    await server.connect(transport);
    return session;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  async #makeRoom(): Promise<boolean> {
    if (this.#sessions.size < this.#max) return true;
    const [idle] = [...this.#sessions.values()].filter(({ pending }) => pending === 0);
    await idle?.close();
    return idle !== undefined;
  }
}
