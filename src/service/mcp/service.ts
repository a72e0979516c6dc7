// What one MCP server is made of, whatever carries it.

import type { Policy } from '../../policy/policy.js';
import type { Log } from '../../ports/log.js';
import { DEFAULTS } from '../../runtime/open-request.js';
import { Connection, type ConnectionOptions } from './connection.js';
import type { PlacedCalls } from './placed-calls.js';
import type { AgentIdentity, RunDoor } from './run-door.js';
import type { SessionDeskOptions } from './session-desk.js';

export interface McpService {
  readonly door: RunDoor;
  /** What new runs would be judged by. */
  readonly policy: () => Promise<Policy>;
  readonly identity: AgentIdentity;
  /** Null where there are no sessions. */
  readonly desk: SessionDeskOptions | null;
  /** Of this package, for the greeting. */
  readonly version: string;
  /** What its connections remember together: they are one agent's, known by one token. */
  readonly keyed: PlacedCalls;
  /** Calls of its connections that wait for their answers. */
  readonly calls: { waiting: number };
  readonly log: Log;
}

/** @param id unlike that of any other connection, ever */
export function connect(service: McpService, id: string, kept?: ConnectionOptions['kept']): Connection {
  const { door, policy, identity, desk, keyed, calls, log } = service;
  const lane = identity.lane ?? DEFAULTS.lane;
  return new Connection({ id, door, policy, lane, desk, keyed, calls, log, ...(kept === undefined ? {} : { kept }) });
}
