// The HTTP service on an open Turnpike, for an embedding service's own server: as a Fastify plugin or as a plain
// handler.

import type { FastifyPluginAsync } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PageFile } from '../inspector/page-folder.js';
import { systemClock } from '../../system/system-clock.js';
import { winstonLog } from '../../system/winston-log.js';
import { canonicalJson } from '../../core/contract/json.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { ClusterDirectory } from '../../engine/ports/ledger/cluster.js';
import type { Log } from '../../engine/ports/log.js';
import type { Principal, TokenBook } from '../../engine/ports/token-book.js';
import { addDatabaseCheck } from '../../host/readiness/turnpike-readiness.js';
import type { Turnpike } from '../../host/turnpike.js';
import { AdmissionController } from '../admission/admission-controller.js';
import type { AdmissionOptions } from '../admission/admission-limits.js';
import { clientAddressFinder, RequestAdmission } from '../service/request-admission.js';
import { checkMethod, createRequestGuard } from '../service/request-guard.js';
import { homeInspectorSource } from '../inspector/ledger-inspector-source.js';
import type { InspectorSource } from '../inspector/inspector-source.js';
import type { IdentityOptions, IdentityService, PageLogin } from '../service/identity-service.js';
import type { McpService } from '../mcp/agent-connection.js';
import { createMcpService } from '../mcp/mcp-service.js';
import { agentOf, type AgentIdentity } from '../mcp/run-gateway.js';
import { MCP_DEMAND, MCP_PATH, McpEndpoint } from '../mcp/serve-http.js';
import { readPackageVersion } from '../../system/package-version.js';
import { createLruMap } from '../../system/lru-map.js';
import { createRefusal } from '../service/problems.js';
import { httpPlugin, type HttpApp } from './http-plugin.js';
import type { MonitoredProcess } from './admin/serve-admin.js';
import { createHandler, type MountedHandler } from './http-handler.js';
import { ledgerAudit } from './routes/ledger-audit.js';
import { createMetricRegistry } from './metric-registry.js';
import { Metrics, type MetricRegistry, readinessGauges } from './metrics.js';
import { createOpenCheck } from './served-page.js';
import { ROUTES } from './routes/system-routes.js';
import { RunAccess } from './routes/run-access.js';
import type { AccessAudit, FeatureOptions, HttpService } from './http-service.js';
import { EventStreams } from './event-streams.js';
import { WorkerAddresses, withWorkerAddress } from './worker-address.js';
import { usageError } from '../../core/errors.js';
import { IDENTITY_SERVICES } from '../../features/feature-services.js';

/** Options of the HTTP service of one Turnpike. */
export interface TurnpikeHttpOptions extends FeatureOptions {
  readonly turnpike: Turnpike;
  readonly tokens: TokenBook;
  /** Issuers whose tokens identify callers too. Default: none. */
  readonly identity?: IdentityOptions | IdentityService;
  /** Values of the Host header, with the port; compared exactly. */
  readonly hosts: readonly string[];
  /** Origins of pages that may send requests. Default: none; a request that comes from no page has no origin. */
  readonly origins?: readonly string[];
  /** The ledger that the inspector routes show. Default: the Turnpike's own. Null: there are no inspector routes. */
  readonly inspector?: InspectorSource | null;
  /** The page, from `pageFiles`. Default: none. */
  readonly page?: ReadonlyMap<string, PageFile>;
  /** Defaults for lane, case and limits of agents. Actor and role come from their tokens. */
  readonly agent?: Omit<AgentIdentity, 'actor' | 'role'>;
  /** For agents over MCP, per token: `McpOptions.newRunsMax`. Default: any number. */
  readonly newRunsMax?: number;
  /** Called before content is shown; if it throws, the content is not shown. Default: the ledger records the read. */
  readonly audit?: AccessAudit;
  /**
   * The folder for exported bags. Default: the Turnpike's folder of exports. Another value must be that folder or lie
   * below it.
   */
  readonly exports?: string;
  /** Limits of one connection, of one token and of all together. Default: `DEFAULT_LIMITS`. */
  readonly admission?: AdmissionOptions;
  /**
   * Proxies whose `X-Forwarded-For` header is trusted: addresses, or networks such as `10.0.0.0/8`. Default: none.
   */
  readonly trustedProxies?: readonly string[];
  /** The list of workers of a shared ledger, for health and metrics. Default: none. The caller closes it. */
  readonly cluster?: Pick<ClusterDirectory, 'status' | 'isActive'>;
  /** Whether this worker has no sandbox volume: then MCP requests are refused, as steps are. Default: false. */
  readonly withoutVolume?: boolean;
  /** Whether the sandbox may be on a network file system, which health shows. Default: false. */
  readonly unsafeShared?: boolean;
  /** Where the metrics of the service are registered, and collected for its route. Default: a registry of its own. */
  readonly telemetry?: MetricRegistry;
  readonly clock?: Clock;
  readonly log?: Log;
}

/** The HTTP service, as a Fastify plugin and as a request handler. */
export interface TurnpikeHttp {
  /** For an existing Fastify server. Contains neither the page nor MCP. */
  readonly plugin: FastifyPluginAsync;
  /** For any server: contains all routes, with MCP at /mcp. Never throws. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** What an admin listener of its own shows: `serveAdmin`. */
  readonly monitoring: MonitoredProcess;
  /** Ends the streams, which would otherwise keep a server from closing, and refuses new ones. */
  endStreams(): void;
  /** Ends the streams and refuses new requests; requests in flight are finished. */
  close(): Promise<void>;
}

/** Creates the HTTP service of a Turnpike without a listener, to mount it in a server of the caller. */
export function turnpikeHttp(options: TurnpikeHttpOptions): TurnpikeHttp {
  const admission = createAdmission(options);
  const service = createService(options, admission);
  const { page = NO_PAGE } = options;
  const { tokens } = options;
  const { identity } = service;
  const addressOf = clientAddressFinder(options.trustedProxies ?? []);
  const recordFailure = (request: IncomingMessage): number => admission.recordFailure(addressOf(request));
  const origin = options.origins?.[0] ?? `http://${options.hosts[0] ?? ''}`;
  const login = identity?.openLogin(origin, recordFailure) ?? null;
  const isPage = createOpenCheck(page);
  const guard = createRequestGuard({
    ...namesWithLogin(options, login),
    tokens,
    identity,
    ...(login === null ? {} : { signIn: login.path, isReturn: (method, path) => login.isReturn(method, path) }),
    isOpen: (method, path) => isPage(method, path) || login?.has(path) === true,
  });
  const mcpHandler = new McpHandler(options, service, new McpEndpoint(admission.limits));
  const serveMcp: MountedHandler = {
    name: 'mcp',
    demand: MCP_DEMAND,
    handle: (request, response, principal) => mcpHandler.handle(request, response, principal),
  };
  const serveLogin: MountedHandler = {
    name: 'login',
    demand: MCP_DEMAND,
    handle: async (request, response) => login?.handle(request, response),
  };
  const app: HttpApp<HttpService> = {
    service,
    routes: ROUTES,
    admission: new RequestAdmission({ guard, admission, addressOf }),
    observe(request, response) {
      try {
        for (const observeRequest of OBSERVERS) observeRequest(request, response, service);
      } catch (error) {
        service.log.error('a request was not counted', { error });
      }
    },
  };
  const own = createHandler({
    ...app,
    page,
    findMounted: (path) => (path === MCP_PATH ? serveMcp : login?.has(path) === true ? serveLogin : null),
  });
  return {
    plugin: httpPlugin(app),
    handler: own.handle,
    monitoring: { readiness: options.turnpike.readiness, metrics: service.metrics },
    endStreams: () => service.streams.close(),
    async close() {
      service.streams.close();
      await mcpHandler.close();
      await own.close();
      if (options.inspector === undefined) await service.inspector?.close();
    },
  };
}

/** The page of a login is served under the name to which the issuer sends browsers back. */
function namesWithLogin(
  { hosts, origins = [] }: Pick<TurnpikeHttpOptions, 'hosts' | 'origins'>,
  login: PageLogin | null,
): { readonly hosts: readonly string[]; readonly origins: readonly string[] } {
  if (login === null) return { hosts, origins };
  return { hosts: [...hosts, new URL(login.origin).host], origins: [...origins, login.origin] };
}

const OBSERVERS = ROUTES.flatMap(({ observe = null }) => (observe === null ? [] : [observe]));
const NO_PAGE: ReadonlyMap<string, PageFile> = new Map();

/** One controller for HTTP and MCP, which use the same shares. */
function createAdmission({ turnpike, admission, clock = systemClock() }: TurnpikeHttpOptions): AdmissionController {
  const { pace } = turnpike.ledger;
  return new AdmissionController({ clock, pace, ...(admission === undefined ? {} : { limits: admission }) });
}

function createService(
  { turnpike, tokens, ...options }: TurnpikeHttpOptions,
  admission: AdmissionController,
): HttpService {
  const { agent = {}, clock = systemClock(), log = winstonLog('warn') } = options;
  const own = (): InspectorSource => homeInspectorSource(turnpike.ledger, turnpike.home ?? turnpike.keys);
  const inspector = options.inspector === undefined ? own() : options.inspector;
  const size = (): Promise<number> => turnpike.ledger.size();
  const streams = new EventStreams({ size, tokens, clock, log });
  const version = readPackageVersion();
  if (options.cluster !== undefined) addDatabaseCheck(turnpike, options.cluster, version);
  const identity = options.identity === undefined ? null : createIdentity(options.identity, clock, log);
  return {
    turnpike,
    tokens,
    ...(identity === null ? {} : { identity }),
    inspector,
    audit: options.audit ?? ledgerAudit(turnpike, inspector),
    agent,
    options,
    exports: options.exports ?? turnpike.exports ?? 'exports',
    ...(options.cluster === undefined ? {} : { findWorker: findWorkerIn(options.cluster, clock, version) }),
    unsafeShared: options.unsafeShared ?? false,
    access: new RunAccess(turnpike.remoteAgents),
    metrics: new Metrics(
      {
        size,
        streams: () => streams.count,
        admission: () => admission.counts,
        gauges: readinessGauges(turnpike),
        ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
        ...(identity === null ? {} : { identity: () => identity.counts }),
      },
      options.telemetry ?? createMetricRegistry(log),
    ),
    streams,
    version,
    clock,
    log,
  };
}

function findWorkerIn(cluster: Pick<ClusterDirectory, 'status'>, clock: Clock, version: string) {
  const addresses = new WorkerAddresses(cluster, clock, version);
  return (run_id: string, isOfLater?: boolean): Promise<string | null> => addresses.find(run_id, isOfLater);
}

/** More than there are stored tokens. */
const SERVICES_MAX = 4_096;

/** MCP behind the same guard: the token decides who the agent is. */
class McpHandler {
  readonly #options: TurnpikeHttpOptions;
  readonly #http: HttpService;
  readonly #endpoint: McpEndpoint;
  /**
   * By token and person: the state that its connections share. An issuer may have any number of callers: beyond the
   * limit, the MCP sessions of a caller that has not been here for long are forgotten.
   */
  readonly #services = createLruMap<McpService>(SERVICES_MAX);

  constructor(options: TurnpikeHttpOptions, http: HttpService, endpoint: McpEndpoint) {
    this.#options = options;
    this.#http = http;
    this.#endpoint = endpoint;
  }

  async handle(request: IncomingMessage, response: ServerResponse, principal: Principal | null): Promise<void> {
    const refused =
      checkMethod(request, { [MCP_PATH]: ['POST', 'DELETE'] }) ??
      (this.#options.withoutVolume === true
        ? await withWorkerAddress(createRefusal('VOLUME_ELSEWHERE'), this.#http, principal?.id)
        : null);
    const canAct = principal?.rights.has('act') === true;
    const serviceOrRefusal = refused ?? (canAct ? this.#serviceOf(principal) : createRefusal('RIGHT_MISSING'));
    return this.#endpoint.handle(request, response, serviceOrRefusal);
  }

  close(): Promise<void> {
    return this.#endpoint.close();
  }

  #serviceOf(principal: Principal): McpService {
    // Policy may map the actor of a token to another person while the service runs.
    const key = canonicalJson([principal.id, principal.person ?? null]);
    const known = this.#services.get(key);
    if (known !== undefined) return known;
    const { turnpike, agent = {} } = this.#options;
    const { log } = this.#http;
    const identity = agentOf(principal, agent);
    const options = { ...this.#options, policy: () => turnpike.policy(), agent: identity, log };
    const service = createMcpService(options, principal);
    this.#services.set(key, service);
    return service;
  }
}

/**
 * What identifies callers of issuers: that of the caller, or of the feature.
 * @throws UsageError for an issuer that cannot be used, and without the feature
 */
export function createIdentity(options: IdentityOptions | IdentityService, clock: Clock, log: Log): IdentityService {
  if ('identify' in options) return options;
  const [create] = IDENTITY_SERVICES;
  if (create === undefined) throw usageError('identity: this installation has no feature that identifies callers');
  return create(options, clock, log);
}
