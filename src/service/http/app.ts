// The routes as Fastify serves them. What comes in has been through the front door; here it is matched with its route,
// its right is asked for, its body is read and held against the schemas, and what it comes to goes out.

import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { IncomingMessage } from 'node:http';
import { packed, PACKED_BYTES_MIN, takesGzip } from '../../adapters/gzip.js';
import type { JsonObject } from '../../contract/json.js';
import { conforms } from '../../contract/validators.js';
import { isJsonObject } from '../../contract/json.js';
import type { Principal } from '../../ports/token-book.js';
import { inWhichForm, pathOf, type Admission } from '../front-door.js';
import { readMessage } from '../mcp/messages.js';
import { problemText, PROBLEM_TYPE, refusal, type Refusal } from '../problems.js';
import { refusalOf } from './refused.js';
import { Bytes, methodsAt, methodsOf, valuesOf, type Answer, type Asked, type Route } from './route.js';
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
  /** Who comes in with a request. Asked before anything else is done with it. */
  readonly admit: (request: IncomingMessage) => Admission;
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
    frameworkErrors: (_error, _request, reply) => void refuse(reply, refusal('NOT_FOUND')),
  });
  // What is none of our routes is refused before a byte of its body is read, and in no words but ours.
  fastify.removeAllContentTypeParsers();
  fastify.addHook('onRequest', (request, reply, done) => {
    if (request.is404) void refuse(reply, refusal('NOT_FOUND'));
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
    const { service, routes, admit } = app;
    const principals = new WeakMap<IncomingMessage, Principal>();
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    fastify.addHook('onRequest', (request, reply, done) => {
      const admission = admit(request.raw);
      if (admission.refusal !== null) return void refuse(reply, admission.refusal);
      if (admission.principal !== null) principals.set(request.raw, admission.principal);
      done();
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
        bodyLimit: route.body === Bytes ? STEP_BYTES_MAX : BODY_BYTES_MAX,
        onRequest: (request, reply, done) => {
          const why = mayNot(route, request, principals.get(request.raw));
          if (why !== null) return void refuse(reply, why);
          done();
        },
        handler: async (request, reply) => {
          const asked = askedOf(route, request, principals.get(request.raw));
          if ('reason' in asked) return refuse(reply, asked);
          const answer = await route.handle(asked, service);
          return send(reply, route.packs ? await packedFor(request, answer) : answer);
        },
      });
    }
  };

const notServed =
  (routes: readonly Pick<Route, 'path' | 'method' | 'head'>[]) =>
  ({ raw }: FastifyRequest, reply: FastifyReply): void => {
    const methods = methodsAt(routes, pathOf(raw.url ?? ''));
    // A route that did not take what is its own has a parameter that cannot be one.
    const isNowhere = methods.length === 0 || methods.some((method) => method === raw.method);
    void refuse(reply, isNowhere ? refusal('NOT_FOUND') : refusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') }));
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
  principal: Principal | undefined,
): Anything | Refusal {
  const params = valuesOf(route.params, request.params as JsonObject);
  // What cannot be an id is the id of nothing.
  if (principal === undefined || params === null) return refusal('NOT_FOUND');
  const query = valuesOf(route.query, request.query as JsonObject);
  if (query === null) return refusal('INVALID_REQUEST');
  const { headers } = request;
  const bytes = request.body instanceof Uint8Array ? request.body : new Uint8Array(0);
  if (route.body === null || route.body === Bytes)
    return { principal, params, query, body: bytes, headers } as Anything;
  const read = readMessage(bytes);
  if (!read.ok) return refusal('INVALID_JSON');
  const { message: body } = read;
  if (!isJsonObject(body) || !conforms(route.body, body)) return refusal('INVALID_REQUEST');
  return { principal, params, query, body, headers } as Anything;
}

const COMMON = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

/** The answer in fewer bytes, for whoever takes it so, where there are enough of them. */
async function packedFor({ headers }: FastifyRequest, answer: Answer): Promise<Answer> {
  const told = 'json' in answer ? JSON.stringify(answer.json) : 'bytes' in answer ? answer.bytes : null;
  if (told === null) return answer;
  const bytes = typeof told === 'string' ? Buffer.from(told) : told;
  const type = 'type' in answer ? answer.type : 'application/json';
  const shown = { ...('status' in answer ? { status: answer.status } : {}), type };
  const more = { ...('headers' in answer ? answer.headers : {}), Vary: 'Accept-Encoding' };
  if (bytes.byteLength < PACKED_BYTES_MIN || !takesGzip(headers['accept-encoding']))
    return { ...shown, bytes, headers: more };
  return { ...shown, bytes: await packed(bytes), headers: { ...more, 'Content-Encoding': 'gzip' } };
}

function send(reply: FastifyReply, answer: Answer): FastifyReply {
  if ('stream' in answer) {
    reply.hijack();
    answer.stream(reply.raw);
    return reply;
  }
  reply.code(answer.status ?? 200).headers({ ...COMMON, ...answer.headers });
  if ('json' in answer) return reply.type('application/json').send(JSON.stringify(answer.json));
  if ('bytes' in answer) return reply.type(answer.type).send(answer.bytes);
  return reply.send();
}

/** Whoever is refused before his body was read may still be sending it: the connection is not used again. */
function refuse(reply: FastifyReply, why: Refusal): FastifyReply {
  const { body, headers } = reply.request;
  const { 'content-length': length = '0', 'transfer-encoding': chunks } = headers;
  const unread = body === undefined && (length !== '0' || chunks !== undefined);
  return reply
    .code(why.status)
    .headers({ ...COMMON, ...why.headers, ...(unread ? { Connection: 'close' } : {}) })
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
