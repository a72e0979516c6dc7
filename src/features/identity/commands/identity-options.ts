// The options with which `turnpike serve` accepts callers whom an OpenID Connect issuer has authenticated.

import { resolve } from 'node:path';
import { CLIENT_SECRET_VARIABLE, readClientSecret } from '../provider/client-secret.js';
import { hasIdentities, identitiesSource } from '../../../home/policy/home-identities.js';
import {
  IDENTITIES_PATH,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
} from '../../../core/contract/policy/identities.js';
import { usageError } from '../../../core/errors.js';
import type { IdentityOptions } from '../../../interfaces/service/identity-service.js';
import { CALLBACK_PATH } from '../service/login/login-flow.js';
import { commandUsageError } from '../../../interfaces/cli/arguments.js';
import type { CallerOptions, CliCommand, CommandArguments, CommandOption } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { displayPath, findContractFolder } from '../../../interfaces/cli/options/folders.js';

const OPTIONS: readonly CommandOption[] = [
  {
    name: 'oidc-issuer',
    value: 'URL',
    multiple: true,
    help: 'accept callers of this issuer, as identities.yaml maps them; may be repeated',
  },
  { name: 'oidc-audience', value: 'NAME', help: 'the audience that tokens of the issuers must name' },
  { name: 'oidc-jwks', value: 'URL', help: 'the keys of the only issuer (default: as its discovery says)' },
  {
    name: 'oidc-algorithm',
    value: 'ALG',
    multiple: true,
    help: 'accept this algorithm (default RS256, PS256, ES256, EdDSA); may be repeated',
  },
  { name: 'oidc-client-id', value: 'ID', help: 'let people sign in on the page, as this client of the first issuer' },
  {
    name: 'oidc-secret-file',
    value: 'FILE',
    help: `a file with the secret of the client (default: ${CLIENT_SECRET_VARIABLE})`,
  },
  {
    name: 'oidc-redirect',
    value: 'URL',
    help: `the address of ${CALLBACK_PATH} as browsers see it (default: on loopback, without TLS)`,
  },
];

/** Undefined without an issuer. @throws UsageError */
function parseIdentity(command: CliCommand, args: CommandArguments, io: Io): IdentityOptions | undefined {
  const issuers = args.list('oidc-issuer');
  const given = OPTIONS.filter(({ name }) => args.text(name) !== undefined || args.list(name).length > 0);
  if (issuers.length === 0) {
    const [useless] = given;
    if (useless !== undefined) throw commandUsageError(command, `--${useless.name} needs --oidc-issuer`);
    return undefined;
  }
  const [audience, jwksUri] = [args.text('oidc-audience'), args.text('oidc-jwks')];
  if (audience === undefined) throw commandUsageError(command, '--oidc-issuer needs --oidc-audience');
  if (jwksUri !== undefined && issuers.length > 1) {
    throw commandUsageError(command, '--oidc-jwks is for one issuer: the others would have the same keys');
  }
  const algorithms = args.list('oidc-algorithm').map((name) => parseAlgorithm(command, name));
  const more = {
    ...(jwksUri === undefined ? {} : { jwksUri }),
    ...(algorithms.length === 0 ? {} : { algorithms }),
  };
  const contract = findContractFolder(args, io).path;
  if (!hasIdentities(contract)) {
    throw usageError(
      `${displayPath(contract, io)} has no ${IDENTITIES_PATH}, which says who the callers of an issuer are`,
    );
  }
  return {
    issuers: issuers.map((issuer) => ({ issuer, audience, ...more })),
    identities: identitiesSource(contract),
    ...parseLogin(command, args, io),
  };
}

/** @throws UsageError; PolicyError for a file that other users may read */
function parseLogin(command: CliCommand, args: CommandArguments, io: Io): Pick<IdentityOptions, 'login'> {
  const [clientId, redirectUri] = [args.text('oidc-client-id'), args.text('oidc-redirect')];
  const file = args.text('oidc-secret-file');
  if (clientId === undefined) {
    if (redirectUri === undefined && file === undefined) return {};
    throw commandUsageError(command, '--oidc-redirect and --oidc-secret-file need --oidc-client-id');
  }
  const clientSecret = readClientSecret(file === undefined ? undefined : resolve(io.cwd, file));
  return { login: { clientId, clientSecret, ...(redirectUri === undefined ? {} : { redirectUri }) } };
}

function parseAlgorithm(command: CliCommand, name: string): SigningAlgorithm {
  const known = SIGNING_ALGORITHMS.find((algorithm) => algorithm === name);
  if (known !== undefined) return known;
  throw commandUsageError(command, `--oidc-algorithm takes one of ${SIGNING_ALGORITHMS.join(', ')}`);
}

export const IDENTITY_OPTIONS: CallerOptions = { options: OPTIONS, parse: parseIdentity };
