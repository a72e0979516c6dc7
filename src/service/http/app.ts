// The routes as Fastify serves them. What comes in has been through the front door; here it is matched with its route,
// its right is asked for, its body is read and held against the schemas, and what it comes to goes out.

import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../../contract/json.js';
import { conforms } from '../../contract/validators.js';
import { isJsonObject } from '../../contract/json.js';
import type { Principal } from '../../ports/token-book.js';
import type { AdmittedWork } from '../admission/controller.js';
import type { Entered } from '../entrance.js';
import { inWhichForm, pathOf } from '../front-door.js';
import { readMessage } from '../mcp/messages.js';
import { problemText, PROBLEM_TYPE, refusal, type Refusal } from '../problems.js';
import { refusalOf } from './refused.js';
import { RequestSlot } from './request-slot.js';
import { RouteIndex } from './route-index.js';
import { Bytes, methodsOf, valuesOf, type Asked, type Route } from './route.js';
import { COMMON_HEADERS, sendAnswer } from './send-answer.js';
import { hasOneOf, type LookingService } from './service.js';

/** Of a body that is no proposal. */
export const BODY_BYTES_MAX = 262_144;
/** Of a proposal. Policy decides below this, and a payload that it refuses is a step like any other. */
export const STEP_BYTES_MAX = 4_194_304;
const PARAM_CHARS_MAX = 256;
const PREFIX = '/api/v1';

export interface App<S extends Pick<LookingService, 'metrics' | 'log'>> {
  readonly service: S;
  readonly routes: readonly Route<S>[];
  /** Lets a request in. Called before anything else is done with it. */
  readonly enter: Enter;
}

/** What of a route decides how a request comes in. */
export type EnteredRoute = Pick<Route, 'method' | 'path' | 'head' | 'kind' | 'body'>;

/** @param route that the request was matched with; undefined where it is for none */
export type Enter = (
  request: IncomingMessage,
  response: ServerResponse,
  route: EnteredRoute | undefined,
) => Entered | Promise<Entered>;

/** A request that came in with a token. */
interface Entry {
  readonly principal: Principal;
  readonly work: AdmittedWork;
}

/** An instance of our own, for requests that somebody else receives. */
export function ownFastify(): FastifyInstance {
  const fastify = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    bodyLimit: BODY_BYTES_MAX,
    requestIdHeader: false,
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    // What no route can be looked for: the framework would tell the address back.
    frameworkErrors: (_error, _request, reply) => refuse(reply, refusal('NOT_FOUND')),
  });
  // What is none of our routes is refused before a byte of its body is read, and in no words but ours.
  fastify.removeAllContentTypeParsers();
  fastify.addHook('onRequest', (request, reply, done) => {
    if (request.is404) refuse(reply, refusal('NOT_FOUND'));
    else done();
  });
  fastify.setErrorHandler((_error, _request, reply) => refuse(reply, refusal('NOT_FOUND')));
  fastify.setNotFoundHandler((_request, reply) => refuse(reply, refusal('NOT_FOUND')));
  return fastify;
}

/** Everything as one plugin, in a scope of its own: what it decides about bodies and errors is for its routes alone. */
export const httpPlugin =
  <S extends Pick<LookingService, 'metrics' | 'log'>>(app: App<S>): FastifyPluginAsync =>
  // eslint-disable-next-line @typescript-eslint/require-await
  async (fastify) => {
    const { service, routes, enter } = app;
    const entries = new RequestSlot<Entry>();
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    fastify.addHook('onRequest', (request, reply, done) => {
      const decide = (entered: Entered): void => {
        // Its client has left: nothing is answered.
        if (entered === null) return void reply.hijack();
        if ('reason' in entered) {
          refuse(reply, entered);
          return;
        }
        const { principal, work } = entered;
        if (principal !== null) entries.set(request.raw, { principal, work });
        done();
      };
      const { route } = request.routeOptions.config as { readonly route?: Route<S> };
      const entered = enter(request.raw, reply.raw, route);
      if (entered instanceof Promise) void entered.then(decide, done);
      else decide(entered);
    });
    fastify.addHook('onResponse', (request, reply, done) => {
      service.metrics.request(request.routeOptions.url ?? 'none', request.method, reply.statusCode);
      done();
    });
    fastify.setErrorHandler((error, _request, reply) => refuse(reply, told(error, service)));
    // What else is below our addresses is ours to refuse, and nothing beside them: that is for the server we are in.
    const served = notServed(routes);
    fastify.all(`${PREFIX}/*`, { onRequest: served, handler: served });
    for (const route of routes) {
      fastify.route({
        method: [...methodsOf(route)],
        // Whoever asks for a stream without its body would wait for ever, and readings would be told of for nothing.
        exposeHeadRoute: false,
        url: route.path.replace(/\{(\w+)\}/g, ':$1'),
        config: { route },
        bodyLimit: route.body === Bytes ? STEP_BYTES_MAX : BODY_BYTES_MAX,
        onRequest: (request, reply, done) => {
          const why = mayNot(route, request, entries.get(request.raw)?.principal);
          if (why === null) done();
          else refuse(reply, why);
        },
        handler: async (request, reply) => {
          const entry = entries.get(request.raw);
          const asked = askedOf(route, request, entry);
          if (entry === undefined || 'reason' in asked) refuse(reply, 'reason' in asked ? asked : NOWHERE);
          else await answered(reply, { asked, work: entry.work, route, service });
          return reply;
        },
      });
    }
  };

interface Answering<S> {
  readonly asked: Anything;
  readonly work: AdmittedWork;
  readonly route: Route<S>;
  readonly service: S;
}

/** Runs the handler of the route. The place is freed when the work ends, not when its client disconnects. */
async function answered<S extends Pick<LookingService, 'log'>>(
  reply: FastifyReply,
  { asked, work, route, service }: Answering<S>,
): Promise<void> {
  work.hold();
  try {
    await sendAnswer(reply, await route.handle(asked, service), { packs: route.packs, work });
  } catch (error) {
    const hasBegun = reply.sent;
    if (!work.isAborted && !hasBegun) throw error;
    if (!work.isAborted) service.log.error('an answer over HTTP broke off', { error });
    if (!hasBegun) void reply.hijack();
  } finally {
    work.end();
  }
}

const NOWHERE = refusal('NOT_FOUND');

const notServed = (routes: readonly Pick<Route, 'path' | 'method' | 'head'>[]) => {
  const index = new RouteIndex(routes);
  return ({ raw }: FastifyRequest, reply: FastifyReply): void => {
    const methods = index.methods(pathOf(raw.url ?? ''));
    // A route that did not take what is its own has a parameter that cannot be one.
    const isNowhere = methods.length === 0 || methods.some((method) => method === raw.method);
    refuse(reply, isNowhere ? refusal('NOT_FOUND') : refusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') }));
  };
};

/** What keeps a request from its route before a byte of its body is read. */
function mayNot(
  route: Pick<Route, 'rights' | 'body' | 'headers'>,
  request: FastifyRequest,
  principal: Principal | undefined,
): Refusal | null {
  if (principal === undefined) return refusal('UNAUTHENTICATED');
  if (!hasOneOf(principal, route.rights)) return refusal('RIGHT_MISSING');
  const key = route.body === null ? undefined : request.headers['idempotency-key'];
  // Whoever sends one relies on it, and would be deceived.
  if (key !== undefined && !route.headers.includes('idempotency-key')) return refusal('IDEMPOTENCY_NOT_KEPT');
  if (route.body !== null) return inWhichForm(request.headers, route.body === Bytes);
  const { 'content-length': length = '0', 'transfer-encoding': chunks } = request.headers;
  // Nobody would read it, and it could go on for as long as a request may.
  return length === '0' && chunks === undefined ? null : refusal('BODY_TOO_LARGE');
}

type Anything = Asked<unknown, unknown, unknown>;

function askedOf(
  route: Pick<Route, 'params' | 'query' | 'body'>,
  request: FastifyRequest,
  entry: Entry | undefined,
): Anything | Refusal {
  const params = valuesOf(route.params, request.params as JsonObject);
  // What cannot be an id is the id of nothing.
  if (entry === undefined || params === null) return refusal('NOT_FOUND');
  const { principal, work: control } = entry;
  const query = valuesOf(route.query, request.query as JsonObject);
  if (query === null) return refusal('INVALID_REQUEST');
  const { headers } = request;
  const bytes = request.body instanceof Uint8Array ? request.body : new Uint8Array(0);
  if (route.body === null || route.body === Bytes)
    return { principal, params, query, body: bytes, headers, control } as Anything;
  const read = readMessage(bytes);
  if (!read.ok) return refusal('INVALID_JSON');
  const { message: body } = read;
  if (!isJsonObject(body) || !conforms(route.body, body)) return refusal('INVALID_REQUEST');
  return { principal, params, query, body, headers, control } as Anything;
}

/** Whoever is refused before his body was read may still be sending it: the connection is not used again. */
function refuse(reply: FastifyReply, why: Refusal): void {
  const { body, headers } = reply.request;
  const { 'content-length': length = '0', 'transfer-encoding': chunks } = headers;
  const unread = body === undefined && (length !== '0' || chunks !== undefined);
  void reply
    .code(why.status)
    .headers({ ...COMMON_HEADERS, ...why.headers, ...(unread ? { Connection: 'close' } : {}) })
    .type(PROBLEM_TYPE)
    .send(problemText(why));
}

function told(error: unknown, { log }: Pick<LookingService, 'log'>): Refusal {
  const { code } = error as { readonly code?: unknown };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refusal('BODY_TOO_LARGE');
  if (typeof code === 'string' && code.startsWith('FST_ERR_CTP_')) return refusal('INVALID_REQUEST');
  const { refusal: why, unforeseen } = refusalOf(error);
  if (unforeseen) log.error('a request over HTTP failed', { error });
  return why;
}
