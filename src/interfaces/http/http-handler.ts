// A plain request handler: the request guard and admission for every request, then the page, the mounted handlers and
// the routes.

import type { FastifyPluginAsync } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../engine/ports/log.js';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AdmissionController } from '../admission/admission-controller.js';
import type { FindClientAddress } from '../service/client-address.js';
import { RequestAdmission, type AdmissionOutcome, type RequestAdmissionOptions } from '../service/request-admission.js';
import { pathOf, type GuardResult, type RequestGuard } from '../service/request-guard.js';
import { MESSAGE_BYTES_MAX } from '../mcp/read-message.js';
import { createRefusal, type Refusal, sendRefusal } from '../service/problems.js';
import { BODY_BYTES_MAX, createFastify, STEP_BYTES_MAX, type AdmitRequest, type EnteredRoute } from './http-plugin.js';
import type { Metrics } from './metrics.js';
import { PAGE_METHODS, sendPage, createServedPage, type Page } from './served-page.js';
import { echoRequestId } from './echo-request-id.js';
import { RequestSlot } from './request-slot.js';
import { RouteIndex, BinaryBody, methodsOf } from './routes/route.js';

export interface HandlerOptions {
  readonly guard: RequestGuard;
  /** Files that need no token, by their paths. */
  readonly page: Page;
  readonly admission: AdmissionController;
  /** The routes of the plugin: it receives no other requests. */
  readonly routes: readonly EnteredRoute[];
  readonly metrics: Pick<Metrics, 'request'>;
  readonly log: Pick<Log, 'error'>;
  /** The address of a client. Default: that of its connection. */
  readonly addressOf?: FindClientAddress | undefined;
  /** Creates the plugin, which admits its requests with `enter`. */
  readonly plugin: (enter: AdmitRequest) => FastifyPluginAsync;
  /** Handlers for other paths than those of the routes. */
  readonly findMounted?: FindMountedHandler;
}

export interface MountedHandler {
  /** Its name in the metrics. */
  readonly name: string;
  /** @param principal the caller; null if the path needs no token */
  handle(request: IncomingMessage, response: ServerResponse, principal: Principal | null): Promise<void>;
}
/** Returns null for a path without a mounted handler. */
export type FindMountedHandler = (path: string) => MountedHandler | null;

export interface Handler {
  /** Never throws. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  close(): Promise<void>;
}

export function createHandler({ guard, page, admission, metrics, plugin, ...rest }: HandlerOptions): Handler {
  const { routes, log, addressOf, findMounted = () => null } = rest;
  const index = new RouteIndex(routes);
  const unescapedGuard: RequestGuard = (head) => guardUnescaped(guard, head);
  const requestAdmission = createRequestAdmission({ guard: unescapedGuard, admission, addressOf, index, findMounted });
  const files = createServedPage(page);
  const outcomes = new RequestSlot<AdmissionOutcome>();
  const fastify = createFastify();
  const ready = fastify.register(plugin((request) => outcomes.get(request) ?? null)).ready();
  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    outcome: AdmissionOutcome,
  ): Promise<void> => {
    if (outcome === null) return; // The client has left.
    const { method = '', url = '' } = request;
    const path = pathOf(url);
    const mounted = findMounted(path);
    const unserved =
      mounted === null ? checkServedMethod(method, page.has(path) ? PAGE_METHODS : index.methods(path)) : null;
    const refused = 'reason' in outcome ? outcome : unserved;
    if (refused !== null || 'reason' in outcome) {
      sendRefusal(response, refused ?? createRefusal('NOT_FOUND'));
      metrics.request(mounted?.name ?? (page.has(path) ? 'page' : 'none'), method, response.statusCode);
      return;
    }
    const file = files.get(path);
    if (file !== undefined) {
      sendPage(request, response, file);
      // The whole file is in the send buffer. Clients without a token share few slots: one that does not read holds
      // none.
      outcome.work.detach();
      metrics.request('page', method, response.statusCode);
    } else if (mounted !== null) {
      response.once('close', () => metrics.request(mounted.name, method, response.statusCode));
      outcome.work.hold();
      await mounted.handle(request, response, outcome.principal).finally(() => outcome.work.end());
    } else {
      outcomes.set(request, outcome);
      await ready;
      fastify.routing(request, response);
    }
  };
  return {
    async handle(request, response) {
      try {
        echoRequestId(request, response, index);
        const outcome = requestAdmission.admit(request, response);
        await serve(request, response, outcome instanceof Promise ? await outcome : outcome);
      } catch (error) {
        // A client that leaves while it sends its body is not a failure of the service.
        if (!request.socket.destroyed) log.error('a request over HTTP failed', { error });
        response.destroy();
      }
    },
    close: async () => {
      await fastify.close();
    },
  };
}

/** Admits requests for these routes and for the mounted handlers. */
export function createRequestAdmission({
  guard,
  admission,
  addressOf,
  index,
  findMounted = () => null,
}: Pick<HandlerOptions, 'guard' | 'admission' | 'addressOf' | 'findMounted'> & {
  readonly index: RouteIndex<EnteredRoute>;
}): RequestAdmission {
  return new RequestAdmission({
    guard,
    admission,
    addressOf,
    kindOf: ({ method = '', url = '' }) => {
      const path = pathOf(url);
      const route = index.find(path).find((candidate) => methodsOf(candidate).includes(method));
      if (route !== undefined || findMounted(path) === null) return demandOf(route);
      return { kind: 'step', bytesMax: MESSAGE_BYTES_MAX };
    },
  });
}

/**
 * Admits requests that the server of an embedding service has matched with their routes. The path alone does not
 * determine the route: that server may add prefixes, and may have its own rules for escapes, case and slashes.
 */
export function matchedEntrance({
  guard,
  admission,
  addressOf,
}: Pick<HandlerOptions, 'guard' | 'admission' | 'addressOf'>): AdmitRequest {
  const matched = new RequestSlot<EnteredRoute>();
  const requestAdmission = new RequestAdmission({
    guard,
    admission,
    addressOf,
    kindOf: (request) => demandOf(matched.get(request)),
  });
  return (request, response, route) => {
    if (route !== undefined) matched.set(request, route);
    return requestAdmission.admit(request, response);
  };
}

/**
 * The kind and body limit of a request. A request without a route is refused or gets a file: it costs almost nothing.
 */
function demandOf(route: EnteredRoute | undefined): ReturnType<RequestAdmissionOptions['kindOf']> {
  if (route === undefined) return { kind: 'live', bytesMax: 0 };
  const bytesMax = route.body === null ? 0 : route.body === BinaryBody ? STEP_BYTES_MAX : BODY_BYTES_MAX;
  return { kind: route.kind, bytesMax };
}

/** Refuses unknown methods, for which the framework would send a response of its own. */
function checkServedMethod(method: string, methods: readonly string[]): Refusal | null {
  if (methods.includes(method)) return null;
  return methods.length === 0
    ? createRefusal('NOT_FOUND')
    : createRefusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') });
}

/** Refuses paths with escapes: no id and no file of the page contains a character that needs one. */
function guardUnescaped(guard: RequestGuard, head: Parameters<RequestGuard>[0]): ReturnType<RequestGuard> {
  const guarded = guard(head);
  return guarded instanceof Promise
    ? guarded.then((awaited) => refuseEscapes(awaited, head))
    : refuseEscapes(guarded, head);
}

function refuseEscapes(admission: GuardResult, head: Parameters<RequestGuard>[0]): GuardResult {
  if (admission.refusal !== null) return admission;
  const url = head.url ?? '';
  return url.startsWith('/') && !pathOf(url).includes('%') ? admission : { refusal: createRefusal('NOT_FOUND') };
}
