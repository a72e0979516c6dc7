// How a voter was authenticated, as a vote records it. No token and no text of an issuer is in it: of the subject and
// of the key's id it has hashes (C90, C98).

import Type, { type Static } from 'typebox';
import { AuthenticationContext, IssuerUrl, SIGNING_ALGORITHMS } from '../policy/identities.js';
import { closed, Identifier, Nullable, OneOf, Sha256, Timestamp } from '../shapes.js';
import { TokenId } from '../token.js';

/** Whether policy says which person it is; if not, the name of the actor counts within its own source only. */
const mapped = Type.Boolean();

/** A bearer token of the token book. */
export const TokenIdentity = Type.Object({ source: Type.Literal('token'), token_id: TokenId, mapped }, closed);

/** A token that an OpenID Connect issuer has signed. */
export const OidcIdentity = Type.Object(
  {
    source: Type.Literal('oidc'),
    issuer: IssuerUrl,
    subject_sha256: Sha256,
    mapped,
    /** The mapping of identities.yaml that matched, and the SHA-256 of that file. */
    mapping_id: Identifier,
    policy_sha256: Sha256,
    algorithm: OneOf(SIGNING_ALGORITHMS),
    kid_sha256: Sha256,
    /** The thumbprint of the key (RFC 7638), in hex. */
    key_sha256: Sha256,
    /** Null if the token has none, or one that is not a name of printable ASCII. */
    acr: Nullable(AuthenticationContext),
    /** When the person has authenticated, as the issuer says. */
    auth_time: Nullable(Timestamp),
  },
  closed,
);
/** An identity that conforms to the schema `OidcIdentity`. */
export type OidcIdentity = Static<typeof OidcIdentity>;

export const VerifiedIdentity = Type.Union([TokenIdentity, OidcIdentity]);
/** An identity that conforms to the schema `VerifiedIdentity`. */
export type VerifiedIdentity = Static<typeof VerifiedIdentity>;
