import type { Right } from '../contract/token.js';

/** An authenticated client: what its token was issued for. */
export interface Principal {
  /** Id of the token. */
  readonly id: string;
  readonly actor: string;
  readonly role: string;
  /** The only case in which it may act; null for any case. */
  readonly case: string | null;
  readonly rights: ReadonlySet<Right>;
}

/** Looks up access tokens. Neither method throws, and its duration does not depend on how close a guess is. */
export interface TokenBook {
  /** @returns null if the token is unknown, revoked or expired */
  find(token: string): Principal | null;
  /** Whether the token of this id is still valid: a stream may outlive its token. */
  holds(id: string): boolean;
}
