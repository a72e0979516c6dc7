// What the request guard asks about a caller who is not in the token book.

import type { TokenProblem } from './identity-provider.js';
import type { Principal } from './token-book.js';

/** The credentials of a request. Absent ones are null. */
export interface RequestCredentials {
  readonly method: string;
  readonly bearer: string | null;
  readonly cookie: string | null;
  /** The header that a page of this service sends with a session. */
  readonly csrf: string | null;
  readonly origin: string | null;
}

export type IdentityResult = { readonly principal: Principal } | { readonly problem: TokenProblem };

export interface RequestIdentity {
  /** @returns null if the request has no credential of this kind; synchronously, if nothing has to be waited for */
  identify(credentials: RequestCredentials): IdentityResult | Promise<IdentityResult> | null;
  /** A caller of the token book, with the person behind its actor; a problem if that cannot be known. */
  withPerson(principal: Principal): IdentityResult | Promise<IdentityResult>;
  /** Whether the caller would still be accepted: a stream may outlive its token. */
  holds(principal: Principal): boolean;
}
