// A plain request handler: one Fastify instance that admits every request, and serves the routes, the page and the
// mounted handlers.

import Fastify from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AdmissionOutcome, RequestDemand } from '../service/request-admission.js';
import { pathOf } from '../service/request-guard.js';
import { createRefusal, sendRefusal } from '../service/problems.js';
import {
  BODY_BYTES_MAX,
  LEAST_DEMAND,
  refuseUnserved,
  registerRoutes,
  type HttpApp,
  type HttpAppService,
  type ServerRest,
} from './http-plugin.js';
import { PAGE_METHODS, sendPage, createServedPage, type Page } from './served-page.js';
import { RouteIndex } from './routes/route.js';

interface HandlerOptions<S extends HttpAppService> extends HttpApp<S> {
  /** Files that need no token, by their paths. */
  readonly page: Page;
  /** Handlers for other paths than those of the routes. */
  readonly findMounted?: FindMountedHandler;
}

export interface MountedHandler {
  /** Its name in the metrics. */
  readonly name: string;
  readonly demand: RequestDemand;
  /** @param principal the caller; null if the path needs no token */
  handle(request: IncomingMessage, response: ServerResponse, principal: Principal | null): Promise<void>;
}
/** Returns null for a path without a mounted handler. */
type FindMountedHandler = (path: string) => MountedHandler | null;

export interface Handler {
  /** Never throws. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  close(): Promise<void>;
}

/** Longer than the head of a request: Fastify answers a longer parameter by itself, before the admission. */
const PARAM_CHARS_MAX = 65_536;
/** An address that nothing serves. */
const NOWHERE = '/-';

export function createHandler<S extends HttpAppService>({ observe, ...options }: HandlerOptions<S>): Handler {
  const { log } = options.service;
  const fastify = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    bodyLimit: BODY_BYTES_MAX,
    requestIdHeader: false,
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    // Fastify's own answer would repeat the address.
    frameworkErrors: (_error, _request, reply) => {
      reply.hijack();
      sendRefusal(reply.raw, createRefusal('NOT_FOUND'));
    },
  });
  registerRoutes(fastify, options, createServerRest(options));
  let ready: Promise<unknown> | null = Promise.resolve(fastify.ready()).then(() => (ready = null));
  return {
    async handle(request, response) {
      try {
        observe?.(request, response);
        // No id and no file of the page has a character that needs an escape, and Fastify would read a fragment as one.
        if (!/^\/[^%#?]*(?:\?|$)/.test(request.url ?? '')) request.url = NOWHERE;
        if (ready !== null) await ready;
        fastify.routing(request, response);
      } catch (error) {
        log.error('a request over HTTP failed', { error });
        response.destroy();
      }
    },
    close: async () => {
      await fastify.close();
    },
  };
}

function createServerRest<S extends HttpAppService>({
  service: { metrics, log },
  routes,
  page,
  findMounted = () => null,
}: HandlerOptions<S>): ServerRest {
  const index = new RouteIndex(routes);
  const files = createServedPage(page);
  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    outcome: Exclude<AdmissionOutcome, null>,
  ): Promise<void> => {
    const { method = '', url = '' } = request;
    const path = pathOf(url);
    const mounted = findMounted(path);
    const file = files.get(path);
    const methods = file === undefined ? index.methods(path) : PAGE_METHODS;
    const count = (): void =>
      metrics.request(mounted?.name ?? (file === undefined ? 'none' : 'page'), method, response.statusCode);
    if ('reason' in outcome) {
      sendRefusal(response, outcome);
      count();
    } else if (mounted !== null) {
      response.once('close', count);
      outcome.work.hold();
      await mounted.handle(request, response, outcome.principal).finally(() => outcome.work.end());
    } else if (file === undefined || !methods.includes(method)) {
      sendRefusal(response, refuseUnserved(method, methods));
      count();
    } else {
      sendPage(request, response, file);
      // The whole file is in the send buffer. Clients without a token share few slots: one that does not read holds
      // none.
      outcome.work.detach();
      count();
    }
  };
  return {
    demandOf: (path) => findMounted(path)?.demand ?? LEAST_DEMAND,
    async answer(request, response, outcome) {
      try {
        await serve(request, response, outcome);
      } catch (error) {
        // A client that leaves while it sends its body is not a failure of the service.
        if (!request.socket.destroyed) log.error('a request over HTTP failed', { error });
        response.destroy();
      }
    },
  };
}
