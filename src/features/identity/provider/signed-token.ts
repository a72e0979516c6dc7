// Signed tokens (JWT): the only place that uses `jose`.

import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, errors, importJWK, jwtVerify, type JWK } from 'jose';
import { isJsonObject, type JsonObject, readJson } from '../../../core/contract/json.js';
import type { SigningAlgorithm } from '../../../core/contract/policy/identities.js';
import type { TokenProblem } from '../../../engine/ports/identity-provider.js';

/** Longest token, in characters; request headers end at 16 KiB. */
const TOKEN_CHARS_MAX = 8_192;
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const KID_CHARS_MAX = 255;
/** Types of tokens that may authenticate a caller; a token of another type was made for another purpose. */
const TYPES: readonly unknown[] = [undefined, 'JWT', 'jwt', 'at+jwt', 'application/at+jwt'];

/** What a token says before it is verified: enough to find the issuer and the key. */
interface TokenHead {
  readonly issuer: string;
  readonly algorithm: string;
  readonly kid: string;
}

/** Whether the text has the form of a signed token, which no token of the token book has. */
export const isSignedToken = (text: string): boolean => text.length <= TOKEN_CHARS_MAX && COMPACT.test(text);

/** @returns null for a token that is malformed, names no key, or was made for another purpose */
export function readTokenHead(compact: string): TokenHead | null {
  if (!isSignedToken(compact)) return null;
  try {
    const { alg, kid, typ, crit, b64 } = decodeProtectedHeader(compact);
    const { iss } = decodeJwt(compact);
    if (!hasStrictParts(compact)) return null;
    if (typeof iss !== 'string' || typeof alg !== 'string' || typeof kid !== 'string') return null;
    if (kid === '' || kid.length > KID_CHARS_MAX || !TYPES.includes(typ)) return null;
    return crit === undefined && b64 === undefined ? { issuer: iss, algorithm: alg, kid } : null;
  } catch {
    return null;
  }
}

/** `jose` takes the last of two equal members; another reader of the token can take the first. */
const hasStrictParts = (compact: string): boolean =>
  compact
    .split('.')
    .slice(0, 2)
    .every((part) => readJson(Buffer.from(part, 'base64url')) !== undefined);

/** A public key of an issuer. */
export interface PublicKey {
  readonly kid: string;
  /** The algorithm for which the issuer restricts the key; null: any that its type has. */
  readonly algorithm: string | null;
  /** The thumbprint (RFC 7638), in hex. */
  readonly sha256: string;
  readonly jwk: JWK;
}

/** The public members of the key types that sign; whatever else a key has is dropped. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  RSA: ['n', 'e'],
  EC: ['crv', 'x', 'y'],
  OKP: ['crv', 'x'],
};

/** @returns null for what is not a public key for signatures with an id */
export async function readPublicKey(value: unknown): Promise<PublicKey | null> {
  if (!isJsonObject(value)) return null;
  const { kty, kid, alg, use, key_ops, ...rest } = value;
  if (typeof kty !== 'string' || !Object.hasOwn(MEMBERS, kty)) return null;
  if (typeof kid !== 'string' || kid === '' || kid.length > KID_CHARS_MAX) return null;
  if (use !== undefined && use !== 'sig') return null;
  if (Array.isArray(key_ops) && !key_ops.includes('verify')) return null;
  const members = (MEMBERS[kty] ?? []).map((name) => [name, rest[name]] as const);
  if (members.some(([, member]) => typeof member !== 'string')) return null;
  const jwk = { kty, ...Object.fromEntries(members) } as JWK;
  try {
    const sha256 = Buffer.from(await calculateJwkThumbprint(jwk), 'base64url').toString('hex');
    return { kid, algorithm: typeof alg === 'string' ? alg : null, sha256, jwk };
  } catch {
    return null;
  }
}

interface VerificationRules {
  readonly issuer: string;
  readonly audience: string;
  readonly algorithm: SigningAlgorithm;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly toleranceSeconds: number;
}

type ClaimsResult = { readonly claims: JsonObject } | { readonly problem: TokenProblem };

/** The claims of a token that this key has signed for this audience, within its time. */
export async function verifyClaims(
  compact: string,
  { jwk, algorithm: restricted }: PublicKey,
  { issuer, audience, algorithm, now, toleranceSeconds }: VerificationRules,
): Promise<ClaimsResult> {
  if (restricted !== null && restricted !== algorithm) return { problem: 'algorithm' };
  try {
    const key = await importJWK(jwk, algorithm);
    const { payload } = await jwtVerify(compact, key, {
      issuer,
      audience,
      algorithms: [algorithm],
      clockTolerance: toleranceSeconds,
      currentDate: new Date(now),
      requiredClaims: ['sub', 'exp', 'iat'],
    });
    return { claims: payload as JsonObject };
  } catch (error) {
    return { problem: problemOf(error) };
  }
}

function problemOf(error: unknown): TokenProblem {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    return error.reason === 'missing' ? 'claim_missing' : (CLAIM_PROBLEMS[error.claim] ?? 'claim_missing');
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature';
  if (error instanceof errors.JWTInvalid || error instanceof errors.JWSInvalid) return 'malformed';
  // A key of another type than the algorithm needs, or one that is too short.
  return 'algorithm';
}

const CLAIM_PROBLEMS: Readonly<Record<string, TokenProblem>> = {
  iss: 'issuer_unknown',
  aud: 'audience',
  nbf: 'not_yet_valid',
  iat: 'not_yet_valid',
  exp: 'expired',
};
