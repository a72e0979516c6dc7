import type { Right } from '../contract/token.js';

/** Who asks, as far as it counts: what a token was given for. */
export interface Principal {
  /** Of the token. */
  readonly id: string;
  readonly actor: string;
  readonly role: string;
  /** The one case in which it may act; null: in any. */
  readonly case: string | null;
  readonly rights: ReadonlySet<Right>;
}

/** The tokens that open a door. Neither method throws, or takes longer the nearer a guess is. */
export interface TokenBook {
  /** @returns null for a token that is unknown, revoked or out of time */
  find(token: string): Principal | null;
  /** Whether the token of this id still opens: a stream may be older than its token. */
  holds(id: string): boolean;
}
