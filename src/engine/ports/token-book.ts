import type { OidcIdentity } from '../../core/contract/run/verified-identity.js';
import type { Right } from '../../core/contract/token.js';

/** How an issuer has authenticated a caller, and how long that holds. */
export interface VerifiedCaller {
  readonly identity: OidcIdentity;
  readonly kid: string;
  /** Milliseconds since the epoch. */
  readonly expires_at: number;
  /** The session of the page in which the caller is; null for a bearer token. */
  readonly session: string | null;
}

/** An authenticated client: what its token was issued for. */
export interface Principal {
  /** Id of the token. All tokens with which an issuer gives a caller the same rights have one id. */
  readonly id: string;
  readonly actor: string;
  readonly role: string;
  /** The only case in which it may act; null for any case. */
  readonly case: string | null;
  readonly rights: ReadonlySet<Right>;
  /** The person behind the actor, if policy maps it to one. */
  readonly person?: string;
  /** Absent for a token of the token book. */
  readonly verified?: VerifiedCaller;
}

/** Looks up access tokens. Neither method throws, and its duration does not depend on how close a guess is. */
export interface TokenBook {
  /** @returns null if the token is unknown, revoked or expired */
  find(token: string): Principal | null;
  /** Whether the token of this id is still valid: a stream may outlive its token. */
  holds(id: string): boolean;
}
