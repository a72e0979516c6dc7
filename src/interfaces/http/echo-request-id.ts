// The id that a client gives its request (AuthZEN 1.0): routes that take it return it with every response.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { pathOf } from '../service/request-guard.js';
import type { AdmitRequest, EnteredRoute } from './http-plugin.js';
import type { RouteIndex } from './routes/route.js';

/** Other ids are not returned. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Sets the header of the response before anything refuses the request. */
export function echoRequestId(
  request: IncomingMessage,
  response: ServerResponse,
  routes: RouteIndex<EnteredRoute>,
): void {
  const { headers, method, url = '' } = request;
  const id = headers['x-request-id'];
  if (typeof id !== 'string' || !REQUEST_ID.test(id)) return;
  const route = routes.find(pathOf(url)).find((candidate) => candidate.method === method);
  if (route?.headers.includes('x-request-id') === true) response.setHeader('X-Request-ID', id);
}

/** The same for a server of an embedding service, which has matched the route. */
export const admitWithRequestId =
  (admit: AdmitRequest): AdmitRequest =>
  (request, response, route) => {
    const id = request.headers['x-request-id'];
    const isTaken = route?.headers.includes('x-request-id') === true;
    if (isTaken && typeof id === 'string' && REQUEST_ID.test(id)) response.setHeader('X-Request-ID', id);
    return admit(request, response, route);
  };
