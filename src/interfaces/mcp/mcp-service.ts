// One MCP server on an open Turnpike, whatever its transport: its options, and the connections that it creates.

import type { Policy } from '../../core/policy/policy.js';
import type { Log } from '../../engine/ports/log.js';
import { declareFeatures } from '../../features/declare-features.js';
import { AgentConnection, type McpService } from './agent-connection.js';
import { ConnectionRuns, type StoredRun, RunSuccession, StoredRuns } from './own-runs.js';
import { ConnectionHistory, correlationOf, createCallCache } from './tool-calls.js';
import { type AgentIdentity, RunGateway } from './run-gateway.js';
import type { ServedTurnpike } from './offer.js';
import { FEATURE_TOOLS } from '../../features/feature-tools.js';
import { drawToken } from '../../stores/keys/access-token.js';
import { policySource } from '../../home/policy/home-policy.js';
import { systemClock } from '../../system/system-clock.js';
import { winstonLog } from '../../system/winston-log.js';
import { usageError } from '../../core/errors.js';
import type { PolicySource } from '../../engine/ports/policy-sources.js';
import { catalogueFrom, type RegistrationOptions } from '../../runtime/effects/define-effects.js';
import { PolicyCache } from '../../runtime/policy-cache.js';
import { shippedContract } from '../../runtime/shipped-contract.js';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AddedToolOptions } from '../../runtime/host-feature.js';
import { readPackageVersion } from '../../system/package-version.js';

/** @internal @param id an id that no other connection ever has */
export function createConnection(service: McpService, id: string, storedRun?: StoredRun): AgentConnection {
  const { agentRuns, succession, keyedCalls } = service;
  const ownRuns = new ConnectionRuns({ agentRuns, succession, correlation: correlationOf(id), storedRun });
  return new AgentConnection(service, { id, ownRuns, history: new ConnectionHistory(keyedCalls) });
}

/** @internal The connection of one stateless request: everything that another request needs is in the store. */
export const createStatelessConnection = (service: McpService): AgentConnection =>
  new AgentConnection(service, { id: drawToken(), ownRuns: service.storedRuns, history: service.storedRuns });

/** The offered tools must match the policy of the runs: pass the policy and registrations of `openTurnpike`. */
export interface OfferOptions extends RegistrationOptions {
  /** The contract folder. Default: the one that this package ships. */
  readonly contract?: string;
  readonly policies?: PolicySource;
  /** Returns a policy that is already loaded, instead of `contract`, `policies` and the registrations. */
  readonly policy?: () => Promise<Policy>;
  /** The identity of the agents, as for `startAgent`; also used for the sessions that they start. */
  readonly agent?: AgentIdentity;
  readonly log?: Log;
}

/** Options of an MCP server. */
export interface McpOptions extends OfferOptions, AddedToolOptions {
  /** Agents and sessions, in this process or through the process that owns the home directory. */
  readonly turnpike: ServedTurnpike;
  /**
   * How many runs an agent of this server may begin after runs that were denied, failed or were cancelled. Counted
   * while the server exists; those of stateless requests are counted in the store. 0: none, and the tool `new_run` is
   * not offered. Default: any number.
   */
  readonly newRunsMax?: number;
}

/**
 * Creates an MCP server on an open Turnpike, to be served over stdio or HTTP.
 * @throws UsageError for an unusable spec folder, or a number out of range
 */
export function mcpService(options: McpOptions): McpService {
  // Without `openTurnpike`: a policy may need a feature.
  declareFeatures();
  return createMcpService(options, null);
}

/** @internal @param principal the token of the agents; null if their client has none */
export function createMcpService(options: McpOptions, principal: Principal | null): McpService {
  const { turnpike } = options;
  const { agent = {}, log = winstonLog('warn'), policy = createPolicyReader(options), newRunsMax = null } = options;
  if (newRunsMax !== null && !(Number.isSafeInteger(newRunsMax) && newRunsMax >= 0)) {
    throw usageError('newRunsMax: a whole number, 0 or more');
  }
  const agentRuns = new RunGateway(turnpike.remoteAgents, agent);
  const succession = new RunSuccession(agentRuns, newRunsMax);
  return {
    agentRuns,
    succession,
    storedRuns: new StoredRuns({ agentRuns, identity: agent, succession, newRunsMax }),
    identity: agent,
    policy,
    addedTools: FEATURE_TOOLS.flatMap((open) => open({ turnpike, agent, principal, options })),
    keyedCalls: createCallCache(),
    calls: { waiting: 0 },
    version: readPackageVersion(),
    log,
  };
}

function createPolicyReader(options: OfferOptions): () => Promise<Policy> {
  const source = options.policies ?? policySource(options.contract ?? shippedContract());
  const policyCache = new PolicyCache(source, systemClock(), catalogueFrom(options));
  return async () => (await policyCache.current()).policy;
}
