// A plain handler around the routes: the front door first, for everything; then the page, what else there may be, and
// the routes.

import type { FastifyPluginAsync } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PageFile } from '../../adapters/page-folder.js';
import type { Principal } from '../../ports/token-book.js';
import { pathOf, type Admission, type FrontDoor } from '../front-door.js';
import { problemText, PROBLEM_TYPE, refusal, type Refusal } from '../problems.js';
import { ownFastify } from './app.js';
import { sendPage } from './page.js';

export interface Handling {
  readonly door: FrontDoor;
  /** Files that are open to all, by their paths. */
  readonly page: ReadonlyMap<string, PageFile>;
  /** Asks `admit` who has come in, for every request. */
  readonly plugin: (admit: (request: IncomingMessage) => Admission) => FastifyPluginAsync;
  /** What is served beside the routes; null for what is not. */
  readonly beside?: (path: string) => Beside | null;
}

/** @param principal who has come in; null where it is open to all */
export type Beside = (request: IncomingMessage, response: ServerResponse, principal: Principal | null) => Promise<void>;

export interface Handler {
  /** Never throws. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  close(): Promise<void>;
}

export function handler({ door, page, plugin, beside = () => null }: Handling): Handler {
  const admitted = new WeakMap<IncomingMessage, Admission>();
  const own = ownFastify();
  const ready = own.register(plugin((request) => admitted.get(request) ?? door(request))).ready();
  return {
    async handle(request, response) {
      const admission = first(door, request);
      if (admission.refusal !== null) {
        sendRefusal(response, admission.refusal);
        return;
      }
      const path = pathOf(request.url ?? '');
      const file = request.method === 'GET' ? page.get(path) : undefined;
      if (file !== undefined) {
        sendPage(response, file);
        return;
      }
      const other = beside(path);
      if (other !== null) return other(request, response, admission.principal);
      admitted.set(request, admission);
      await ready;
      own.routing(request, response);
    },
    close: async () => {
      await own.close();
    },
  };
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
