// The tools that features add to an MCP server.

import type { SessionOptions } from '../../features/sessions/session-tool-options.js';
import type { Principal } from '../../engine/ports/token-book.js';
import type { Turnpike } from '../../host/turnpike.js';
import type { AddedTool } from './offer.js';
import type { AgentIdentity } from './run-gateway.js';

/** Options that only the tools of features read. */
export interface AddedToolOptions {
  /** Default: sessions without a folder of specs. Null: sessions are not offered. */
  readonly sessions?: SessionOptions | null;
}

/** The agents of one server, and what their tools work on. */
export interface ToolContext {
  readonly turnpike: Pick<Turnpike, 'remoteAgents' | 'sessions'>;
  readonly agent: AgentIdentity;
  /** The token of the agents; null if their client has none. */
  readonly principal: Principal | null;
  readonly options: AddedToolOptions;
}

/**
 * Opens the tools of a feature, in the order in which they are listed; none if the agents are not offered them.
 * @throws UsageError for an option that cannot be used
 */
export type OpenTools = (context: ToolContext) => readonly AddedTool[];
