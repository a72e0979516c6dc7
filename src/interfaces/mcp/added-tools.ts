// The tools that features add to an MCP server.

import type { Principal } from '../../engine/ports/token-book.js';
import type { Turnpike } from '../../host/turnpike.js';
import type { AddedToolMembers, AddedToolOptions } from '../../runtime/host-feature.js';
import type { AddedTool } from './offer.js';
import type { AgentIdentity } from './run-gateway.js';

/** What an MCP server works on, in this process or through the process that owns the home directory. */
export type ServedTurnpike = Pick<Turnpike, 'remoteAgents'> & AddedToolMembers;

/** The agents of one server, and what their tools work on. */
export interface ToolContext {
  readonly turnpike: ServedTurnpike;
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
