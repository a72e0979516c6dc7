// The authorization code flow with PKCE (RFC 6749, RFC 7636), from the side of the client.

import { createHash } from 'node:crypto';
import { fetchJson } from '../../../system/network/json-fetch.js';
import type { ProviderMetadata } from './provider-metadata.js';

const ANSWER_BYTES_MAX = 65_536;

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
