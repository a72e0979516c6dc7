// MCP over HTTP (Streamable HTTP): many agents, each in a session of its own. Requests have come through the front door
// before the SDK sees them; what the SDK gets is a message that was read strictly.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { listenHttp } from '../../adapters/http-listener.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { systemPace } from '../../adapters/pace.js';
import { singleToken } from '../../adapters/token-book.js';
import { systemClock } from '../../adapters/system-clock.js';
import { DEFAULTS } from '../../runtime/open-request.js';
import { AdmissionController } from '../admission/controller.js';
import { limitsOf, type AdmissionOptions } from '../admission/limits.js';
import { Entrance } from '../entrance.js';
import { bodyOf, forWhat, frontDoor, inWhichForm, loopbackNames, type FrontDoor } from '../front-door.js';
import { refusal, type Refusal } from '../problems.js';
import { sendRefusal } from '../send-refusal.js';
import { errorAnswer, INVALID_REQUEST, MESSAGE_BYTES_MAX, readMessage } from './messages.js';
import { McpSessions, type SessionLimits } from './mcp-sessions.js';
import type { McpService } from './service.js';

export const MCP_PATH = '/mcp';
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
  /** Sessions at the same time; for one more, the one that was silent longest is closed. Default: 256. */
  readonly sessionsMax?: number;
  /** How much one connection, one token and all of them may use; `DEFAULT_LIMITS` has the defaults. */
  readonly admission?: AdmissionOptions;
}

export interface McpHttpServer {
  readonly url: string;
  /** Ends after the answers that are under way. Runs of agents live on (D3). */
  close(): Promise<void>;
}

/** @throws UsageError where the address cannot be listened on */
export const serveHttp = (service: McpService, serving: HttpServing): Promise<McpHttpServer> =>
  serveBehind((port) => frontDoor(rulesOf(service, serving, port)), service, serving);

/** Whoever has the one token is the agent of the service. */
function rulesOf(
  { identity }: McpService,
  { host, token, hosts = [], origins = [] }: HttpServing,
  port: number,
): Parameters<typeof frontDoor>[0] {
  const names = loopbackNames(port);
  const { actor, role } = { ...DEFAULTS, ...identity };
  return {
    hosts: [...names.hosts, `${named(host)}:${port}`, ...hosts],
    origins: [...names.origins, ...origins],
    tokens: singleToken(token, { actor, role, rights: ['act'] }, systemClock()),
  };
}

/** No stream is held open for what a server may want to say unasked: this one never does. */
const PATHS = { [MCP_PATH]: ['POST', 'DELETE'] };

/** As it stands in an address. */
export const named = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** The same behind any door: a test shows what the door is for by leaving it open. */
export async function serveBehind(
  doorAt: (port: number) => FrontDoor,
  service: McpService,
  { host, port, sessionsMax, admission: options }: HttpServing,
): Promise<McpHttpServer> {
  const admission = new AdmissionController({ clock: systemClock(), pace: systemPace(), limits: options ?? {} });
  // There is one token, so its sessions are all of them.
  const { mcpSessions: most } = admission.limits;
  const mcpSessions = sessionsMax ?? most;
  const endpoint = new McpEndpoint({ mcpSessions, mcpSessionsPerToken: mcpSessions });
  let door: FrontDoor = () => ({ refusal: refusal('CLOSED') });
  const entrance = new Entrance({
    door: (head) => door(head),
    admission,
    kindOf: () => ({ kind: 'step', bytesMax: MESSAGE_BYTES_MAX }),
  });
  const listener = await listenHttp({
    host,
    port,
    handle: async (request, response) => {
      const entered = await entrance.enter(request, response);
      if (entered === null) return;
      const who = 'reason' in entered ? entered : (forWhat(request, PATHS) ?? service);
      await endpoint.handle(request, response, who);
    },
    failed: (error) => service.log.error('a request over HTTP failed', { error }),
  });
  door = doorAt(listener.port);
  return {
    url: `http://${named(host)}:${listener.port}${MCP_PATH}`,
    close: async () => {
      await listener.close(CLOSE_MS);
      await endpoint.close();
    },
  };
}

/** Refusals by a limit are problem documents here as over HTTP. */
const LIMITS_REACHED: readonly string[] = ['TOO_MANY_REQUESTS', 'TOO_MANY_FAILURES', 'OVERLOADED'];

/** An answer that is not the SDK's. */
interface Reply {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The one place of MCP, for whoever has come through the front door. */
export class McpEndpoint {
  readonly #sessions: McpSessions;

  constructor(limits: SessionLimits = limitsOf()) {
    this.#sessions = new McpSessions(limits);
  }

  /** @param who what the service is for whoever asks, or why there is none */
  async handle(request: IncomingMessage, response: ServerResponse, who: McpService | Refusal): Promise<void> {
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    if ('reason' in who && LIMITS_REACHED.includes(who.code)) {
      sendRefusal(response, who);
      return;
    }
    const reply = 'reason' in who ? refused(who) : await replyTo(request, response, who, this.#sessions);
    if (reply === null) return;
    const form = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(reply.text) };
    response.writeHead(reply.status, { ...form, ...reply.headers });
    response.end(reply.text);
  }

  close(): Promise<void> {
    return this.#sessions.close();
  }
}

/** @returns null where the SDK has answered */
async function replyTo(
  request: IncomingMessage,
  response: ServerResponse,
  service: McpService,
  sessions: McpSessions,
): Promise<Reply | null> {
  const strange = request.method === 'POST' ? inWhichForm(request.headers) : null;
  if (strange !== null) return refused(strange);
  const id = request.headers['mcp-session-id'];
  const known = typeof id === 'string' ? sessions.get(id, service) : undefined;
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
  const session = known ?? (isInitializeRequest(read.message) ? await sessions.open(service) : null);
  if (session === null) return reply(400, SERVER_ERROR, 'Mcp-Session-Id is needed');
  if (session === 'full') return refused(refusal('TOO_MANY_REQUESTS', { 'Retry-After': '1' }));
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
