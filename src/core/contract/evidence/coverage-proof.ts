// The signed statement of `turnpike policy coverage`: how often each element of the pinned policies decided between two
// signed checkpoints of one log. An in-toto statement in a DSSE envelope (`SignedStatement`).

import Type, { type Static } from 'typebox';
import { closed, Nullable, OneOf, Sha256 } from '../shapes.js';
import { CHECKPOINT_CHARACTERS_MAX } from './bag-proof.js';
import { PROOF_HASHES_MAX } from './consistency-proof.js';
import { KeyNotes, STATEMENT_TYPE } from './evidence.js';

export const COVERAGE_TYPE = 'urn:turnpike:policy-coverage:v1';

export const ELEMENT_KINDS = [
  'lane',
  'grant',
  'rule',
  'condition',
  'prohibition',
  'approval',
  'decision_point',
] as const;

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Text = Type.String({ maxLength: 4_096 });
const Note = Type.String({ maxLength: CHECKPOINT_CHARACTERS_MAX });

/** How many decisions allowed and denied. */
const counts = { allowed: Count, denied: Count };

/** One element of a policy. It has decided as often as `allowed` and `denied` together say. */
export const ElementCoverage = Type.Object(
  {
    kind: OneOf(ELEMENT_KINDS),
    /** The lane that the element belongs to; null for an element of no lane. */
    lane_id: Nullable(Text),
    /** With the kind and the lane, unique in its policy. */
    name: Text,
    ...counts,
  },
  closed,
);
export type ElementCoverage = Static<typeof ElementCoverage>;

/** Decisions that no element made: by a limit, a budget, the emergency overlay, or the platform itself. */
export const OtherRuleCount = Type.Object({ rule_id: Nullable(Text), ...counts }, closed);
export type OtherRuleCount = Static<typeof OtherRuleCount>;

/** The decisions under one version of the policy. */
export const PolicyCoverage = Type.Object(
  {
    /** SHA-256 of the policy files that the run trees have pinned. */
    files: Type.Object(
      {
        lanes: Sha256,
        roles: Sha256,
        actions: Sha256,
        conditions: Type.Optional(Sha256),
        counters: Type.Optional(Sha256),
      },
      closed,
    ),
    decisions: Count,
    trees: Count,
    elements: Type.Array(ElementCoverage),
    other: Type.Array(OtherRuleCount),
  },
  closed,
);
export type PolicyCoverage = Static<typeof PolicyCoverage>;

export const CoverageStatement = Type.Object(
  {
    _type: Type.Literal(STATEMENT_TYPE),
    /** The name of the log, and the root of the later checkpoint as its digest. */
    subject: Type.Array(Type.Object({ name: Text, digest: Type.Object({ sha256: Sha256 }, closed) }, closed), {
      minItems: 1,
      maxItems: 1,
    }),
    predicateType: Type.Literal(COVERAGE_TYPE),
    predicate: Type.Object(
      {
        /** The key that has signed the statement and the later checkpoint: `name+hash+base64`. */
        key: Text,
        /** The notes of all rotations of the key, if there were any. */
        chain: Type.Optional(KeyNotes),
        /** The signed checkpoints. Null: the decisions are counted from the first entry of the log. */
        from: Nullable(Note),
        to: Note,
        /** Proves that the later log extends the earlier one; empty without an earlier one. */
        proof: Type.Array(Sha256, { maxItems: PROOF_HASHES_MAX }),
        /** Run trees that were counted only in part: content that decisions depend on is not available. */
        not_recomputed: Count,
        policies: Type.Array(PolicyCoverage),
      },
      closed,
    ),
  },
  closed,
);
export type CoverageStatement = Static<typeof CoverageStatement>;
