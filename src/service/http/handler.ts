// A plain handler around the routes: the front door first, for everything; then the page, what else there may be, and
// the routes.

import type { FastifyPluginAsync } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../ports/log.js';
import type { Principal } from '../../ports/token-book.js';
import type { AdmissionController } from '../admission/controller.js';
import { Entrance, type Entered, type EntranceParts } from '../entrance.js';
import { pathOf, type FrontDoor } from '../front-door.js';
import { MESSAGE_BYTES_MAX } from '../mcp/messages.js';
import { refusal, type Refusal } from '../problems.js';
import { sendRefusal } from '../send-refusal.js';
import { BODY_BYTES_MAX, ownFastify, STEP_BYTES_MAX, type Enter, type EnteredRoute } from './app.js';
import type { Metrics } from './metrics.js';
import { PAGE_METHODS, sendPage, servedPage, type Page } from './page.js';
import { RequestSlot } from './request-slot.js';
import { RouteIndex } from './route-index.js';
import { Bytes, methodsOf } from './route.js';

export interface Handling {
  readonly door: FrontDoor;
  /** Files that are open to all, by their paths. */
  readonly page: Page;
  readonly admission: AdmissionController;
  /** Those of the plugin: what is none of them does not come to it. */
  readonly routes: readonly EnteredRoute[];
  readonly metrics: Pick<Metrics, 'request'>;
  readonly log: Pick<Log, 'error'>;
  /** Lets every request in by `enter`. */
  readonly plugin: (enter: Enter) => FastifyPluginAsync;
  /** What is served beside the routes. */
  readonly beside?: BesideOf;
}

export interface Beside {
  /** As which it is counted. */
  readonly name: string;
  /** @param principal who has come in; null where it is open to all */
  handle(request: IncomingMessage, response: ServerResponse, principal: Principal | null): Promise<void>;
}
/** Null for what is not served. */
export type BesideOf = (path: string) => Beside | null;

export interface Handler {
  /** Never throws. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  close(): Promise<void>;
}

export function handler({ door, page, admission, metrics, plugin, ...rest }: Handling): Handler {
  const { routes, log, beside = () => null } = rest;
  const index = new RouteIndex(routes);
  const entrance = entranceOf({ door: (head) => first(door, head), admission, index, beside });
  const files = servedPage(page);
  const entered = new RequestSlot<Entered>();
  const own = ownFastify();
  const ready = own.register(plugin((request) => entered.get(request) ?? null)).ready();
  const serve = async (request: IncomingMessage, response: ServerResponse, came: Entered): Promise<void> => {
    // Its client has left.
    if (came === null) return;
    const { method = '', url = '' } = request;
    const path = pathOf(url);
    const other = beside(path);
    const missing = other === null ? notServed(method, page.has(path) ? PAGE_METHODS : index.methods(path)) : null;
    const why = 'reason' in came ? came : missing;
    if (why !== null || 'reason' in came) {
      sendRefusal(response, why ?? refusal('NOT_FOUND'));
      metrics.request(other?.name ?? (page.has(path) ? 'page' : 'none'), method, response.statusCode);
      return;
    }
    const file = files.get(path);
    if (file !== undefined) {
      sendPage(request, response, file);
      // All of it is handed over, and clients without a token share few places: one that does not read keeps none.
      came.work.detach();
      metrics.request('page', method, response.statusCode);
    } else if (other !== null) {
      response.once('close', () => metrics.request(other.name, method, response.statusCode));
      came.work.hold();
      await other.handle(request, response, came.principal).finally(() => came.work.end());
    } else {
      entered.set(request, came);
      await ready;
      own.routing(request, response);
    }
  };
  return {
    async handle(request, response) {
      try {
        const came = entrance.enter(request, response);
        await serve(request, response, came instanceof Promise ? await came : came);
      } catch (error) {
        // A client that leaves in the middle of its body is no failure of the service.
        if (!request.socket.destroyed) log.error('a request over HTTP failed', { error });
        response.destroy();
      }
    },
    close: async () => {
      await own.close();
    },
  };
}

/** The way in to these routes, and to what is served beside them. */
export function entranceOf({
  door,
  admission,
  index,
  beside = () => null,
}: Pick<Handling, 'door' | 'admission' | 'beside'> & { readonly index: RouteIndex<EnteredRoute> }): Entrance {
  return new Entrance({
    door,
    admission,
    kindOf: ({ method = '', url = '' }) => {
      const path = pathOf(url);
      const route = index.at(path).find((one) => methodsOf(one).includes(method));
      if (route !== undefined || beside(path) === null) return demandOf(route);
      return { kind: 'step', bytesMax: MESSAGE_BYTES_MAX };
    },
  });
}

/**
 * The way in for requests that a server of others has matched with their routes. The path alone does not tell which
 * route that is: the server may have prefixes, and rules of its own for escapes, cases and slashes.
 */
export function matchedEntrance({ door, admission }: Pick<Handling, 'door' | 'admission'>): Enter {
  const matched = new RequestSlot<EnteredRoute>();
  const entrance = new Entrance({ door, admission, kindOf: (request) => demandOf(matched.get(request)) });
  return (request, response, route) => {
    if (route !== undefined) matched.set(request, route);
    return entrance.enter(request, response);
  };
}

/** What a request of a route may cost. The rest is refused, or a file of the page: it costs next to nothing. */
function demandOf(route: EnteredRoute | undefined): ReturnType<EntranceParts['kindOf']> {
  if (route === undefined) return { kind: 'live', bytesMax: 0 };
  const bytesMax = route.body === null ? 0 : route.body === Bytes ? STEP_BYTES_MAX : BODY_BYTES_MAX;
  return { kind: route.kind, bytesMax };
}

/** Of a method that it does not know, the framework has ideas of its own. */
function notServed(method: string, methods: readonly string[]): Refusal | null {
  if (methods.includes(method)) return null;
  return methods.length === 0 ? refusal('NOT_FOUND') : refusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') });
}

/** Escapes lead nowhere: no id, and no file of the page, has a character that would need one. */
function first(door: FrontDoor, head: Parameters<FrontDoor>[0]): ReturnType<FrontDoor> {
  const admission = door(head);
  if (admission.refusal !== null) return admission;
  const url = head.url ?? '';
  return url.startsWith('/') && !pathOf(url).includes('%') ? admission : { refusal: refusal('NOT_FOUND') };
}
