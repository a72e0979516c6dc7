// MCP sessions over HTTP, by whose they are. One token cannot close the session of another by opening more.

import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { drawToken } from '../../adapters/keys/access-token.js';
import type { AdmissionLimits } from '../admission/admission-limits.js';
import { sdkServer } from './sdk-server.js';
import { createConnection, type McpService } from './mcp-service.js';

export type McpSessionLimits = Pick<AdmissionLimits, 'mcpSessions' | 'mcpSessionsPerToken'>;

export interface McpSession {
  readonly id: string;
  /** Whose it is: to know its id is not enough. */
  readonly service: McpService;
  readonly transport: StreamableHTTPServerTransport;
  /** Requests that have no answer yet. */
  pending: number;
  readonly close: () => Promise<void>;
}

export class McpSessions {
  readonly #limits: McpSessionLimits;
  /** The one that was used last comes last. */
  readonly #sessions = new Map<string, McpSession>();
  /** One opening after the other: each sees the sessions of those before it. */
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

  /** @returns `full` where no session may be closed for it */
  open(service: McpService): Promise<McpSession | 'full'> {
    const opening = this.#opening.then(() => this.#open(service));
    this.#opening = opening.catch(() => undefined);
    return opening;
  }

  async #open(service: McpService): Promise<McpSession | 'full'> {
    if (!(await this.#evictIdle(service))) return 'full';
    const id = drawToken();
    const connection = createConnection(service, id);
    const server = sdkServer(connection, service.version, service.log);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      // The agent has said goodbye; one that is merely gone has its run until that has been silent for too long.
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

  /** A token that has its limit gives up one of its own; else a token that has more sessions than this one does. */
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
