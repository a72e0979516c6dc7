// A service as the client of an issuer: the discovery document, the secret of the client, and the authorization code
// flow with PKCE (RFC 6749, RFC 7636).

import { createHash } from 'node:crypto';
import { fetchJson, isSafeEndpoint } from '../../../system/network/json-fetch.js';
import { usageError } from '../../../core/errors.js';
import { readSmallFile } from '../../../system/files/small-file.js';

const ANSWER_BYTES_MAX = 65_536;
const URL_CHARS_MAX = 2_048;

/** The endpoints of an issuer. Null: the document does not name one that may be used. */
export interface ProviderMetadata {
  readonly jwks_uri: string;
  readonly authorization_endpoint: string | null;
  readonly token_endpoint: string | null;
  /** Whether a client may authenticate in the body of the request only. */
  readonly postsSecret: boolean;
}

export type MetadataResult = { readonly metadata: ProviderMetadata } | { readonly failed: string };

/**
 * Reads the discovery document (OpenID Connect Discovery 1.0). It must be about exactly this issuer: another one could
 * pass off its own keys as those of this one.
 */
export async function discoverProvider(issuer: string): Promise<MetadataResult> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const answer = await fetchJson(url, { bytesMax: ANSWER_BYTES_MAX });
  if ('failed' in answer) return { failed: `${url}: ${answer.failed}` };
  const { json } = answer;
  if (json['issuer'] !== issuer) return { failed: `${url}: it is about another issuer` };
  const endpoint = (name: string): string | null => {
    const value = json[name];
    return typeof value === 'string' && value.length <= URL_CHARS_MAX && isSafeEndpoint(value, issuer) ? value : null;
  };
  const jwks_uri = endpoint('jwks_uri');
  if (jwks_uri === null) return { failed: `${url}: its jwks_uri is missing or may not be used` };
  const methods = json['token_endpoint_auth_methods_supported'];
  return {
    metadata: {
      jwks_uri,
      authorization_endpoint: endpoint('authorization_endpoint'),
      token_endpoint: endpoint('token_endpoint'),
      postsSecret: Array.isArray(methods) && !methods.includes('client_secret_basic'),
    },
  };
}

/** The registration of a service at an issuer. */
export interface OidcClient {
  readonly clientId: string;
  /** Null for a public client. */
  readonly clientSecret: string | null;
  readonly redirectUri: string;
}

interface LoginRequest {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly scope: string;
}

/** The address at the issuer to which a browser is sent; it contains no secret. */
export function authorizationUrl(endpoint: string, client: OidcClient, login: LoginRequest): string {
  const url = new URL(endpoint);
  const parameters = {
    response_type: 'code',
    client_id: client.clientId,
    redirect_uri: client.redirectUri,
    scope: login.scope,
    state: login.state,
    nonce: login.nonce,
    code_challenge: createHash('sha256').update(login.verifier).digest('base64url'),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

type CodeExchangeResult = { readonly id_token: string } | { readonly failed: string };

/** Exchanges a code for an ID token, which is not verified yet. Never throws. */
export async function exchangeCode(
  { token_endpoint, postsSecret }: ProviderMetadata,
  { clientId, clientSecret, redirectUri }: OidcClient,
  { code, verifier }: { readonly code: string; readonly verifier: string },
): Promise<CodeExchangeResult> {
  if (token_endpoint === null) return { failed: 'the issuer names no token endpoint that may be used' };
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    client_id: clientId,
    code_verifier: verifier,
  });
  if (clientSecret !== null && postsSecret) form.set('client_secret', clientSecret);
  const authorization =
    clientSecret === null || postsSecret ? {} : { authorization: basicAuthorization(clientId, clientSecret) };
  const answer = await fetchJson(token_endpoint, { bytesMax: ANSWER_BYTES_MAX, form, ...authorization });
  if ('failed' in answer) return answer;
  const { id_token } = answer.json;
  return typeof id_token === 'string' ? { id_token } : { failed: 'its answer has no ID token' };
}

/** RFC 6749, 2.3.1: both parts are encoded as in a form before they are joined. */
function basicAuthorization(clientId: string, clientSecret: string): string {
  const encode = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')}`;
}

export const CLIENT_SECRET_VARIABLE = 'TURNPIKE_OIDC_CLIENT_SECRET';
const SECRET_BYTES_MAX = 4_096;
const FORBIDDEN_MODE = 0o077;

/**
 * The secret of the client: from a file of its owner, or from the environment. It is never an argument, which other
 * users of the machine can read.
 * @returns null for a public client, which has no secret
 * @throws PolicyError if other users may read the file; UsageError if there is no file, or it is empty
 */
export function readClientSecret(file: string | undefined): string | null {
  if (file === undefined) {
    const given = process.env[CLIENT_SECRET_VARIABLE] ?? '';
    // A platform may set the variable without a value.
    return given === '' ? null : given;
  }
  const bytes = readSmallFile(file, { bytesMax: SECRET_BYTES_MAX, forbiddenMode: FORBIDDEN_MODE });
  const secret = bytes === null ? '' : Buffer.from(bytes).toString('utf8').trim();
  if (secret === '') throw usageError(`${file} must have the client secret`);
  return secret;
}
