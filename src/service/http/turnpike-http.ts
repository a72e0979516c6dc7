// The HTTP service on an open Turnpike, for a server of one's own: as a plugin of Fastify or as a plain handler.

import type { FastifyPluginAsync } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PageFile } from '../../adapters/page-folder.js';
import { systemClock } from '../../adapters/system-clock.js';
import { winstonLog } from '../../adapters/winston-log.js';
import { SESSION_ROLES } from '../../contract/session.js';
import type { Clock } from '../../ports/clock.js';
import type { Log } from '../../ports/log.js';
import type { Principal, TokenBook } from '../../ports/token-book.js';
import { DEFAULTS } from '../../runtime/open-request.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import { AdmissionController } from '../admission/controller.js';
import type { AdmissionOptions } from '../admission/limits.js';
import { forWhat, frontDoor } from '../front-door.js';
import { homeSource } from '../inspector/ledger-source.js';
import type { InspectorSource } from '../inspector/source.js';
import { deskOf, mcpService, type SessionOptions } from '../mcp/options.js';
import type { AgentIdentity } from '../mcp/run-door.js';
import { MCP_PATH, McpEndpoint } from '../mcp/serve-http.js';
import type { McpService } from '../mcp/service.js';
import { packageVersion } from '../package-version.js';
import { refusal } from '../problems.js';
import { httpPlugin, type Enter } from './app.js';
import { handler, matchedEntrance, type Beside, type BesideOf } from './handler.js';
import { ledgerAudit } from './ledger-audit.js';
import { KeyedSteps } from './keyed-steps.js';
import { Metrics } from './metrics.js';
import { isOpenOf } from './page.js';
import { ROUTES } from './routes.js';
import { RunAccess } from './run-access.js';
import type { AccessAudit, HttpService } from './service.js';
import { sessionCaller } from './session-routes.js';
import { Streams } from './stream.js';

export interface TurnpikeHttpOptions {
  readonly turnpike: Turnpike;
  readonly tokens: TokenBook;
  /** As they stand in the Host header, with their port; compared exactly. */
  readonly hosts: readonly string[];
  /** Of pages that may ask. Default: none; whoever asks without a page has no origin. */
  readonly origins?: readonly string[];
  /** What the routes of the inspector look at. Default: the Turnpike's own ledger. Null: they are not there. */
  readonly inspector?: InspectorSource | null;
  /** The page, as `pageFiles` reads it. Default: none. */
  readonly page?: ReadonlyMap<string, PageFile>;
  /** Lane, case and limits of agents that name none. Actor and role are those of their tokens. */
  readonly agent?: Omit<AgentIdentity, 'actor' | 'role'>;
  /** Default: sessions without a folder of specs. Null: none. */
  readonly sessions?: SessionOptions | null;
  /** Called before content is shown; what it throws keeps that from being shown. Default: the ledger tells of it. */
  readonly audit?: AccessAudit;
  /** Where export bundles go. Default: the folder of exports of the Turnpike, which this must be, or lie in. */
  readonly exports?: string;
  /** How much one connection, one token and all of them may use; `DEFAULT_LIMITS` has the defaults. */
  readonly admission?: AdmissionOptions;
  readonly clock?: Clock;
  readonly log?: Log;
}

export interface TurnpikeHttp {
  /** For a Fastify of one's own. The page and MCP are not in it. */
  readonly plugin: FastifyPluginAsync;
  /** For any server: everything, with MCP at /mcp. Never throws. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Ends the streams, which would else keep a server from closing, and takes no new ones. */
  endStreams(): void;
  /** Ends the streams. What is under way is finished; nothing new is taken. */
  close(): Promise<void>;
}

export function turnpikeHttp(options: TurnpikeHttpOptions): TurnpikeHttp {
  const admission = admissionOf(options);
  const service = serviceOf(options, admission);
  const { page = NO_PAGE } = options;
  const { hosts, origins = [], tokens } = options;
  const door = frontDoor({ hosts, origins, tokens, isOpen: isOpenOf(page) });
  const agents = new McpDoor(options, service, new McpEndpoint(admission.limits));
  const plugin = (enter: Enter): FastifyPluginAsync => httpPlugin({ service, routes: ROUTES, enter });
  const toAgents: Beside['handle'] = (request, response, principal) => agents.handle(request, response, principal);
  const beside: BesideOf = (path) => (path === MCP_PATH ? { name: 'mcp', handle: toAgents } : null);
  const { metrics, log } = service;
  const own = handler({ door, page, admission, routes: ROUTES, metrics, log, plugin, beside });
  return {
    plugin: plugin(matchedEntrance({ door, admission })),
    handler: own.handle,
    endStreams: () => service.streams.close(),
    async close() {
      service.streams.close();
      await agents.close();
      await own.close();
      if (options.inspector === undefined) await service.inspector?.close();
    },
  };
}

const NO_PAGE: ReadonlyMap<string, PageFile> = new Map();

/** One for all that is served: HTTP and MCP take from the same shares. */
function admissionOf({ turnpike, admission, clock = systemClock() }: TurnpikeHttpOptions): AdmissionController {
  const { pace } = turnpike.ledger;
  return new AdmissionController({ clock, pace, ...(admission === undefined ? {} : { limits: admission }) });
}

function serviceOf({ turnpike, tokens, ...options }: TurnpikeHttpOptions, admission: AdmissionController): HttpService {
  const { agent = {}, sessions = {}, clock = systemClock(), log = winstonLog('warn') } = options;
  const own = (): InspectorSource => homeSource(turnpike.ledger, turnpike.home ?? turnpike.keys);
  const inspector = options.inspector === undefined ? own() : options.inspector;
  const size = (): Promise<number> => turnpike.ledger.size();
  const streams = new Streams({ size, tokens, clock, log });
  return {
    turnpike,
    tokens,
    inspector,
    audit: options.audit ?? ledgerAudit(turnpike, inspector),
    agent,
    desk: (principal) =>
      sessions === null
        ? null
        : {
            ...deskOf(turnpike.sessions, sessions, sessionAgentOf(principal, agent)),
            caller: sessionCaller(principal),
          },
    exports: options.exports ?? turnpike.exports ?? 'exports',
    access: new RunAccess(turnpike.remoteAgents),
    keyed: new KeyedSteps(turnpike.ledger),
    metrics: new Metrics({ size, streams: () => streams.count, admission: () => admission.counts }),
    streams,
    version: packageVersion(),
    clock,
    log,
  };
}

const identityOf = ({ actor, role, case: bound }: Principal, agent: AgentIdentity): AgentIdentity => ({
  ...agent,
  actor,
  role,
  ...(bound === null ? {} : { case: bound }),
});

/** A role of sessions is none of agents: then they have the one that the service has for them. */
function sessionAgentOf(principal: Principal, agent: AgentIdentity): AgentIdentity {
  const identity = identityOf(principal, agent);
  if (!SESSION_ROLES.some((role) => role === principal.role)) return identity;
  return { ...identity, role: agent.role ?? DEFAULTS.role };
}

/** MCP behind the same door: what an agent is there, its token says. */
class McpDoor {
  readonly #options: TurnpikeHttpOptions;
  readonly #http: HttpService;
  readonly #endpoint: McpEndpoint;
  /** By token: what its connections remember together. */
  readonly #services = new Map<string, McpService>();

  constructor(options: TurnpikeHttpOptions, http: HttpService, endpoint: McpEndpoint) {
    this.#options = options;
    this.#http = http;
    this.#endpoint = endpoint;
  }

  handle(request: IncomingMessage, response: ServerResponse, principal: Principal | null): Promise<void> {
    const why = forWhat(request, { [MCP_PATH]: ['POST', 'DELETE'] });
    const may = principal?.rights.has('act') === true;
    const who = why ?? (may ? this.#serviceOf(principal) : refusal('RIGHT_MISSING'));
    return this.#endpoint.handle(request, response, who);
  }

  close(): Promise<void> {
    return this.#endpoint.close();
  }

  #serviceOf(principal: Principal): McpService {
    const known = this.#services.get(principal.id);
    if (known !== undefined) return known;
    const { turnpike, agent = {}, sessions = {} } = this.#options;
    const { log } = this.#http;
    const maySpeak = principal.rights.has('sessions') && sessions !== null;
    const { role } = sessionCaller(principal);
    const speaking = SESSION_ROLES.find((one) => one === role) ?? 'autonomy_runner';
    const service = mcpService({
      turnpike,
      policy: () => turnpike.policy(),
      agent: identityOf(principal, agent),
      sessions: maySpeak ? { ...sessions, role: speaking } : null,
      log,
    });
    this.#services.set(principal.id, service);
    return service;
  }
}
