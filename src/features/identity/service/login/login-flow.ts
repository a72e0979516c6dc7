// Signing in on the page: the authorization code flow with PKCE, run by the service. The browser gets a session
// cookie and never a token, and no address contains one.
//
// Invariants:
//   L1. What a login needs to remember is sealed in a cookie of the browser that began it: a code that comes back to
//       another browser, or late, or again after or while the issuer accepts it, is refused.
//   L2. A session ends with its ID token, with its limit, with the key or the mapping by which it was accepted, and
//       when the person signs out.
//   L3. A change with a session needs the origin of the page and a header with a secret that only the page can read.

import { drawToken } from '../../../../stores/keys/access-token.js';
import { authorizationUrl, exchangeCode, type OidcClient } from '../../provider/code-exchange.js';
import type { OidcProvider } from '../../provider/oidc-provider.js';
import { createTextSeal } from '../../provider/sealed-text.js';
import { parseOwnJson } from '../../../../core/contract/json.js';
import { isSafeUrl } from '../../../../core/contract/safe-url.js';
import { usageError } from '../../../../core/errors.js';
import type { Clock } from '../../../../engine/ports/clock.js';
import type { LoginOptions, TokenProblem } from '../../../../engine/ports/identity-provider.js';
import type { Log } from '../../../../engine/ports/log.js';
import { isSameSecret, LoginSessions, type LoginSession, UsedLogins } from './login-sessions.js';
import type { OidcCallers } from '../../callers/oidc-callers.js';
import type { IdentityResult, RequestCredentials } from '../../../../engine/ports/request-identity.js';

/** How long a person may take to sign in, in milliseconds. */
const LOGIN_MS_MAX = 600_000;
/** Limit of the codes that are exchanged at the same time: their callers are not known yet. */
const EXCHANGES_MAX = 16;
const CODE_CHARS_MAX = 2_048;
/** The time between two log lines about refused codes, in milliseconds. */
const LOG_INTERVAL_MS = 10_000;
export const CALLBACK_PATH = '/auth/callback';

interface LoginFlowOptions {
  readonly login: LoginOptions & { readonly redirectUri: string };
  readonly provider: OidcProvider;
  readonly callers: OidcCallers;
  readonly clock: Clock;
  readonly log: Log;
  readonly onRefused: (problem: TokenProblem) => void;
}

/** A login that has begun. */
interface BegunLogin {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly return_to: string;
  readonly expires_at: number;
}

/** Where a browser is sent next, with its cookies; or why it is not. */
export type LoginStep =
  | { readonly location: string; readonly cookies: readonly string[] }
  | { readonly problem: TokenProblem; readonly cookies: readonly string[] };

export class LoginFlow {
  readonly #options: LoginFlowOptions;
  readonly #client: OidcClient;
  readonly #jar: CookieJar;
  readonly #seal = createTextSeal();
  readonly #sessions: LoginSessions;
  readonly #used: UsedLogins;
  #exchanging = 0;
  #loggedAt = -Infinity;

  /** @throws UsageError for an address to which a browser must not be sent */
  constructor(options: LoginFlowOptions) {
    const { clientId, clientSecret = null, redirectUri, sessionMs } = options.login;
    checkRedirect(redirectUri);
    this.#options = options;
    this.#client = { clientId, clientSecret, redirectUri };
    this.#jar = createCookieJar(this.origin);
    this.#sessions = new LoginSessions(options.clock, sessionMs);
    this.#used = new UsedLogins(options.clock);
  }

  /** The origin of the page, as browsers see it. */
  get origin(): string {
    return new URL(this.#options.login.redirectUri).origin;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** @param return_to a path of the page */
  async begin(return_to: string): Promise<LoginStep> {
    const { provider, clock, login } = this.#options;
    const metadata = await provider.metadata();
    if (metadata === null || metadata.authorization_endpoint === null) return { problem: 'unavailable', cookies: [] };
    const begun: BegunLogin = {
      state: drawToken(),
      nonce: drawToken(),
      verifier: drawToken(),
      return_to,
      expires_at: clock.now() + LOGIN_MS_MAX,
    };
    const request = { ...begun, scope: login.scope ?? 'openid' };
    const cookie = this.#jar.write('login', this.#seal.seal(JSON.stringify(begun)), LOGIN_MS_MAX / 1_000);
    return {
      location: authorizationUrl(metadata.authorization_endpoint, this.#client, request),
      cookies: [cookie],
    };
  }

  /** The issuer has sent the browser back with a code. */
  async finish(cookie: string | null, query: URLSearchParams): Promise<LoginStep> {
    // Whatever comes of it, this login is over.
    const cleared = this.#jar.write('login', '', 0);
    const begun = this.#openLogin(this.#jar.read('login', cookie));
    const code = query.get('code') ?? '';
    if (begun === null || !isSameSecret(query.get('state'), begun.state)) return this.#refuse('session', cleared);
    if (code === '' || code.length > CODE_CHARS_MAX) return this.#refuse('session', cleared);
    const accepted = await this.#exchange(code, begun);
    if ('problem' in accepted) return this.#refuse(accepted.problem, cleared);
    const { principal } = accepted;
    const opened = this.#sessions.open(principal, principal.verified?.expires_at ?? 0);
    if (opened === null) return this.#refuse('unavailable', cleared);
    const seconds = Math.max(1, Math.ceil((opened.session.expires_at - this.#options.clock.now()) / 1_000));
    const session = this.#jar.write('session', opened.cookie, seconds);
    return { location: begun.return_to, cookies: [cleared, session] };
  }

  /** The caller of a request with a session cookie; null if it has none. */
  identify({ method, cookie, csrf, origin }: RequestCredentials): IdentityResult | Promise<IdentityResult> | null {
    const given = this.#jar.read('session', cookie);
    if (given === null) return null;
    const session = this.#sessions.find(given);
    if (session === null) return this.#problem('session');
    const isRead = method === 'GET' || method === 'HEAD';
    if (!isRead && !(origin === this.origin && isSameSecret(csrf, session.csrf))) return this.#problem('csrf');
    return this.#options.callers.confirm(session.principal);
  }

  /** The session of a request that does not change anything; null if it has none that counts. */
  async find(cookie: string | null): Promise<LoginSession | null> {
    const session = this.#sessionIn(cookie);
    if (session === null) return null;
    return 'principal' in (await this.#options.callers.confirm(session.principal)) ? session : null;
  }

  /** Ends the session of a request. @returns the cookie that removes it; a problem if the page has not asked for it */
  end({ cookie, csrf, origin }: RequestCredentials): { readonly cookie: string } | { readonly problem: TokenProblem } {
    const session = this.#sessionIn(cookie);
    if (session === null) return this.#problem('session');
    if (!(origin === this.origin && isSameSecret(csrf, session.csrf))) return this.#problem('csrf');
    this.#sessions.end(session.id);
    return { cookie: this.#jar.write('session', '', 0) };
  }

  #sessionIn(cookie: string | null): LoginSession | null {
    const given = this.#jar.read('session', cookie);
    return given === null ? null : this.#sessions.find(given);
  }

  /** Whether the session of a caller has not ended. */
  has(session: string): boolean {
    return this.#sessions.has(session);
  }

  async #exchange(code: string, { state, nonce, verifier, expires_at }: BegunLogin): Promise<IdentityResult> {
    const { provider, callers } = this.#options;
    if (this.#exchanging >= EXCHANGES_MAX) return { problem: 'unavailable' };
    const use = this.#used.begin(state);
    if (use !== 'begun') return { problem: use === 'used' ? 'session' : 'unavailable' };
    this.#exchanging += 1;
    let isAccepted = false;
    try {
      const metadata = await provider.metadata();
      if (metadata === null) return { problem: 'unavailable' };
      const answer = await exchangeCode(metadata, this.#client, { code, verifier });
      if ('failed' in answer) {
        this.#logFailure(answer.failed);
        return { problem: 'session' };
      }
      isAccepted = true;
      const { clientId } = this.#client;
      const verification = await provider.verify(answer.id_token, { audience: clientId, nonce });
      if ('problem' in verification) return verification;
      // A token for several clients says for which of them it was made.
      const { azp, aud } = verification.token.claims;
      if (azp === undefined ? !isOnly(aud, clientId) : azp !== clientId) return { problem: 'audience' };
      return await callers.accept(verification.token);
    } finally {
      this.#exchanging -= 1;
      this.#used.settle(state, expires_at, isAccepted);
    }
  }

  /** Any client can send a code that the issuer refuses. */
  #logFailure(reason: string): void {
    const { provider, clock, log } = this.#options;
    const now = clock.now();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    log.warn('a code of a login was not exchanged', { issuer: provider.issuer, reason });
  }

  #openLogin(sealed: string | null): BegunLogin | null {
    const text = sealed === null ? null : this.#seal.open(sealed);
    if (text === null) return null;
    const begun = parseOwnJson(text) as BegunLogin;
    return begun.expires_at > this.#options.clock.now() ? begun : null;
  }

  #refuse(problem: TokenProblem, cookie: string): LoginStep {
    return { ...this.#problem(problem), cookies: [cookie] };
  }

  #problem(problem: TokenProblem): { readonly problem: TokenProblem } {
    this.#options.onRefused(problem);
    return { problem };
  }
}

/** @throws UsageError for an address to which a browser must not be sent */
export function checkRedirect(redirectUri: string): void {
  if (isSafeUrl(redirectUri) && new URL(redirectUri).pathname === CALLBACK_PATH) return;
  throw usageError(`the redirect address must be https, or http of this machine, and end with ${CALLBACK_PATH}`);
}

/** Whether the audience is this client and no other. */
const isOnly = (aud: unknown, clientId: string): boolean =>
  aud === clientId || (Array.isArray(aud) && aud.length === 1 && aud[0] === clientId);

/**
 * The cookies of the page. Over TLS their names begin with `__Host-`: the browser then accepts them only from this very
 * host, over TLS, for all paths. On loopback without TLS no browser has to accept such a cookie, so there the name has
 * the port instead, because all services of one address share their cookies.
 */
const COOKIES = { session: 'turnpike-session', login: 'turnpike-login' } as const;

interface CookieJar {
  /** The value of a cookie in a Cookie header; null if it is not there, or there twice. */
  read(name: keyof typeof COOKIES, header: string | null): string | null;
  /** A Set-Cookie header. `maxAgeSeconds` 0 removes the cookie. */
  write(name: keyof typeof COOKIES, value: string, maxAgeSeconds: number): string;
}

/** @param origin of the page, as browsers see it */
function createCookieJar(origin: string): CookieJar {
  const { protocol, port } = new URL(origin);
  const isSecure = protocol === 'https:';
  const nameOf = (name: keyof typeof COOKIES): string =>
    isSecure ? `__Host-${COOKIES[name]}` : `${COOKIES[name]}-${port === '' ? '80' : port}`;
  return {
    read(name, header) {
      const prefix = `${nameOf(name)}=`;
      const values = (header ?? '').split(';').flatMap((part) => {
        const cookie = part.trim();
        return cookie.startsWith(prefix) ? [cookie.slice(prefix.length)] : [];
      });
      const [value = null] = values;
      return values.length === 1 ? value : null;
    },
    write(name, value, maxAgeSeconds) {
      // The issuer's page sends the browser back, so the cookie of a login must come along with such a navigation.
      const sameSite = name === 'session' ? 'Strict' : 'Lax';
      const attributes = `Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${maxAgeSeconds}`;
      return `${nameOf(name)}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`;
    },
  };
}
