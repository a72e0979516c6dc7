// Small schemas that several documents of the contract share.

import Type, { type Static, type TEnum, type TSchema } from 'typebox';

/** `additionalProperties: false`: no optional field may become a hidden control channel (S1-02). */
export const closed = { additionalProperties: false } as const;

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
/** One of the names of a vocabulary tuple. */
export const OneOf = <const T extends readonly string[]>(values: T): TEnum<[...T]> =>
  Type.Enum(values) as unknown as TEnum<[...T]>;

export const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
/** A commit or blob id of Git: SHA-1 or SHA-256, lower-case hex (C45). */
export const GitSha = Type.String({ pattern: '^(?:[0-9a-f]{40}|[0-9a-f]{64})$' });
/** RFC 3339 in UTC with milliseconds, as `Date.prototype.toISOString` prints it. */
export const Timestamp = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$' });
/** The latest time that a `Timestamp` can represent, in milliseconds since the epoch. */
export const LATEST_TIMESTAMP_MS = Date.parse('9999-12-31T23:59:59.999Z');
/** D11: a random root, followed by one ordinal per level: `run_x`, `run_x.1`, `run_x.1.2`. */
export const RunId = Type.String({ minLength: 8, maxLength: 120, pattern: '^[A-Za-z0-9_]+(?:\\.[1-9][0-9]*)*$' });
export const CaseId = Type.String({ minLength: 4, maxLength: 80, pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$' });
export const Identifier = Type.String({ minLength: 1, maxLength: 120, pattern: '^[A-Za-z0-9][A-Za-z0-9_.:@-]*$' });

export const Actor = Type.Object(
  {
    actor_type: OneOf(['agent', 'human', 'system']),
    actor_id: Type.String({ minLength: 3, maxLength: 120 }),
    agent_name: Type.Optional(Type.String({ maxLength: 120 })),
    user_display: Type.Optional(Type.String({ maxLength: 120 })),
  },
  closed,
);
export type Actor = Static<typeof Actor>;

/** Replaces a missing pin: an audit event must have a value of six characters or more (C44). */
export const UNPINNED = 'UNPINNED';
const Pin = Type.Union([GitSha, Type.Literal(UNPINNED)]);

/** The versions of every policy file and of the machines that judge a run (S4-26 to S4-28). */
export const PolicyVersions = Type.Object(
  {
    lanes: Pin,
    roles: Pin,
    actions: Pin,
    machines: Sha256,
    /** Absent: the policy has no conditions. */
    conditions: Type.Optional(Pin),
    /** Absent: the policy has no counters. */
    counters: Type.Optional(Pin),
  },
  closed,
);
export type PolicyVersions = Static<typeof PolicyVersions>;

export const TaxonomyVersions = Type.Object(
  {
    coa: Type.Optional(Type.String({ maxLength: 120 })),
    tags: Type.Optional(Type.String({ maxLength: 120 })),
    entities: Type.Optional(Type.String({ maxLength: 120 })),
  },
  closed,
);
export type TaxonomyVersions = Static<typeof TaxonomyVersions>;

/** The scope fields with which a lane requires the version of a taxonomy, and the name of that taxonomy (S4-30). */
export const TAXONOMY_FIELDS = { coa_version: 'coa', tags_version: 'tags', entities_version: 'entities' } as const;
export type TaxonomyField = keyof typeof TAXONOMY_FIELDS;
