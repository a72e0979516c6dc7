// The addresses at which people sign in and out on the page. They need no token: each checks its own cookie.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { LoginFlow, LoginStep } from './login/login-flow.js';
import { CALLBACK_PATH } from './login/login-flow.js';
import { checkMethod, pathOf } from '../../../interfaces/service/request-guard.js';
import type { PageLogin, RecordFailure } from '../../../interfaces/service/identity-service.js';
import { createRefusal, sendRefusal, type Refusal } from '../../../interfaces/service/problems.js';

const LOGIN_PATH = '/auth/login';
const LOGOUT_PATH = '/auth/logout';
const SESSION_PATH = '/auth/session';
const PATHS: Readonly<Record<string, readonly string[]>> = {
  [LOGIN_PATH]: ['GET'],
  [CALLBACK_PATH]: ['GET'],
  [LOGOUT_PATH]: ['POST'],
  [SESSION_PATH]: ['GET'],
};
/** The views of the page to which a login may return: an address of the request would lead anywhere. */
const RETURNS: readonly string[] = ['/', '/approvals', '/coverage'];
const QUERY_CHARS_MAX = 4_096;

interface LoginHandlerOptions {
  readonly flow: LoginFlow;
  readonly recordFailure: RecordFailure;
}

export const isLoginPath = (path: string): boolean => Object.hasOwn(PATHS, path);

/** The addresses below `/auth`. */
export const createPageLogin = (options: LoginHandlerOptions): PageLogin => ({
  origin: options.flow.origin,
  path: LOGIN_PATH,
  has: isLoginPath,
  // The issuer's page sends the browser there, so the request comes from another site.
  isReturn: (method, path) => method === 'GET' && path === CALLBACK_PATH,
  handle: (request, response) => handleLogin(request, response, options),
});

async function handleLogin(
  request: IncomingMessage,
  response: ServerResponse,
  { flow, recordFailure }: LoginHandlerOptions,
): Promise<void> {
  const refused = checkMethod(request, PATHS);
  if (refused !== null) {
    sendRefusal(response, refused);
    return;
  }
  const { url = '', headers } = request;
  const query = new URLSearchParams(url.slice(0, QUERY_CHARS_MAX).split('?')[1] ?? '');
  const { cookie = null } = headers;
  switch (pathOf(url)) {
    case LOGIN_PATH:
      sendStep(response, await flow.begin(RETURNS.find((path) => path === query.get('return')) ?? '/'));
      return;
    case CALLBACK_PATH: {
      const step = await flow.finish(cookie, query);
      if ('location' in step) {
        sendReturn(response, step);
        return;
      }
      if (step.problem === 'unavailable') {
        sendStep(response, step);
        return;
      }
      const wait = recordFailure(request);
      if (wait === 0) sendStep(response, step);
      else sendTooManyFailures(response, wait);
      return;
    }
    case SESSION_PATH:
      return sendSession(response, flow, cookie);
    default: {
      const [csrf, origin] = [headers['x-turnpike-csrf'], headers.origin ?? null];
      const credentials = {
        method: 'POST',
        bearer: null,
        cookie,
        csrf: typeof csrf === 'string' ? csrf : null,
        origin,
      };
      const ended = flow.end(credentials);
      if ('problem' in ended) {
        sendRefusal(response, refusalOf(ended.problem));
        return;
      }
      response.writeHead(204, { ...HEADERS, 'Set-Cookie': ended.cookie }).end();
    }
  }
}

const HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
} as const;

const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
} as const;

/**
 * The page opens itself: after a redirect, the browser would still name the issuer as where the request comes from, and
 * would withhold the cookie of the session.
 */
function sendReturn(response: ServerResponse, { location, cookies }: Extract<LoginStep, { location: string }>): void {
  const page = pageOf(`<meta http-equiv="refresh" content="0;url=${location}"><p><a href="${location}">Go on</a></p>`);
  sendText(response, 200, page, { ...PAGE_HEADERS, 'Set-Cookie': [...cookies] });
}

/** Sends the browser to the issuer, or shows that the person is not signed in. */
function sendStep(response: ServerResponse, step: LoginStep): void {
  const cookies = step.cookies.length === 0 ? {} : { 'Set-Cookie': [...step.cookies] };
  if ('location' in step) {
    sendText(response, 303, '', { ...cookies, Location: step.location });
    return;
  }
  const { status } = refusalOf(step.problem);
  // The same whatever was wrong.
  const title = status === 503 ? 'Signing in is not possible now' : 'You are not signed in';
  const page = pageOf(`<h1>${title}</h1><p><a href="${LOGIN_PATH}">Sign in again</a></p>`);
  sendText(response, status, page, { ...cookies, ...PAGE_HEADERS });
}

const pageOf = (body: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>Turnpike</title>${body}</html>`;

function sendText(response: ServerResponse, status: number, text: string, headers: OutgoingHttpHeaders): void {
  response.writeHead(status, { ...HEADERS, ...headers, 'Content-Length': Buffer.byteLength(text) }).end(text);
}

async function sendSession(response: ServerResponse, flow: LoginFlow, cookie: string | null): Promise<void> {
  const session = await flow.find(cookie);
  if (session === null) {
    sendRefusal(response, createRefusal('UNAUTHENTICATED'));
    return;
  }
  const { actor, role, rights } = session.principal;
  const { csrf, expires_at } = session;
  const shown = { actor, role, rights: [...rights], csrf, expires_at: new Date(expires_at).toISOString() };
  sendText(response, 200, JSON.stringify(shown), { 'Content-Type': 'application/json' });
}

const refusalOf = (problem: string): Refusal =>
  createRefusal(
    problem === 'unavailable' ? 'IDENTITY_UNAVAILABLE' : problem === 'csrf' ? 'CSRF_REFUSED' : 'UNAUTHENTICATED',
  );

const sendTooManyFailures = (response: ServerResponse, waitMs: number): void =>
  sendRefusal(response, createRefusal('TOO_MANY_FAILURES', { 'Retry-After': String(Math.ceil(waitMs / 1_000)) }));
