// What a service is configured with for an OpenID Connect issuer, and what it knows of the issuer and its tokens.

import type { JsonObject } from '../../core/contract/json.js';
import type { SIGNING_ALGORITHMS, SigningAlgorithm } from '../../core/contract/policy/identities.js';

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

/** The state of the keys of an issuer, for health and metrics. */
export type KeysState = 'fresh' | 'stale' | 'absent';

/** How long the keys of an issuer count, in milliseconds. */
export interface KeyAges {
  readonly freshMs: number;
  readonly staleMs: number;
  readonly cooldownMs: number;
}

/** An issuer whose tokens are accepted. */
export interface OidcIssuerOptions {
  /** The identifier of the issuer: https, or http of this machine. */
  readonly issuer: string;
  /** The audience that its tokens must name. */
  readonly audience: string;
  /** The address of its keys. Default: as its discovery document says. */
  readonly jwksUri?: string;
  /** Default: RS256, PS256, ES256 and EdDSA. */
  readonly algorithms?: readonly (typeof SIGNING_ALGORITHMS)[number][];
  /** How far the clocks may differ, in seconds: at most 300. Default: 30. */
  readonly toleranceSeconds?: number;
  /** How long keys count, in milliseconds. */
  readonly keyAges?: Partial<KeyAges>;
}

/** The registration of this service at an issuer, for people who sign in on the page. */
export interface LoginOptions {
  readonly clientId: string;
  /** Default: none, for a public client. */
  readonly clientSecret?: string | null;
  /** The address of `/auth/callback` of this service, as browsers see it. Default: the first host, without TLS. */
  readonly redirectUri?: string;
  /** Default: the first issuer. */
  readonly issuer?: string;
  /** Default: `openid`. */
  readonly scope?: string;
  /** How long a session lasts at most, in milliseconds. Default and limit: 8 hours. */
  readonly sessionMs?: number;
}
