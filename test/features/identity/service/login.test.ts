// C98: signing in on the page: what a browser is sent, what it must bring back, and what its session can do.

import { afterEach, expect, test } from '@jest/globals';
import { SESSIONS_PER_CALLER } from '../../../../src/features/identity/service/login/login-sessions.js';
import { CLIENT } from '../../../fixtures/oidc-issuer.js';
import { IdentityBench, ROLE } from './identity-harness.js';

let stage: IdentityBench;
afterEach(() => stage.close());

const ANNA = { sub: 'anna', name: 'Anna Berg', employee: 'Anna Berg', groups: ['counsel'] };

const open = async (login: object = {}): Promise<void> => {
  stage = await IdentityBench.open({
    identity: { login: { clientId: CLIENT.id, clientSecret: CLIENT.secret, ...login } },
  });
  stage.issuer.user = ANNA;
};

/** A browser: it keeps cookies, and follows no redirect by itself. */
class Browser {
  readonly cookies = new Map<string, string>();
  /** The last Set-Cookie headers. */
  set: readonly string[] = [];

  async get(url: string, headers: Record<string, string> = {}, method = 'GET', body?: string): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const sent = { ...(cookie === '' ? {} : { cookie }), ...headers };
    const init = { method, redirect: 'manual' as const, headers: sent, ...(body === undefined ? {} : { body }) };
    const response = await fetch(new URL(url, origin()), init);
    this.set = response.headers.getSetCookie();
    for (const line of this.set) {
      const [pair = ''] = line.split(';');
      const [name = '', value = ''] = pair.split('=');
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  /** The address at which the issuer sends the browser back. */
  async atIssuer(path = '/auth/login'): Promise<string> {
    const begun = await this.get(path);
    const page = await (await fetch(begun.headers.get('location') ?? '')).text();
    return (/href="([^"]+)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&');
  }

  async signIn(path?: string): Promise<Response> {
    return this.get(await this.atIssuer(path));
  }

  async session(): Promise<{ csrf: string; actor: string; expires_at: string }> {
    return (await (await this.get('/auth/session')).json()) as never;
  }

  vote(headers: Record<string, string>): Promise<Response> {
    const body = JSON.stringify({ run_id: 'run_unknown', digests: ['a'.repeat(64)], decision: 'approve' });
    return this.get('/api/v1/approvals', { 'content-type': 'application/json', ...headers }, 'POST', body);
  }
}

const origin = (): string => `http://127.0.0.1:${stage.http.server.port}`;
const returnOf = (page: string): string | undefined => /content="0;url=([^"]*)"/.exec(page)?.[1];
const codeOf = async (response: Response): Promise<string> =>
  `${response.status} ${((await response.json()) as { code?: string }).code ?? ''}`;

test('C98 a person who has signed in reads as the caller that policy maps, and no address or answer has a token', async () => {
  await open();
  const browser = new Browser();
  const begun = await browser.get('/auth/login?return=/approvals');
  const asked = new URL(begun.headers.get('location') ?? '');
  expect([...asked.searchParams.keys()].toSorted()).toEqual([
    'client_id',
    'code_challenge',
    'code_challenge_method',
    'nonce',
    'redirect_uri',
    'response_type',
    'scope',
    'state',
  ]);
  expect(browser.set).toEqual([expect.stringMatching(/; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/)]);
  const back = await browser.signIn('/auth/login?return=/approvals');
  expect([back.status, returnOf(await back.text()), back.headers.get('referrer-policy')]).toEqual([
    200,
    '/approvals',
    'no-referrer',
  ]);
  const [cleared = '', session = ''] = browser.set;
  expect(cleared).toMatch(/^turnpike-login-\d+=; .*Max-Age=0$/);
  // The ID token is valid for ten minutes, and the tolerance.
  expect(session).toMatch(/^turnpike-session-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=6[23]\d$/);
  expect((await browser.get('/api/v1/runs')).status).toBe(200);
  expect(await browser.session()).toMatchObject({ actor: 'Anna Berg', role: ROLE });
  expect((await new Browser().get('/api/v1/runs')).headers.get('turnpike-sign-in')).toBe('/auth/login');
});

test('C98 a change needs the origin of the page and its header; a read needs neither', async () => {
  await open();
  const browser = new Browser();
  await browser.signIn();
  const { csrf } = await browser.session();
  expect(await codeOf(await browser.vote({}))).toBe('403 CSRF_REFUSED');
  expect(await codeOf(await browser.vote({ origin: origin() }))).toBe('403 CSRF_REFUSED');
  expect(await codeOf(await browser.vote({ 'x-turnpike-csrf': csrf }))).toBe('403 CSRF_REFUSED');
  expect(await codeOf(await browser.vote({ origin: origin(), 'x-turnpike-csrf': `${csrf}x` }))).toBe(
    '403 CSRF_REFUSED',
  );
  expect(await codeOf(await browser.vote({ origin: 'https://evil.example', 'x-turnpike-csrf': csrf }))).toBe(
    '403 ORIGIN_NOT_ALLOWED',
  );
  const localhost = origin().replace('127.0.0.1', 'localhost');
  expect(await codeOf(await browser.vote({ origin: localhost, 'x-turnpike-csrf': csrf }))).toBe('403 CSRF_REFUSED');
  expect(await codeOf(await browser.vote({ origin: origin(), 'x-turnpike-csrf': csrf }))).toBe('404 RUN_UNKNOWN');
  // A cookie adds nothing to a request that has a bearer, right or wrong.
  expect((await browser.get('/api/v1/runs', { authorization: 'Bearer wrong' })).status).toBe(401);
});

test('C98 another site may send a browser only to the return of a login', async () => {
  await open();
  const site = { 'sec-fetch-site': 'cross-site' };
  const browser = new Browser();
  const address = await browser.atIssuer();
  expect((await browser.get('/auth/login', site)).status).toBe(403);
  expect((await browser.get(address, site, 'POST')).status).toBe(403);
  expect((await browser.get('/auth/session', site)).status).toBe(403);
  expect((await browser.get(address, site)).status).toBe(200);
  expect((await browser.get('/api/v1/runs', site)).status).toBe(403);
});

test('C98 a login comes back once: its cookie and code open no second session, also where the issuer takes a code twice', async () => {
  await open();
  stage.issuer.keepsCodes = true;
  const browser = new Browser();
  const address = await browser.atIssuer();
  const thief = new Browser();
  for (const [name, value] of browser.cookies) thief.cookies.set(name, value);
  expect((await browser.get(address)).status).toBe(200);
  expect((await browser.get('/api/v1/runs')).status).toBe(200);
  expect((await thief.get(address)).status).toBe(401);
  expect((await thief.get('/api/v1/runs')).status).toBe(401);
  // Not even while the first one is still being exchanged.
  const next = new Browser();
  const again = await next.atIssuer();
  const cookies = [...next.cookies];
  const both = [new Browser(), new Browser()];
  for (const one of both) for (const [name, value] of cookies) one.cookies.set(name, value);
  const statuses = await Promise.all(both.map(async (one) => (await one.get(again)).status));
  expect(statuses.toSorted()).toEqual([200, 401]);
});

test('C98 signing out ends the session at once, and only on request of the page', async () => {
  await open();
  const browser = new Browser();
  await browser.signIn();
  const { csrf } = await browser.session();
  const [name = '', value = ''] = [...browser.cookies][0] ?? [];
  expect((await browser.get('/auth/logout')).status).toBe(405);
  expect((await browser.get('/auth/logout', { origin: origin() }, 'POST')).status).toBe(403);
  expect((await browser.get('/auth/logout', { origin: origin(), 'x-turnpike-csrf': csrf }, 'POST')).status).toBe(204);
  expect(browser.cookies.size).toBe(0);
  browser.cookies.set(name, value);
  expect((await browser.get('/api/v1/runs')).status).toBe(401);
});

test('C98 a session ends with its ID token, with its limit, and with the mapping or key by which it was accepted', async () => {
  await open({ sessionMs: 60_000 });
  const limited = new Browser();
  await limited.signIn();
  stage.clock.advance(59_000);
  expect((await limited.get('/api/v1/runs')).status).toBe(200);
  stage.clock.advance(2_000);
  expect((await limited.get('/api/v1/runs')).status).toBe(401);
  const browser = new Browser();
  stage.issuer.user = { ...ANNA, exp: Math.floor(stage.clock.now() / 1_000) + 5 };
  await browser.signIn();
  expect((await browser.get('/api/v1/runs')).status).toBe(200);
  stage.clock.advance(36_000);
  expect((await browser.get('/api/v1/runs')).status).toBe(401);
  stage.issuer.user = ANNA;
  await browser.signIn();
  await stage.issuer.rotate();
  stage.clock.advance(30_000);
  expect((await browser.get('/api/v1/runs')).status).toBe(200);
  expect((await stage.http.ask('/runs', await stage.counsel())).status).toBe(200);
  expect((await browser.get('/api/v1/runs')).status).toBe(401);
});

test('C98 a login comes back only to the browser that began it, once, and in time', async () => {
  await open();
  const browser = new Browser();
  const address = await browser.atIssuer();
  expect((await new Browser().get(address)).status).toBe(401);
  const other = new URL(address);
  other.searchParams.set('state', 'x');
  const kept = new Map(browser.cookies);
  expect((await browser.get(other.href)).status).toBe(401);
  // Whatever was wrong, the login is over for this browser; even with its cookie restored, the code is used once.
  expect(browser.cookies.size).toBe(0);
  for (const [name, value] of kept) browser.cookies.set(name, value);
  expect((await browser.get(address)).status).toBe(200);
  for (const [name, value] of kept) browser.cookies.set(name, value);
  expect((await browser.get(address)).status).toBe(401);
  const late = new Browser();
  const slow = await late.atIssuer();
  stage.clock.advance(600_000);
  expect((await late.get(slow)).status).toBe(401);
  const changed = new Browser();
  const sealed = await changed.atIssuer();
  for (const [name, value] of changed.cookies)
    changed.cookies.set(name, `${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`);
  expect((await changed.get(sealed)).status).toBe(401);
});

test.each<[fault: string, claims: () => Record<string, unknown>]>([
  ['for another client', () => ({ aud: 'another' })],
  ['for the audience of callers', () => ({ aud: 'turnpike' })],
  ['for two clients without saying for which', () => ({ aud: [CLIENT.id, 'another'] })],
  ['for two clients, made for the other', () => ({ aud: [CLIENT.id, 'another'], azp: 'another' })],
  ['of another login', () => ({ nonce: 'x' })],
  ['without a nonce', () => ({ nonce: undefined })],
  ['that has expired', () => ({ iat: 1_000, exp: 2_000 })],
  ['of another issuer', () => ({ iss: 'https://issuer.example' })],
  ['whom no mapping matches', () => ({ groups: [] })],
])('C98 no session begins with an ID token %s', async (_fault, claims) => {
  await open();
  stage.issuer.forgeIdToken = (given) => stage.issuer.token({ ...given, ...claims() });
  const browser = new Browser();
  const refused = await browser.signIn();
  expect([refused.status, await refused.text()]).toEqual([401, expect.stringContaining('You are not signed in')]);
  expect(browser.cookies.size).toBe(0);
});

test('C98 a login returns only to views of the page, and fails closed while the issuer cannot be reached', async () => {
  await open();
  for (const path of ['https://evil.example', '//evil.example', '/api/v1/runs', '']) {
    const back = await new Browser().signIn(`/auth/login?return=${encodeURIComponent(path)}`);
    expect(returnOf(await back.text())).toBe('/');
  }
  stage.issuer.isDown = true;
  const browser = new Browser();
  expect((await browser.get('/auth/login')).status).toBe(303);
  const address = new URL('/auth/callback?code=x&state=x', origin());
  expect((await browser.get(address.href)).status).toBe(401);
});

test('C98 sessions are bounded: one more of a person ends the oldest of that person', async () => {
  await open();
  const browsers = Array.from({ length: SESSIONS_PER_CALLER + 1 }, () => new Browser());
  for (const browser of browsers) await browser.signIn();
  const statuses = [];
  for (const browser of browsers) statuses.push((await browser.get('/api/v1/runs')).status);
  expect(statuses).toEqual([401, ...Array.from({ length: SESSIONS_PER_CALLER }, () => 200)]);
});

test('C98 behind TLS the cookies are __Host- cookies, and the page is served under its public name', async () => {
  await open({ redirectUri: 'https://turnpike.example/auth/callback' });
  const { rawRequest } = await import('../../../interfaces/service/raw-http.js');
  const head = ['GET /auth/login HTTP/1.1', 'Host: turnpike.example', 'Connection: close'];
  const answer = await rawRequest(stage.http.server.port, head, '');
  expect([answer.status, answer.headers['set-cookie']]).toEqual([
    303,
    expect.stringMatching(/^__Host-turnpike-login=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/),
  ]);
});

test.each(['http://turnpike.example/auth/callback', 'https://turnpike.example/other', 'turnpike'])(
  'C98 %s is no address to which a browser is sent back',
  async (redirectUri) => {
    await open();
    await expect(IdentityBench.open({ identity: { login: { clientId: 'x', redirectUri } } })).rejects.toMatchObject({
      code: 'USAGE',
    });
  },
);

test('C98 every client may begin a login, so a failing issuer is asked and logged once in five seconds', async () => {
  const lines: string[] = [];
  const note = (message: string): void => void lines.push(message);
  const log = { info: () => undefined, warn: note, error: note };
  stage = await IdentityBench.open({ identity: { login: { clientId: CLIENT.id } }, serving: { log } });
  stage.issuer.isDown = true;
  const discoveries = (): number => stage.issuer.count('/.well-known/openid-configuration');
  const begin = async (): Promise<number> => (await new Browser().get('/auth/login')).status;
  for (let n = 0; n < 20; n += 1) expect(await begin()).toBe(503);
  expect([discoveries(), lines]).toEqual([1, ['an identity provider could not be reached']]);
  stage.issuer.isDown = false;
  stage.clock.advance(5_000);
  expect(await begin()).toBe(303);
});

test('C98 codes that the issuer refuses are logged once in ten seconds', async () => {
  const lines: string[] = [];
  const log = { info: () => undefined, error: () => undefined, warn: (message: string) => void lines.push(message) };
  const login = { clientId: CLIENT.id, clientSecret: CLIENT.secret };
  stage = await IdentityBench.open({ identity: { login }, serving: { log } });
  const guess = async (): Promise<number> => {
    const browser = new Browser();
    const begun = await browser.get('/auth/login');
    const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state') ?? '';
    return (await browser.get(`/auth/callback?code=guess&state=${state}`)).status;
  };
  const logged = (): number => lines.filter((line) => line === 'a code of a login was not exchanged').length;
  for (let n = 0; n < 5; n += 1) expect(await guess()).toBe(401);
  expect(logged()).toBe(1);
  stage.clock.advance(10_000);
  expect(await guess()).toBe(401);
  expect(logged()).toBe(2);
});
