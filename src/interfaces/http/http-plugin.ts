// Serves the routes with Fastify. Requests have passed the guard; here the service finds the route, checks the right,
// reads and validates the body, and sends the result.

import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../../core/contract/json.js';
import { isConforming } from '../../core/contract/validators.js';
import { isJsonObject } from '../../core/contract/json.js';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AdmittedWork } from '../admission/admission-controller.js';
import type { AdmissionOutcome } from '../service/request-admission.js';
import { checkContentType, pathOf } from '../service/request-guard.js';
import { readMessage } from '../mcp/read-message.js';
import { problemText, PROBLEM_TYPE, createRefusal, type Refusal, toRefusal } from '../service/problems.js';
import { RequestSlot } from './request-slot.js';
import { RouteIndex, BinaryBody, methodsOf, parseValues, type RouteRequest, type Route } from './routes/route.js';
import { COMMON_HEADERS, sendResponse } from './send-response.js';
import { withWorkerAddress } from './worker-address.js';
import { hasOneOf, type InspectionService } from './http-service.js';

/** Limit of a body that is not a proposal. */
export const BODY_BYTES_MAX = 262_144;
/** Limit of a proposal. Policy limits are lower, and a payload that policy rejects is a step like any other. */
export const STEP_BYTES_MAX = 4_194_304;
const PARAM_CHARS_MAX = 256;
const PREFIX = '/api/v1';

export type HttpAppService = Pick<InspectionService, 'metrics' | 'log' | 'findWorker'>;

export interface HttpApp<S extends HttpAppService> {
  readonly service: S;
  readonly routes: readonly Route<S>[];
  /** Admits a request before anything else handles it. */
  readonly admit: AdmitRequest;
}

/** The properties of a route that determine how a request is admitted. */
export type EnteredRoute = Pick<Route, 'method' | 'path' | 'head' | 'kind' | 'body' | 'headers'>;

/** @param route the route that matches the request; undefined if none does */
export type AdmitRequest = (
  request: IncomingMessage,
  response: ServerResponse,
  route: EnteredRoute | undefined,
) => AdmissionOutcome | Promise<AdmissionOutcome>;

/** A request that was admitted with a token. */
interface AdmittedRequest {
  readonly principal: Principal;
  readonly work: AdmittedWork;
}

/** A Fastify instance of this package, for requests that the plain handler receives. */
export function createFastify(): FastifyInstance {
  const fastify = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    bodyLimit: BODY_BYTES_MAX,
    requestIdHeader: false,
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    // For addresses that match no route pattern: the framework's own answer would repeat the address.
    frameworkErrors: (_error, _request, reply) => sendRefusedReply(reply, createRefusal('NOT_FOUND')),
  });
  // Requests to unknown routes are refused before their body is read, with the service's own messages.
  fastify.removeAllContentTypeParsers();
  fastify.addHook('onRequest', (request, reply, done) => {
    if (request.is404) sendRefusedReply(reply, createRefusal('NOT_FOUND'));
    else done();
  });
  fastify.setErrorHandler((_error, _request, reply) => sendRefusedReply(reply, createRefusal('NOT_FOUND')));
  fastify.setNotFoundHandler((_request, reply) => sendRefusedReply(reply, createRefusal('NOT_FOUND')));
  return fastify;
}

/** All routes as one plugin in its own scope: its body parsers and error handlers affect only its routes. */
export const httpPlugin =
  <S extends HttpAppService>(app: HttpApp<S>): FastifyPluginAsync =>
  // eslint-disable-next-line @typescript-eslint/require-await
  async (fastify) => {
    const { service, routes, admit } = app;
    const entries = new RequestSlot<AdmittedRequest>();
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    fastify.addHook('onRequest', (request, reply, done) => {
      const decide = (outcome: AdmissionOutcome): void => {
        // The client has left: no answer.
        if (outcome === null) return void reply.hijack();
        if ('reason' in outcome) {
          sendRefusedReply(reply, outcome);
          return;
        }
        const { principal, work } = outcome;
        if (principal !== null) entries.set(request.raw, { principal, work });
        done();
      };
      const { route } = request.routeOptions.config as { readonly route?: Route<S> };
      const outcome = admit(request.raw, reply.raw, route);
      if (outcome instanceof Promise) void outcome.then(decide, done);
      else decide(outcome);
    });
    fastify.addHook('onResponse', (request, reply, done) => {
      service.metrics.request(request.routeOptions.url ?? 'none', request.method, reply.statusCode);
      done();
    });
    fastify.setErrorHandler(async (error, request, reply) => {
      const { run_id } = request.params as { readonly run_id?: string };
      sendRefusedReply(reply, await withWorkerAddress(logAndRefuse(error, service), service, run_id));
      return reply;
    });
    // Unknown addresses below the plugin's prefix are refused here; all others belong to the surrounding server.
    const notServedHandler = createNotServedHandler(routes);
    fastify.all(`${PREFIX}/*`, { onRequest: notServedHandler, handler: notServedHandler });
    for (const route of routes) {
      fastify.route({
        method: [...methodsOf(route)],
        // A HEAD request for a stream would never end, and reads would be recorded for nothing.
        exposeHeadRoute: false,
        url: route.path.replace(/\{(\w+)\}/g, ':$1'),
        config: { route },
        bodyLimit: route.body === BinaryBody ? STEP_BYTES_MAX : BODY_BYTES_MAX,
        onRequest: (request, reply, done) => {
          const refused = checkAccess(route, request, entries.get(request.raw)?.principal);
          if (refused === null) done();
          else sendRefusedReply(reply, refused);
        },
        handler: async (request, reply) => {
          const entry = entries.get(request.raw);
          const routeRequest = parseRequest(route, request, entry);
          if (entry === undefined || 'reason' in routeRequest)
            sendRefusedReply(reply, 'reason' in routeRequest ? routeRequest : ROUTE_NOT_FOUND);
          else await runRoute(reply, { request: routeRequest, work: entry.work, route, service });
          return reply;
        },
      });
    }
  };

interface RouteCall<S> {
  readonly request: AnyRouteRequest;
  readonly work: AdmittedWork;
  readonly route: Route<S>;
  readonly service: S;
}

/** Runs the handler of the route. The slot is released when the work ends, not when its client disconnects. */
async function runRoute<S extends Pick<InspectionService, 'log'>>(
  reply: FastifyReply,
  { request: routeRequest, work, route, service }: RouteCall<S>,
): Promise<void> {
  work.hold();
  try {
    await sendResponse(reply, await route.handle(routeRequest, service), { isCompressed: route.isCompressed, work });
  } catch (error) {
    const hasBegun = reply.sent;
    if (!work.isAborted && !hasBegun) throw error;
    if (!work.isAborted) service.log.error('a response over HTTP broke off', { error });
    if (!hasBegun) void reply.hijack();
  } finally {
    work.end();
  }
}

const ROUTE_NOT_FOUND = createRefusal('NOT_FOUND');

const createNotServedHandler = (routes: readonly Pick<Route, 'path' | 'method' | 'head'>[]) => {
  const index = new RouteIndex(routes);
  return ({ raw }: FastifyRequest, reply: FastifyReply): void => {
    const methods = index.methods(pathOf(raw.url ?? ''));
    // A route that did not match its own path has an invalid parameter.
    const isNowhere = methods.length === 0 || methods.some((method) => method === raw.method);
    sendRefusedReply(
      reply,
      isNowhere ? createRefusal('NOT_FOUND') : createRefusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') }),
    );
  };
};

/** The checks before the body of a request is read. */
function checkAccess(
  route: Pick<Route, 'rights' | 'body' | 'headers'>,
  request: FastifyRequest,
  principal: Principal | undefined,
): Refusal | null {
  if (principal === undefined) return createRefusal('UNAUTHENTICATED');
  if (!hasOneOf(principal, route.rights)) return createRefusal('RIGHT_MISSING');
  const key = route.body === null ? undefined : request.headers['idempotency-key'];
  // A client that sends this header relies on it, so a route that ignores it refuses the request.
  if (key !== undefined && !route.headers.includes('idempotency-key')) return createRefusal('IDEMPOTENCY_NOT_KEPT');
  if (route.body !== null) return checkContentType(request.headers, route.body === BinaryBody);
  const { 'content-length': length = '0', 'transfer-encoding': chunks } = request.headers;
  // The body would not be read, and it could last as long as a request may.
  return length === '0' && chunks === undefined ? null : createRefusal('BODY_TOO_LARGE');
}

type AnyRouteRequest = RouteRequest<unknown, unknown, unknown>;

function parseRequest(
  route: Pick<Route, 'params' | 'query' | 'body' | 'invalid'>,
  request: FastifyRequest,
  entry: AdmittedRequest | undefined,
): AnyRouteRequest | Refusal {
  const params = parseValues(route.params, request.params as JsonObject);
  // An invalid id names nothing.
  if (entry === undefined || params === null) return createRefusal('NOT_FOUND');
  const { principal, work: control } = entry;
  const query = parseValues(route.query, request.query as JsonObject);
  if (query === null) return createRefusal('INVALID_REQUEST');
  const { headers } = request;
  const bytes = request.body instanceof Uint8Array ? request.body : new Uint8Array(0);
  if (route.body === null || route.body === BinaryBody)
    return { principal, params, query, body: bytes, headers, control } as AnyRouteRequest;
  const read = readMessage(bytes);
  if (!read.ok) return createRefusal('INVALID_JSON');
  const { message: body } = read;
  if (!isJsonObject(body) || !isConforming(route.body, body)) return createRefusal(route.invalid);
  return { principal, params, query, body, headers, control } as AnyRouteRequest;
}

/** A client that is refused early may still be sending its body: the connection is not reused. */
function sendRefusedReply(reply: FastifyReply, refused: Refusal): void {
  const { body, headers } = reply.request;
  const { 'content-length': length = '0', 'transfer-encoding': chunks } = headers;
  const unread = body === undefined && (length !== '0' || chunks !== undefined);
  void reply
    .code(refused.status)
    .headers({ ...COMMON_HEADERS, ...refused.headers, ...(unread ? { Connection: 'close' } : {}) })
    .type(PROBLEM_TYPE)
    .send(problemText(refused));
}

function logAndRefuse(error: unknown, { log }: Pick<InspectionService, 'log'>): Refusal {
  const { code } = error as { readonly code?: unknown };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return createRefusal('BODY_TOO_LARGE');
  if (typeof code === 'string' && code.startsWith('FST_ERR_CTP_')) return createRefusal('INVALID_REQUEST');
  const { refusal: refused, unforeseen } = toRefusal(error);
  if (unforeseen) log.error('a request over HTTP failed', { error });
  return refused;
}
