// An OpenID Connect issuer: verifies its tokens, and exchanges the codes of its logins.

import type { SigningAlgorithm } from '../../../core/contract/policy/identities.js';
import type { JsonObject } from '../../../core/contract/json.js';
import { usageError } from '../../../core/errors.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { OidcIssuerOptions, TokenProblem, VerifiedToken } from '../../../engine/ports/identity-provider.js';
import type { Log } from '../../../engine/ports/log.js';
import { isSafeUrl } from '../../../core/contract/safe-url.js';
import { isSafeEndpoint } from '../../../system/network/json-fetch.js';
import { KEY_AGES, ProviderKeys } from './provider-keys.js';
import { discoverProvider, type MetadataResult, type ProviderMetadata } from './code-exchange.js';
import { readTokenHead, verifyClaims } from './signed-token.js';

/** What `serve` accepts if no algorithm is named. */
const DEFAULT_ALGORITHMS: readonly SigningAlgorithm[] = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const TOLERANCE_SECONDS_DEFAULT = 30;
const TOLERANCE_SECONDS_MAX = 300;
/** Longest time between issue and expiry of a token, in seconds. */
const LIFETIME_SECONDS_MAX = 86_400;
/** The time between two attempts to discover an issuer that fails: any client can cause one by beginning a login. */
const DISCOVERY_MS_MIN = 5_000;

interface OidcProviderOptions extends OidcIssuerOptions {
  readonly clock: Clock;
  readonly log: Log;
}

type TokenVerification = { readonly token: VerifiedToken } | { readonly problem: TokenProblem };

/** What a token must be made for. */
interface ExpectedToken {
  readonly audience: string;
  /** For an ID token of a login. */
  readonly nonce?: string;
}

export class OidcProvider {
  readonly keys: ProviderKeys;
  readonly #options: OidcProviderOptions;
  #metadata: Promise<MetadataResult> | null = null;
  /** When a discovery that has failed is tried again, in milliseconds since the epoch. */
  #retryAt = Infinity;

  /** @throws UsageError for an address that may not be used, or a value beyond its limit */
  constructor(options: OidcProviderOptions) {
    checkOptions(options);
    this.#options = options;
    const { issuer, jwksUri, clock, log, keyAges } = options;
    this.keys = new ProviderKeys({
      ...KEY_AGES,
      ...keyAges,
      issuer,
      clock,
      log,
      locate: async () => {
        if (jwksUri !== undefined) return { url: jwksUri };
        const found = await this.#discover();
        return 'failed' in found ? found : { url: found.metadata.jwks_uri };
      },
    });
  }

  get issuer(): string {
    return this.#options.issuer;
  }

  get audience(): string {
    return this.#options.audience;
  }

  /** The endpoints for logins; null while the issuer cannot be reached. */
  async metadata(): Promise<ProviderMetadata | null> {
    const found = await this.#discover();
    return 'metadata' in found ? found.metadata : null;
  }

  /** Never throws: what cannot be verified is a problem. */
  async verify(compact: string, { audience, nonce }: ExpectedToken): Promise<TokenVerification> {
    const head = readTokenHead(compact);
    if (head === null) return { problem: 'malformed' };
    const { issuer, algorithms = DEFAULT_ALGORITHMS, clock, toleranceSeconds } = this.#options;
    if (head.issuer !== issuer) return { problem: 'issuer_unknown' };
    const algorithm = algorithms.find((allowed) => allowed === head.algorithm);
    if (algorithm === undefined) return { problem: 'algorithm' };
    const found = await this.keys.find(head.kid);
    if ('problem' in found) return found;
    const { key } = found;
    const tolerance = toleranceSeconds ?? TOLERANCE_SECONDS_DEFAULT;
    const rules = { issuer, audience, algorithm, now: clock.now(), toleranceSeconds: tolerance };
    const result = await verifyClaims(compact, key, rules);
    if ('problem' in result) return result;
    return checkClaims(result.claims, { ...rules, nonce, kid: key.kid, key_sha256: key.sha256 });
  }

  /** A failed discovery is tried again later; a successful one holds as long as the process. */
  #discover(): Promise<MetadataResult> {
    const { clock, log } = this.#options;
    const now = clock.now();
    if (this.#metadata !== null && now < this.#retryAt) return this.#metadata;
    this.#retryAt = Infinity;
    this.#metadata = discoverProvider(this.issuer).then((result) => {
      if ('failed' in result) {
        this.#retryAt = now + DISCOVERY_MS_MIN;
        log.error('an identity provider could not be reached', { issuer: this.issuer, reason: result.failed });
      }
      return result;
    });
    return this.#metadata;
  }
}

interface ClaimRules {
  readonly issuer: string;
  readonly nonce: string | undefined;
  readonly now: number;
  readonly toleranceSeconds: number;
  readonly algorithm: SigningAlgorithm;
  readonly kid: string;
  readonly key_sha256: string;
}

const SUBJECT_CHARS_MAX = 255;

/** The checks that the library does not make: times against each other, the subject, and the nonce. */
function checkClaims(
  claims: JsonObject,
  { issuer, nonce, now, toleranceSeconds, algorithm, kid, key_sha256 }: ClaimRules,
): TokenVerification {
  const { sub, exp, iat } = claims;
  if (typeof sub !== 'string' || sub === '' || sub.length > SUBJECT_CHARS_MAX || !sub.isWellFormed()) {
    return { problem: 'claim_missing' };
  }
  if (typeof exp !== 'number' || typeof iat !== 'number') return { problem: 'claim_missing' };
  if (iat > now / 1_000 + toleranceSeconds) return { problem: 'not_yet_valid' };
  if (exp - iat > LIFETIME_SECONDS_MAX) return { problem: 'lifetime' };
  if (nonce !== undefined && claims['nonce'] !== nonce) return { problem: 'nonce' };
  const token: VerifiedToken = {
    issuer,
    subject: sub,
    claims,
    expires_at: (exp + toleranceSeconds) * 1_000,
    algorithm,
    kid,
    key_sha256,
  };
  return { token };
}

function checkOptions({ issuer, audience, jwksUri, algorithms, toleranceSeconds = 0 }: OidcIssuerOptions): void {
  if (!isSafeUrl(issuer) || issuer.includes('?')) {
    throw usageError('an issuer is an https URL, or an http URL of this machine, without query and fragment');
  }
  if (audience === '' || audience.length > 400) throw usageError('the audience of an issuer has 1 to 400 characters');
  if (jwksUri !== undefined && !isSafeEndpoint(jwksUri, issuer)) {
    throw usageError('the address of the keys of an issuer must be https, as the issuer is');
  }
  if (algorithms?.length === 0) throw usageError('an issuer needs an algorithm');
  if (!(toleranceSeconds >= 0 && toleranceSeconds <= TOLERANCE_SECONDS_MAX)) {
    throw usageError(`the clock tolerance is at most ${TOLERANCE_SECONDS_MAX} seconds`);
  }
}
