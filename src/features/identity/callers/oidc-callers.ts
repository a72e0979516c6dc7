// Callers with a token that an issuer has signed. A token counts while it has not expired, its key is one of the
// issuer's, and policy maps its claims. Every reason for a refusal looks the same to the caller.

import { hash } from 'node:crypto';
import type { OidcProvider } from '../provider/oidc-provider.js';
import { isSignedToken, readTokenHead } from '../provider/signed-token.js';
import { canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import { AuthenticationContext } from '../../../core/contract/policy/identities.js';
import type { OidcIdentity } from '../../../core/contract/run/verified-identity.js';
import { Actor, LATEST_TIMESTAMP_MS } from '../../../core/contract/shapes.js';
import { isConforming } from '../../../core/contract/validators.js';
import { nameProblem } from '../../../names/person-name.js';
import { mapClaims, type MappedCaller } from '../map-claims.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { TokenProblem, VerifiedToken } from '../../../engine/ports/identity-provider.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import type { IdentityPolicy, IdentityPolicyState } from './identity-policy.js';
import type { IdentityResult } from '../../../engine/ports/request-identity.js';
import { createLruMap } from '../../../system/lru-map.js';

/** Limit of the remembered tokens; the one that was used longest ago is forgotten first. */
const REMEMBERED_MAX = 4_096;
/** Limit of the tokens that are verified at the same time: their callers are not known yet. */
const VERIFYING_MAX = 64;

interface OidcCallersOptions {
  readonly issuers: readonly OidcProvider[];
  readonly policy: IdentityPolicy;
  readonly clock: Clock;
  readonly onRefused: (problem: TokenProblem) => void;
}

export class OidcCallers {
  readonly #options: OidcCallersOptions;
  /** By the hash of the token, so that memory has no token. */
  readonly #remembered = createLruMap<Principal>(REMEMBERED_MAX);
  #verifying = 0;

  constructor(options: OidcCallersOptions) {
    this.#options = options;
  }

  /** @returns null for a text that is not a signed token */
  identify(bearer: string): IdentityResult | Promise<IdentityResult> | null {
    if (!isSignedToken(bearer)) return null;
    const digest = hash('sha256', bearer);
    const known = this.#remembered.get(digest);
    if (known !== undefined && this.#isCertain(known)) return { principal: known };
    this.#remembered.delete(digest);
    return this.#verify(bearer, digest);
  }

  /** Whether the caller would still be accepted, as far as is known without waiting. */
  holds({ verified }: Principal): boolean {
    if (verified === undefined) return false;
    const { identity, kid, expires_at } = verified;
    const { policy, clock } = this.#options;
    if (policy.latest === null) void policy.read();
    const state = policy.known;
    if (expires_at <= clock.now() || 'failed' in state || state.sha256 !== identity.policy_sha256) return false;
    return this.#providerOf(identity.issuer)?.keys.has(kid, identity.key_sha256) === true;
  }

  /** A caller who was accepted before, if that still holds. */
  confirm(principal: Principal): IdentityResult | Promise<IdentityResult> {
    const isFresh = this.#providerOf(principal.verified?.identity.issuer)?.keys.state === 'fresh';
    return isFresh && this.#options.policy.latest !== null
      ? this.#confirmed(principal)
      : this.#readAndConfirm(principal);
  }

  async #readAndConfirm(principal: Principal): Promise<IdentityResult> {
    const { kid = '', identity } = principal.verified ?? {};
    await this.#options.policy.read();
    await this.#providerOf(identity?.issuer)?.keys.confirm(kid, identity?.key_sha256 ?? '');
    return this.#confirmed(principal);
  }

  /** The caller whom a verified token stands for, as policy maps it. */
  async accept(token: VerifiedToken): Promise<IdentityResult> {
    const state = await this.#options.policy.read();
    return 'failed' in state ? { problem: 'policy' } : toPrincipal(token, state);
  }

  #confirmed(principal: Principal): IdentityResult {
    if (this.holds(principal)) return { principal };
    this.#options.onRefused('session');
    return { problem: 'session' };
  }

  /** The same, and nothing has to be read again to know it. */
  #isCertain(principal: Principal): boolean {
    const issuer = this.#providerOf(principal.verified?.identity.issuer);
    return issuer?.keys.state === 'fresh' && this.#options.policy.latest !== null && this.holds(principal);
  }

  #providerOf(issuer: string | undefined): OidcProvider | undefined {
    return this.#options.issuers.find((provider) => provider.issuer === issuer);
  }

  async #verify(bearer: string, digest: string): Promise<IdentityResult> {
    const result = await this.#verifyBounded(bearer);
    if ('principal' in result) this.#remembered.set(digest, result.principal);
    else this.#options.onRefused(result.problem);
    return result;
  }

  async #verifyBounded(bearer: string): Promise<IdentityResult> {
    const head = readTokenHead(bearer);
    if (head === null) return { problem: 'malformed' };
    const issuer = this.#providerOf(head.issuer);
    if (issuer === undefined) return { problem: 'issuer_unknown' };
    if (this.#verifying >= VERIFYING_MAX) return { problem: 'unavailable' };
    this.#verifying += 1;
    try {
      const verification = await issuer.verify(bearer, { audience: issuer.audience });
      return 'problem' in verification ? verification : await this.accept(verification.token);
    } finally {
      this.#verifying -= 1;
    }
  }
}

type PolicyInForce = Extract<IdentityPolicyState, { readonly policy: unknown }>;

function toPrincipal(token: VerifiedToken, { policy, sha256: hashed }: PolicyInForce): IdentityResult {
  const mapped = mapClaims(policy, token);
  if ('problem' in mapped) return mapped;
  const { caller } = mapped;
  if (![caller.actor, caller.person ?? caller.actor].every(isName)) return { problem: 'claim_missing' };
  const { actor, role, person } = caller;
  const identity = identityOf(token, caller, hashed);
  const verified = { identity, kid: token.kid, expires_at: token.expires_at, session: null };
  const principal = { id: idOf(token, caller), actor, role, case: caller.case, rights: caller.rights, verified };
  return { principal: person === null ? principal : { ...principal, person } };
}

/** A claim may hold any text: as a name it has a length, and nothing that cannot be seen. */
const isName = (name: string): boolean =>
  name.isWellFormed() && isConforming(Actor.properties.actor_id, name) && nameProblem(name) === null;

/** One for all tokens of one caller with the same rights: limits and MCP sessions belong to it. */
const idOf = (
  { issuer, subject }: VerifiedToken,
  { actor, person, role, case: case_id, rights }: MappedCaller,
): string =>
  `oidc_${sha256(canonicalJson([issuer, subject, actor, person, role, case_id, [...rights].sort()])).slice(0, 32)}`;

function identityOf(token: VerifiedToken, { mapping_id, person }: MappedCaller, policy_sha256: string): OidcIdentity {
  const { acr, auth_time } = token.claims;
  const authenticatedMs = typeof auth_time === 'number' ? auth_time * 1_000 : NaN;
  const isTime = authenticatedMs >= 0 && authenticatedMs <= LATEST_TIMESTAMP_MS;
  return {
    source: 'oidc',
    issuer: token.issuer,
    subject_sha256: sha256(token.subject),
    mapped: person !== null,
    mapping_id,
    policy_sha256,
    algorithm: token.algorithm,
    kid_sha256: sha256(token.kid),
    key_sha256: token.key_sha256,
    acr: typeof acr === 'string' && isConforming(AuthenticationContext, acr) ? acr : null,
    auth_time: isTime ? new Date(authenticatedMs).toISOString() : null,
  };
}
