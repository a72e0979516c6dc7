// The discovery document of an issuer (OpenID Connect Discovery 1.0), checked.

import { isSafeEndpoint, fetchJson } from '../../../system/network/json-fetch.js';

const METADATA_BYTES_MAX = 65_536;
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

/** The document must be about exactly this issuer: another one could pass off its own keys as those of this one. */
export async function discoverProvider(issuer: string): Promise<MetadataResult> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const answer = await fetchJson(url, { bytesMax: METADATA_BYTES_MAX });
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
