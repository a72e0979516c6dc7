// What one MCP server is made of, whatever carries it.

import type { Policy } from '../../policy/policy.js';
import type { Log } from '../../ports/log.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/open-input.js';
import { AgentConnection, type AgentConnectionOptions } from './agent-connection.js';
import type { PlacedCalls } from './placed-calls.js';
import type { AgentIdentity, RunGateway } from './run-gateway.js';
import type { SessionToolsOptions } from './session-tools.js';

export interface McpService {
  readonly door: RunGateway;
  /** What new runs would be judged by. */
  readonly policy: () => Promise<Policy>;
  readonly identity: AgentIdentity;
  /** Null where there are no sessions. */
  readonly desk: SessionToolsOptions | null;
  /** Of this package, for the greeting. */
  readonly version: string;
  /** What its connections remember together: they are one agent's, known by one token. */
  readonly keyed: PlacedCalls;
  /** Calls of its connections that wait for their answers. */
  readonly calls: { waiting: number };
  readonly log: Log;
}

/** @param id unlike that of any other connection, ever */
export function createConnection(
  service: McpService,
  id: string,
  storedRun?: AgentConnectionOptions['storedRun'],
): AgentConnection {
  const { door: agentRuns, policy, identity, desk: sessionTools, keyed: keyedCalls, calls, log } = service;
  const lane = identity.lane ?? AGENT_DEFAULTS.lane;
  return new AgentConnection({
    id,
    agentRuns,
    policy,
    lane,
    sessionTools,
    keyedCalls,
    calls,
    log,
    ...(storedRun === undefined ? {} : { storedRun }),
  });
}
