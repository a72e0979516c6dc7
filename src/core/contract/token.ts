// Tokens that identify HTTP callers. Only the SHA-256 of a token is stored: a reader of the file cannot derive the
// token, because it is 256 random bits.

import Type, { type Static } from 'typebox';
import { Actor, CaseId, closed, Identifier, Nullable, OneOf, Sha256, Timestamp } from './shapes.js';

/**
 * What a token permits. `observe`: read everything. `act`: start agent runs and propose in them. `sessions`: work
 * through sessions. `approve`: list and answer pending approvals. `govern`: start promotions and exports, cancel runs
 * and settle outcomes.
 */
export const RIGHTS = ['observe', 'act', 'sessions', 'approve', 'govern'] as const;
/** One of the rights that a token can have. */
export type Right = (typeof RIGHTS)[number];

/** Rights that also give access to data of other cases: a caller who is kept to one case has none of them. */
export const CROSS_CASE_RIGHTS: ReadonlySet<Right> = new Set(['observe', 'sessions']);

/** Per home directory. */
export const TOKENS_MAX = 1_024;

export const TokenId = Type.String({ minLength: 5, maxLength: 40, pattern: '^tok_[A-Za-z0-9]+$' });

/** The schema of a stored token. It has the hash of the secret, not the secret. */
export const TokenRecord = Type.Object(
  {
    id: TokenId,
    sha256: Sha256,
    actor: Actor.properties.actor_id,
    role: Identifier,
    /** The only case in which it may act; null: any. */
    case: Nullable(CaseId),
    rights: Type.Array(OneOf(RIGHTS), { minItems: 1, maxItems: RIGHTS.length, uniqueItems: true }),
    created_at: Timestamp,
    /** Null: valid until it is revoked. */
    expires_at: Nullable(Timestamp),
  },
  closed,
);
/** A stored token that conforms to the schema `TokenRecord`. */
export type TokenRecord = Static<typeof TokenRecord>;

export const TokenList = Type.Object(
  { version: Type.Literal(1), tokens: Type.Array(TokenRecord, { maxItems: TOKENS_MAX }) },
  closed,
);
export type TokenList = Static<typeof TokenList>;
