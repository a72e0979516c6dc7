// Tokens by which callers over HTTP are known. What is kept of one is its SHA-256 alone: whoever reads the file learns
// none of them, since they are 256 bits of chance each.

import Type, { type Static } from 'typebox';
import { Actor, CaseId, closed, Identifier, Nullable, OneOf, Sha256, Timestamp } from './shapes.js';

/**
 * What a token may be used for: look at everything; start agent runs, and propose in them; work through sessions; see
 * and answer what waits for people; start promotions and exports, cancel runs, and settle outcomes.
 */
export const RIGHTS = ['observe', 'act', 'sessions', 'approve', 'govern'] as const;
export type Right = (typeof RIGHTS)[number];

/** Tokens of one home. */
export const TOKENS_MAX = 1_024;

export const TokenId = Type.String({ minLength: 5, maxLength: 40, pattern: '^tok_[A-Za-z0-9]+$' });

export const TokenRecord = Type.Object(
  {
    id: TokenId,
    sha256: Sha256,
    actor: Actor.properties.actor_id,
    role: Identifier,
    /** The one case in which it may act; null: in any. */
    case: Nullable(CaseId),
    rights: Type.Array(OneOf(RIGHTS), { minItems: 1, maxItems: RIGHTS.length, uniqueItems: true }),
    created_at: Timestamp,
    /** Null: it holds until it is revoked. */
    expires_at: Nullable(Timestamp),
  },
  closed,
);
export type TokenRecord = Static<typeof TokenRecord>;

export const TokenList = Type.Object(
  { version: Type.Literal(1), tokens: Type.Array(TokenRecord, { maxItems: TOKENS_MAX }) },
  closed,
);
export type TokenList = Static<typeof TokenList>;
