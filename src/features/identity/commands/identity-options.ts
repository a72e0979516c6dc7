// The options with which `turnpike serve` accepts callers whom an OpenID Connect issuer has authenticated.

import { CLIENT_SECRET_VARIABLE, readClientSecret } from '../provider/code-exchange.js';
import { hasIdentities, identitiesSource } from '../../../home/policy/home-policy.js';
import { IDENTITIES_PATH, SIGNING_ALGORITHMS } from '../../../core/contract/policy/identities.js';
import { usageError } from '../../../core/errors.js';
import type { IdentityOptions } from '../../../interfaces/service/identity-service.js';
import { CALLBACK_PATH } from '../service/login/login-flow.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { CallerOptions, ArgumentsOf, CommandOption } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { PATH_TYPE, wordType } from '../../../interfaces/cli/option-types.js';
import { displayPath, findContractFolder } from '../../../interfaces/cli/options/folders.js';

const NEEDS_ISSUER = 'oidc-issuer';

const OPTIONS = [
  {
    name: 'oidc-issuer',
    value: 'URL',
    multiple: true,
    needs: 'oidc-audience',
    help: 'accept callers of this issuer, as identities.yaml maps them; may be repeated',
  },
  {
    name: 'oidc-audience',
    value: 'NAME',
    needs: NEEDS_ISSUER,
    help: 'the audience that tokens of the issuers must name',
  },
  {
    name: 'oidc-jwks',
    value: 'URL',
    needs: NEEDS_ISSUER,
    help: 'the keys of the only issuer (default: as its discovery says)',
  },
  {
    name: 'oidc-algorithm',
    value: 'ALG',
    type: { ...wordType(SIGNING_ALGORITHMS), takes: `one of ${SIGNING_ALGORITHMS.join(', ')}`, quotes: false },
    multiple: true,
    needs: NEEDS_ISSUER,
    help: 'accept this algorithm (default RS256, PS256, ES256, EdDSA); may be repeated',
  },
  {
    name: 'oidc-client-id',
    value: 'ID',
    needs: NEEDS_ISSUER,
    help: 'let people sign in on the page, as this client of the first issuer',
  },
  {
    name: 'oidc-secret-file',
    value: 'FILE',
    type: PATH_TYPE,
    needs: NEEDS_ISSUER,
    help: `a file with the secret of the client (default: ${CLIENT_SECRET_VARIABLE})`,
  },
  {
    name: 'oidc-redirect',
    value: 'URL',
    needs: NEEDS_ISSUER,
    help: `the address of ${CALLBACK_PATH} as browsers see it (default: on loopback, without TLS)`,
  },
] as const satisfies readonly CommandOption[];

type IdentityArguments = ArgumentsOf<typeof OPTIONS>;

/** Undefined without an issuer. @throws UsageError */
function parseIdentity(args: IdentityArguments, io: Io): IdentityOptions | undefined {
  const {
    oidcIssuer: issuers,
    oidcAudience: audience = '',
    oidcJwks: jwksUri,
    oidcAlgorithm: algorithms,
  } = args.values;
  if (issuers.length === 0) return undefined;
  if (jwksUri !== undefined && issuers.length > 1) {
    throw args.usageError('--oidc-jwks is for one issuer: the others would have the same keys');
  }
  const more = omitUndefined({ jwksUri, algorithms: algorithms.length === 0 ? undefined : algorithms });
  const contract = findContractFolder(args, io).path;
  if (!hasIdentities(contract)) {
    throw usageError(
      `${displayPath(contract, io)} has no ${IDENTITIES_PATH}, which says who the callers of an issuer are`,
    );
  }
  return {
    issuers: issuers.map((issuer) => ({ issuer, audience, ...more })),
    identities: identitiesSource(contract),
    ...parseLogin(args),
  };
}

/** @throws UsageError; PolicyError for a file that other users may read */
function parseLogin(args: IdentityArguments): Pick<IdentityOptions, 'login'> {
  const { oidcClientId: clientId, oidcRedirect: redirectUri, oidcSecretFile: file } = args.values;
  if (clientId === undefined) {
    if (redirectUri === undefined && file === undefined) return {};
    throw args.usageError('--oidc-redirect and --oidc-secret-file need --oidc-client-id');
  }
  return { login: { clientId, clientSecret: readClientSecret(file), ...omitUndefined({ redirectUri }) } };
}

export const IDENTITY_OPTIONS: CallerOptions = { options: OPTIONS, parse: parseIdentity };
