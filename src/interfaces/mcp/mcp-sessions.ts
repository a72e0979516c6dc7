// MCP sessions over HTTP, by their owners: protocol 2025-11-25 and older. A token cannot close the sessions of another
// token by opening more.

import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { drawToken } from '../../stores/keys/access-token.js';
import type { AdmissionLimits } from '../admission/admission-limits.js';
import { sdkServer } from './sdk-server.js';
import { createConnection, type McpService } from './mcp-service.js';

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
