// Serves the routes with Fastify: admits a request, checks the right of its caller, reads and validates the body, and
// sends the result.

import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJsonObject, type JsonObject } from '../../core/contract/json.js';
import { isConforming } from '../../core/contract/validators.js';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AdmittedWork } from '../admission/admission-controller.js';
import type { AdmissionOutcome, RequestAdmission, RequestDemand } from '../service/request-admission.js';
import { checkContentType, pathOf } from '../service/request-guard.js';
import { readMessage } from '../mcp/read-message.js';
import { problemText, PROBLEM_TYPE, createRefusal, type Refusal, toRefusal } from '../service/problems.js';
import { BinaryBody, methodsOf, parseValues, RouteIndex, type RouteRequest, type Route } from './routes/route.js';
import { COMMON_HEADERS, sendResponse } from './send-response.js';
import { withWorkerAddress } from './worker-address.js';
import { hasOneOf, type InspectionService } from './http-service.js';

/** Limit of a body that is not a proposal. */
export const BODY_BYTES_MAX = 262_144;
/** Limit of a proposal. Policy limits are lower, and a payload that policy rejects is a step like any other. */
export const STEP_BYTES_MAX = 4_194_304;
const PREFIX = '/api/v1';

export type HttpAppService = Pick<InspectionService, 'metrics' | 'log' | 'findWorker'>;

export interface HttpApp<S extends HttpAppService> {
  readonly service: S;
  readonly routes: readonly Route<S>[];
  /** Admits a request before anything else handles it. */
  readonly admission: Pick<RequestAdmission, 'admit'>;
  /** Receives a request before it is admitted. */
  readonly observe?: (request: IncomingMessage, response: ServerResponse) => void;
}

/** What else a server of this package does. In a server of others, that server does it. */
export interface ServerRest {
  /** The demand of a request that no route matches. */
  demandOf(path: string): RequestDemand;
  /** Answers a request that was refused, or that no route matches. Never throws. */
  answer(request: IncomingMessage, response: ServerResponse, outcome: Exclude<AdmissionOutcome, null>): Promise<void>;
}

/** A request without a route is refused or gets a file: it costs almost nothing. */
export const LEAST_DEMAND: RequestDemand = { kind: 'live', bytesMax: 0 };

/** The kind and body limit of a request of this route. */
export function demandOf({ kind, body }: Pick<Route, 'kind' | 'body'>): RequestDemand {
  return { kind, bytesMax: body === null ? 0 : body === BinaryBody ? STEP_BYTES_MAX : BODY_BYTES_MAX };
}

/** A request that was admitted with a token. */
interface AdmittedRequest {
  readonly principal: Principal;
  readonly work: AdmittedWork;
}

/** The property of a request that holds its `AdmittedRequest`. */
const ADMITTED = 'turnpikeAdmitted';

/** What Fastify has matched a request with. */
interface RouteConfig {
  readonly route?: Route<never>;
  readonly demand?: RequestDemand;
}

/** All routes as one plugin in its own scope: its body parsers and error handlers affect only its routes. */
export const httpPlugin =
  <S extends HttpAppService>(app: HttpApp<S>): FastifyPluginAsync =>
  // eslint-disable-next-line @typescript-eslint/require-await
  async (fastify) => {
    registerRoutes(fastify, app, null);
    // Unknown addresses below the plugin's prefix are refused here; all others belong to the surrounding server.
    fastify.all(`${PREFIX}/*`, { handler: (_request, reply) => sendRefusedReply(reply, createRefusal('NOT_FOUND')) });
  };

/** @param rest null in a server of others */
export function registerRoutes<S extends HttpAppService>(
  fastify: FastifyInstance,
  { service, routes, admission, observe }: HttpApp<S>,
  rest: ServerRest | null,
): void {
  const index = new RouteIndex(routes);
  fastify.decorateRequest(ADMITTED, null);
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  fastify.addHook('onRequest', (request, reply, done) => {
    const { raw } = request;
    observe?.(raw, reply.raw);
    const path = pathOf(raw.url ?? '');
    const { route, demand = rest?.demandOf(path) ?? LEAST_DEMAND } = request.routeOptions.config as RouteConfig;
    if (route !== undefined) echoRequestId(route, request, reply);
    const decide = (outcome: AdmissionOutcome): void => {
      // The client has left: no answer.
      if (outcome === null) return void reply.hijack();
      if (rest !== null && (route === undefined || 'reason' in outcome)) {
        reply.hijack();
        return void rest.answer(raw, reply.raw, outcome);
      }
      if (!('reason' in outcome)) request.setDecorator(ADMITTED, outcome);
      const refused =
        'reason' in outcome
          ? outcome
          : route === undefined
            ? refuseUnserved(raw.method, index.methods(path))
            : checkAccess(route, request, outcome.principal);
      if (refused === null) done();
      else sendRefusedReply(reply, refused);
    };
    admission.admit(raw, reply.raw, demand).then(decide, done);
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    // The rest counts what it answers.
    if (rest === null || request.getDecorator(ADMITTED) !== null)
      service.metrics.request(request.routeOptions.url ?? 'none', request.method, reply.statusCode);
    done();
  });
  fastify.setErrorHandler(async (error, request, reply) => {
    const { run_id } = request.params as { readonly run_id?: string };
    sendRefusedReply(reply, await withWorkerAddress(logAndRefuse(error, service), service, run_id));
    return reply;
  });
  for (const route of routes) {
    const demand = demandOf(route);
    fastify.route({
      method: [...methodsOf(route)],
      // A HEAD request for a stream would never end, and reads would be recorded for nothing.
      exposeHeadRoute: false,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { route, demand },
      bodyLimit: Math.max(demand.bytesMax, BODY_BYTES_MAX),
      handler: async (request, reply) => {
        const admitted = request.getDecorator<AdmittedRequest>(ADMITTED);
        const routeRequest = parseRequest(route, request, admitted);
        if ('reason' in routeRequest) sendRefusedReply(reply, routeRequest);
        else await runRoute(reply, { request: routeRequest, work: admitted.work, route, service });
        return reply;
      },
    });
  }
}

/** An id of a request that is returned with its response (AuthZEN 1.0). Other ids are not. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Sets the header of the response before anything refuses the request. */
function echoRequestId({ headers }: Pick<Route, 'headers'>, { raw }: FastifyRequest, reply: FastifyReply): void {
  if (!headers.includes('x-request-id')) return;
  const id = raw.headers['x-request-id'];
  if (typeof id === 'string' && REQUEST_ID.test(id)) reply.raw.setHeader('X-Request-ID', id);
}

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

/** @param methods those that the address serves: none, if there is nothing */
export function refuseUnserved(method: string | undefined, methods: readonly string[]): Refusal {
  // A route that did not match its own path has an invalid parameter.
  return methods.length === 0 || methods.some((served) => served === method)
    ? createRefusal('NOT_FOUND')
    : createRefusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') });
}

/** The checks before the body of a request is read. */
function checkAccess(
  route: Pick<Route, 'rights' | 'body' | 'headers'>,
  request: FastifyRequest,
  principal: Principal | null,
): Refusal | null {
  if (principal === null) return createRefusal('UNAUTHENTICATED');
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
  { principal, work: control }: AdmittedRequest,
): AnyRouteRequest | Refusal {
  const params = parseValues(route.params, request.params as JsonObject);
  // An invalid id names nothing.
  if (params === null) return createRefusal('NOT_FOUND');
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
