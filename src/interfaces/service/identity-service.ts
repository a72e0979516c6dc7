// What a service needs of the feature that identifies callers of issuers. `feature-services.ts` lists what creates it.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../engine/ports/clock.js';
import type { IdentitiesSource } from '../../engine/ports/policy-sources.js';
import type { KeysState, LoginOptions, OidcIssuerOptions, TokenProblem } from '../../engine/ports/identity-provider.js';
import type { Log } from '../../engine/ports/log.js';
import type { RequestIdentity } from '../../engine/ports/request-identity.js';

/** Issuers whose tokens identify callers, and who these callers are. */
export interface IdentityOptions {
  readonly issuers: readonly OidcIssuerOptions[];
  /** `identities.yaml`: from `identitiesSource`, or of the caller. */
  readonly identities: IdentitiesSource;
  /** Lets people sign in on the page. Default: they cannot. */
  readonly login?: LoginOptions;
}

/** Refusals so far by their problem, and the state of the keys of each issuer. */
export interface IdentityCounts {
  readonly refused: Readonly<Record<TokenProblem, number>>;
  readonly keys: Readonly<Record<string, KeysState>>;
  readonly sessions: number;
}

/** The callers of a service that are not in the token book: issuers have authenticated them. */
export interface IdentityService extends RequestIdentity {
  /**
   * Checks what a service should not start without.
   * @throws PolicyError if identities.yaml is missing, invalid or not pinned; UsageError for an issuer without mappings
   */
  check(): Promise<void>;
  /**
   * The logins of the page, or null without.
   * @param origin of the page, if the options do not say where it is
   * @throws UsageError for a login that cannot work
   */
  openLogin(origin: string, recordFailure: RecordFailure): PageLogin | null;
  /**
   * Why callers of an issuer cannot be identified now; null if they can, as far as is known. Also tries to fetch
   * missing keys again, for the next call.
   */
  findUnreadiness(): Promise<string | null>;
  readonly counts: IdentityCounts;
}

/** Counts a failed login. @returns milliseconds to wait if the address was over its limit; else 0 */
export type RecordFailure = (request: IncomingMessage) => number;

/** The addresses at which people sign in and out on the page. */
export interface PageLogin {
  /** The origin of the page, as browsers see it. */
  readonly origin: string;
  /** Where a person begins to sign in. */
  readonly path: string;
  /** Whether a path is one of these addresses, which need no token. */
  has(path: string): boolean;
  /** Whether another site, which is the issuer, may send a browser with this request. */
  isReturn(method: string, path: string): boolean;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** @throws UsageError for an issuer that cannot be used, or that is there twice */
export type CreateIdentityService = (options: IdentityOptions, clock: Clock, log: Log) => IdentityService;
