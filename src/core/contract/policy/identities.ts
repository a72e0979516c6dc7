// The policy file identities.yaml: which callers that an OpenID Connect issuer has authenticated are which actors, with
// which role, case and rights. What no mapping matches is refused.

import Type, { type Static } from 'typebox';
import { policyHeader } from './policy-header.js';
import { Actor, CaseId, closed, Identifier, OneOf } from '../shapes.js';
import { RIGHTS } from '../token.js';

/** The path in a contract folder, with forward slashes. */
export const IDENTITIES_PATH = 'policy/identities.yaml';

/** Signature algorithms that can be allowed: with each, who can verify a token cannot make one. */
export const SIGNING_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;
/** One of `SIGNING_ALGORITHMS`. */
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

export const ISSUER_CHARS_MAX = 512;
/** The identifier of an issuer: a URL without query and fragment, compared exactly. */
export const IssuerUrl = Type.String({ maxLength: ISSUER_CHARS_MAX, pattern: '^https?://[!-"$->@-~]+$' });

/** An authentication context class, as an issuer names it. */
export const AuthenticationContext = Type.String({ pattern: '^[!-~]{1,200}$' });

const ClaimName = Type.String({ pattern: '^[!-~]{1,200}$' });
const ClaimValue = Type.Union([
  Type.String({ minLength: 1, maxLength: 400 }),
  Type.Boolean(),
  Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
]);
const FromClaim = Type.Object({ claim: ClaimName }, closed);
const Name = Type.Union([Type.Object({ name: Actor.properties.actor_id }, closed), FromClaim]);

/** Who the callers are that satisfy all conditions: all of its claims, and one of its subjects. */
export const IdentityMapping = Type.Object(
  {
    id: Identifier,
    /** The token must have each claim with one of the values. A claim that is a list must contain one of them. */
    claims: Type.Optional(
      Type.Record(ClaimName, Type.Array(ClaimValue, { minItems: 1, maxItems: 64 }), { ...closed, maxProperties: 16 }),
    ),
    subjects: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { minItems: 1, maxItems: 1_024 }),
    ),
    /** The name that the ledger records. */
    actor: Name,
    /**
     * The person behind the actor. Voters of different sources are compared only by it, so the rights `approve` and
     * `govern` need one.
     */
    person: Type.Optional(Name),
    role: Identifier,
    /** The only case in which the caller may act. `any` is no case id: it is too short for one. */
    case: Type.Union([Type.Literal('any'), CaseId, FromClaim]),
    rights: Type.Array(OneOf(RIGHTS), { minItems: 1, maxItems: RIGHTS.length, uniqueItems: true }),
  },
  closed,
);
export type IdentityMapping = Static<typeof IdentityMapping>;

/** An issuer with its mappings, of which the first one that matches counts. */
export const IssuerMappings = Type.Object(
  { issuer: IssuerUrl, mappings: Type.Array(IdentityMapping, { minItems: 1, maxItems: 256 }) },
  closed,
);
export type IssuerMappings = Static<typeof IssuerMappings>;

/** The schema of `identities.yaml`. */
export const IdentitiesPolicy = Type.Object(
  {
    ...policyHeader,
    issuers: Type.Array(IssuerMappings, { minItems: 1, maxItems: 16 }),
    /** The persons behind actors of the token book, so that their votes can be compared with those of issuers. */
    tokens: Type.Optional(
      Type.Array(Type.Object({ actor: Actor.properties.actor_id, person: Actor.properties.actor_id }, closed), {
        maxItems: 1_024,
      }),
    ),
  },
  closed,
);
/** An identities policy that conforms to the schema `IdentitiesPolicy`. */
export type IdentitiesPolicy = Static<typeof IdentitiesPolicy>;
