// A plain handler around the routes: the front door first, for everything; then the page, what else there may be, and
// the routes.

import type { FastifyPluginAsync } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from '../../ports/token-book.js';
import { pathOf, type Admission, type FrontDoor } from '../front-door.js';
import { problemText, PROBLEM_TYPE, refusal, type Refusal } from '../problems.js';
import { ownFastify } from './app.js';
import type { Metrics } from './metrics.js';
import { PAGE_METHODS, sendPage, servedPage, type Page } from './page.js';
import { methodsAt, type Route } from './route.js';

export interface Handling {
  readonly door: FrontDoor;
  /** Files that are open to all, by their paths. */
  readonly page: Page;
  /** Those of the plugin: what is none of them does not come to it. */
  readonly routes: readonly Pick<Route, 'method' | 'path' | 'head'>[];
  readonly metrics: Pick<Metrics, 'request'>;
  /** Asks `admit` who has come in, for every request. */
  readonly plugin: (admit: (request: IncomingMessage) => Admission) => FastifyPluginAsync;
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

export function handler({ door, page, routes, metrics, plugin, beside = () => null }: Handling): Handler {
  const admitted = new WeakMap<IncomingMessage, Admission>();
  const files = servedPage(page);
  const own = ownFastify();
  const ready = own.register(plugin((request) => admitted.get(request) ?? door(request))).ready();
  return {
    async handle(request, response) {
      const { method = '', url = '' } = request;
      const path = pathOf(url);
      const admission = first(door, request);
      const other = beside(path);
      const missing = other === null ? notServed(method, methodsFor(path, page, routes)) : null;
      if (admission.refusal !== null || missing !== null) {
        const why = admission.refusal ?? missing ?? refusal('NOT_FOUND');
        sendRefusal(response, why);
        metrics.request(other?.name ?? (page.has(path) ? 'page' : 'none'), method, why.status);
        return;
      }
      const file = files.get(path);
      if (file !== undefined) {
        sendPage(request, response, file);
        metrics.request('page', method, response.statusCode);
      } else if (other !== null) {
        response.once('close', () => metrics.request(other.name, method, response.statusCode));
        await other.handle(request, response, admission.principal);
      } else {
        admitted.set(request, admission);
        await ready;
        own.routing(request, response);
      }
    },
    close: async () => {
      await own.close();
    },
  };
}

const methodsFor = (path: string, page: Page, routes: Handling['routes']): readonly string[] =>
  page.has(path) ? PAGE_METHODS : methodsAt(routes, path);

/** Of a method that it does not know, the framework has ideas of its own. */
function notServed(method: string, methods: readonly string[]): Refusal | null {
  if (methods.includes(method)) return null;
  return methods.length === 0 ? refusal('NOT_FOUND') : refusal('METHOD_NOT_SERVED', { Allow: methods.join(', ') });
}

/** Escapes lead nowhere: no id, and no file of the page, has a character that would need one. */
function first(door: FrontDoor, request: IncomingMessage): Admission {
  const admission = door(request);
  if (admission.refusal !== null) return admission;
  const url = request.url ?? '';
  return url.startsWith('/') && !pathOf(url).includes('%') ? admission : { refusal: refusal('NOT_FOUND') };
}

function sendRefusal(response: ServerResponse, why: Refusal): void {
  const text = problemText(why);
  response.writeHead(why.status, {
    ...why.headers,
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    // Whoever is refused may still be sending.
    Connection: 'close',
  });
  response.end(text);
}
