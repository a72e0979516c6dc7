// Verifies tokens of one OpenID Connect issuer.

import type { JsonObject } from '../../core/contract/json.js';
import type { SigningAlgorithm } from '../../core/contract/policy/identities.js';

/** Why a token is refused. For logs and metrics only: a caller learns none of it. */
export const TOKEN_PROBLEMS = [
  'malformed',
  'issuer_unknown',
  'algorithm',
  'key_unknown',
  'signature',
  'audience',
  'expired',
  'not_yet_valid',
  'lifetime',
  'claim_missing',
  'nonce',
  'unmapped',
  'policy',
  'session',
  'csrf',
  'unavailable',
] as const;
/** One of `TOKEN_PROBLEMS`. */
export type TokenProblem = (typeof TOKEN_PROBLEMS)[number];

/** What a signed token says, after all checks. */
export interface VerifiedToken {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: JsonObject;
  /** Milliseconds since the epoch, with the clock tolerance. */
  readonly expires_at: number;
  readonly algorithm: SigningAlgorithm;
  readonly kid: string;
  /** The thumbprint of the key (RFC 7638), in hex. */
  readonly key_sha256: string;
}

export type TokenVerification = { readonly token: VerifiedToken } | { readonly problem: TokenProblem };

/** What a token must be made for. */
export interface ExpectedToken {
  readonly audience: string;
  /** For an ID token of a login. */
  readonly nonce?: string;
}

/** The state of the keys of an issuer, for health and metrics. */
export type KeysState = 'fresh' | 'stale' | 'absent';

export interface IdentityProvider {
  readonly issuer: string;
  /** Never throws: what cannot be verified is a problem. */
  verify(compact: string, expected: ExpectedToken): Promise<TokenVerification>;
  /** Whether the issuer still publishes the key, as far as is known without waiting. */
  hasKey(kid: string, key_sha256: string): boolean;
  /** The same, after old keys were fetched again. */
  confirmKey(kid: string, key_sha256: string): Promise<boolean>;
  readonly keysState: KeysState;
}
