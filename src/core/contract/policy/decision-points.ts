// Decision points outside the platform that policy asks before it allows an action. They can only deny.

import Type, { type Static } from 'typebox';
import { closed, OneOf, Sha256 } from '../shapes.js';

/** Maximum number of decision points of a policy. */
export const DECISION_POINTS_MAX = 8;
/** Maximum number of answers for one step: each decision point is asked about each path, of which there are two. */
export const DECISION_ANSWERS_MAX = 2 * DECISION_POINTS_MAX;

const Name = Type.String({ pattern: '^[a-z][a-z0-9_]{0,63}$' });

export const DecisionPoint = Type.Object(
  {
    name: Name,
    /** `authzen`: an evaluation of AuthZEN 1.0. `opa`: a document of the data API of Open Policy Agent. */
    protocol: OneOf(['authzen', 'opa']),
    /** https, or http to the local machine. */
    url: Type.String({ minLength: 1, maxLength: 2_048 }),
    /** The environment variable with the bearer token. Absent: the request has none. */
    token_env: Type.Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' })),
    /** As in conditions: `WRITE_FILE`, `CALL_TOOL:payments.refund`, `WRITE_RECORD:invoices`. */
    actions: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 64 }),
    /** The arguments that it gets; a point leads into an object. Absent: none. */
    sends: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 120 }), { maxItems: 32 })),
    /** Without an answer by then, the action is denied. */
    timeout_ms: Type.Integer({ minimum: 50, maximum: 10_000 }),
    /** How long an answer holds for the same request. Absent: not at all. */
    cache_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_600 })),
  },
  closed,
);
export type DecisionPoint = Static<typeof DecisionPoint>;

/** What one decision point is asked about a step. */
export interface DecisionQuery {
  readonly point: DecisionPoint;
  /** Canonical JSON. */
  readonly body: string;
}

/** What a decision point answered. `none`: nothing in time, or nothing that is an answer. */
export const DECISION_ANSWERS = ['permit', 'deny', 'none'] as const;
export type DecisionAnswer = (typeof DECISION_ANSWERS)[number];

export const DecisionFact = Type.Object(
  {
    name: Name,
    answer: OneOf(DECISION_ANSWERS),
    /** SHA-256 of the request. */
    request_hash: Sha256,
    /** Whether it is the answer to an earlier request that was the same. */
    cached: Type.Boolean(),
  },
  closed,
);
export type DecisionFact = Static<typeof DecisionFact>;

/** What a decision point answered, and whether to an earlier request that was the same. */
export type DecisionReply = Pick<DecisionFact, 'answer' | 'cached'>;
export const NO_REPLY: DecisionReply = { answer: 'none', cached: false };
