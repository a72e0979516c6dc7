// The callers of a service that are not in the token book: issuers have authenticated them.

import { OidcProvider } from '../provider/oidc-provider.js';
import type { IdentitiesPolicy } from '../../../core/contract/policy/identities.js';
import { PolicyError, usageError } from '../../../core/errors.js';
import { personOfToken } from '../map-claims.js';
import type { Clock } from '../../../engine/ports/clock.js';
import { TOKEN_PROBLEMS, type LoginOptions, type TokenProblem } from '../../../engine/ports/identity-provider.js';
import type { Log } from '../../../engine/ports/log.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import { IdentityPolicy } from '../callers/identity-policy.js';
import { CALLBACK_PATH, checkRedirect, LoginFlow } from './login/login-flow.js';
import { OidcCallers } from '../callers/oidc-callers.js';
import type { IdentityResult, RequestCredentials } from '../../../engine/ports/request-identity.js';
import type {
  CreateIdentityService,
  IdentityCounts,
  IdentityOptions,
  IdentityService,
  PageLogin,
  RecordFailure,
} from '../../../interfaces/service/identity-service.js';
import { createPageLogin } from './page-login.js';

/** The time between two log lines about the same problem, in milliseconds. */
const LOG_INTERVAL_MS = 10_000;

export class OidcIdentityService implements IdentityService {
  readonly #providers: readonly OidcProvider[];
  readonly #policy: IdentityPolicy;
  readonly #callers: OidcCallers;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #refused = Object.fromEntries(TOKEN_PROBLEMS.map((problem) => [problem, 0])) as Record<TokenProblem, number>;
  readonly #loggedAt = new Map<TokenProblem, number>();
  readonly #login: LoginOptions | undefined;
  #flow: LoginFlow | null = null;

  /** @throws UsageError for an issuer that cannot be used, or that is there twice */
  constructor({ issuers, identities, login }: IdentityOptions, clock: Clock, log: Log) {
    if (issuers.length === 0) throw usageError('identity: name an issuer');
    if (new Set(issuers.map(({ issuer }) => issuer)).size < issuers.length)
      throw usageError('identity: an issuer is there twice');
    if (login?.redirectUri !== undefined) checkRedirect(login.redirectUri);
    this.#login = login;
    this.#clock = clock;
    this.#log = log;
    this.#providers = issuers.map((options) => new OidcProvider({ ...options, clock, log }));
    this.#policy = new IdentityPolicy({ source: identities, clock, log });
    this.#callers = new OidcCallers({
      issuers: this.#providers,
      policy: this.#policy,
      clock,
      onRefused: (problem) => this.#recordRefusal(problem),
    });
  }

  async check(): Promise<void> {
    const state = await this.#policy.read();
    if ('failed' in state) throw new PolicyError({ code: 'POLICY_INVALID', message: state.failed });
    for (const { issuer } of this.#providers) {
      if (state.policy.issuers.some((listed) => listed.issuer === issuer)) continue;
      throw usageError(`identities.yaml has no mappings for ${issuer}: it would identify no caller`);
    }
  }

  openLogin(origin: string, recordFailure: RecordFailure): PageLogin | null {
    const flow = this.openFlow(origin);
    return flow === null ? null : createPageLogin({ flow, recordFailure });
  }

  /**
   * What signs people in on the page, or null without.
   * @param origin of the page, if the options do not say where it is
   * @throws UsageError for a login that cannot work
   */
  openFlow(origin: string): LoginFlow | null {
    const login = this.#login;
    if (login === undefined) return null;
    const provider = this.#providers.find(({ issuer }) => issuer === (login.issuer ?? this.#providers[0]?.issuer));
    if (provider === undefined) throw usageError('identity: the issuer of the login is not one of the issuers');
    this.#flow ??= new LoginFlow({
      login: { ...login, redirectUri: login.redirectUri ?? `${origin}${CALLBACK_PATH}` },
      provider,
      callers: this.#callers,
      clock: this.#clock,
      log: this.#log,
      onRefused: (problem) => this.#recordRefusal(problem),
    });
    return this.#flow;
  }

  identify(credentials: RequestCredentials): IdentityResult | Promise<IdentityResult> | null {
    const { bearer, cookie } = credentials;
    if (bearer !== null) return this.#callers.identify(bearer);
    return cookie === null ? null : (this.#flow?.identify(credentials) ?? null);
  }

  holds(principal: Principal): boolean {
    const session = principal.verified?.session ?? null;
    return this.#callers.holds(principal) && (session === null || this.#flow?.has(session) === true);
  }

  async findUnreadiness(): Promise<string | null> {
    for (const { keys } of this.#providers) keys.retry();
    if ('failed' in (await this.#policy.read())) return 'identities.yaml cannot be used';
    return this.#providers.some(({ keys }) => keys.isFailing) ? 'the keys of an identity provider are missing' : null;
  }

  withPerson(principal: Principal): IdentityResult | Promise<IdentityResult> {
    const map = (): IdentityResult => mapToken(principal, this.#policy.lastValid);
    return this.#policy.latest === null ? this.#policy.read().then(map) : map();
  }

  get counts(): IdentityCounts {
    return {
      refused: { ...this.#refused },
      sessions: this.#flow?.sessions ?? 0,
      keys: Object.fromEntries(this.#providers.map(({ issuer, keys }) => [issuer, keys.state])),
    };
  }

  /** Any client can cause refusals, so they are counted, and only some are logged. */
  #recordRefusal(problem: TokenProblem): void {
    this.#refused[problem] += 1;
    const now = this.#clock.now();
    if (now - (this.#loggedAt.get(problem) ?? -Infinity) < LOG_INTERVAL_MS) return;
    this.#loggedAt.set(problem, now);
    this.#log.warn('a token of an issuer was refused', { problem, refused: this.#refused[problem] });
  }
}

function mapToken(principal: Principal, policy: IdentitiesPolicy | null): IdentityResult {
  if (policy === null) return { problem: 'unavailable' };
  const person = personOfToken(policy, principal.actor);
  return { principal: person === null ? principal : { ...principal, person } };
}

export const createOidcIdentityService: CreateIdentityService = (options, clock, log) =>
  new OidcIdentityService(options, clock, log);
