// What one MCP server is made of, whatever carries it.

import type { Policy } from '../../policy/policy.js';
import type { Log } from '../../ports/log.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/open-input.js';
import { AgentConnection, type AgentConnectionOptions } from './agent-connection.js';
import { PlacedCalls } from './tool-calls.js';
import { type AgentIdentity, type RunGateway, createRunGateway } from './run-gateway.js';
import type { SessionToolsOptions, SessionDefaults } from './session-tools.js';
import { policySource } from '../../adapters/policy/policy-source.js';
import { findSpecFile, resolveSpecFolder } from '../../adapters/files/spec-folder.js';
import { systemClock } from '../../adapters/system/system-clock.js';
import { winstonLog } from '../../adapters/system/winston-log.js';
import type { SessionRole } from '../../contract/session/session.js';
import { UsageError } from '../../errors.js';
import type { PolicySource } from '../../ports/policy-source.js';
import { catalogueFrom, type RegistrationOptions } from '../../runtime/effects/define-effects.js';
import { PolicyCache } from '../../runtime/policy-cache.js';
import type { Sessions } from '../../runtime/sessions/sessions.js';
import { shippedContract } from '../../runtime/shipped-contract.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import { readPackageVersion } from '../package-version.js';

/** What the MCP server needs of the service behind it. */
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

/** What is offered should be what runs are judged by: the policy and the registrations of `openTurnpike`. */
export interface OfferOptions extends RegistrationOptions {
  /** Default: the contract that this package ships. */
  readonly contract?: string;
  readonly policies?: PolicySource;
  /** The same from whoever has it already; then the policy and the registrations need not be named. */
  readonly policy?: () => Promise<Policy>;
  /** Who the agents are; as of `startAgent`. Sessions are started with the same. */
  readonly agent?: AgentIdentity;
  readonly log?: Log;
}

/** Options of the session tools of an MCP server. */
export interface SessionOptions {
  /** As whom agents speak to sessions. Default: `autonomy_runner`. */
  readonly role?: SessionRole;
  /** Folder of the specs that agents may start sessions of, by their ids. */
  readonly specs?: string;
  /** Let agents bring specs of their own. What a spec tells to run is run. Default: false. */
  readonly inlineSpecs?: boolean;
  /** Posture, gates and limits of the sessions that agents start. */
  readonly settings?: Omit<SessionDefaults, 'actor' | 'agentRole' | 'lane' | 'case' | 'scope' | 'exposure'>;
}

export interface McpOptions extends OfferOptions {
  /** In this process, or through the one that has the home. */
  readonly turnpike: Pick<Turnpike, 'remoteAgents' | 'sessions'>;
  /** Null: sessions are not offered. */
  readonly sessions?: SessionOptions | null;
}

/** An MCP server on an open Turnpike, to be served over stdio or HTTP. @throws UsageError */
export function mcpService({ turnpike, sessions = {}, ...options }: McpOptions): McpService {
  const { agent = {}, log = winstonLog('warn'), policy = createPolicyReader(options) } = options;
  return {
    door: createRunGateway(turnpike.remoteAgents, agent),
    identity: agent,
    policy,
    desk: sessions === null ? null : createSessionTools(turnpike.sessions, sessions, agent),
    keyed: new PlacedCalls(),
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

/** The sessions as one agent speaks to them. */
export function createSessionTools(
  sessions: Sessions,
  options: SessionOptions,
  agent: AgentIdentity,
): SessionToolsOptions {
  const { role = 'autonomy_runner', specs, inlineSpecs = false, settings = {} } = options;
  const folder = specs === undefined ? null : requireFolder(specs);
  return {
    sessions,
    caller: { actor: agent.actor ?? AGENT_DEFAULTS.actor, role },
    settings: { ...settings, ...sessionDefaultsOf(agent) },
    specFile: (spec_id) => (folder === null ? null : findSpecFile(folder, spec_id)),
    inlineSpecs,
  };
}

const sessionDefaultsOf = ({
  actor,
  role,
  lane,
  case: case_id,
  scope,
  exposure,
  correlation,
}: AgentIdentity): SessionDefaults => ({
  ...(actor === undefined ? {} : { actor }),
  ...(role === undefined ? {} : { agentRole: role }),
  ...(lane === undefined ? {} : { lane }),
  ...(case_id === undefined ? {} : { case: case_id }),
  ...(scope === undefined ? {} : { scope }),
  ...(exposure === undefined ? {} : { exposure }),
  ...(correlation === undefined ? {} : { correlation }),
});

function requireFolder(folder: string): string {
  try {
    return resolveSpecFolder(folder);
  } catch (cause) {
    throw new UsageError({ code: 'USAGE', message: `${folder} is no folder of specs`, cause });
  }
}
