import Type, { type Static } from 'typebox';
import { DECISION_POINTS_MAX, DecisionPoint } from './decision-points.js';
import { ApprovalRule } from '../run/approval.js';
import { BudgetLimits } from '../run/budget.js';
import { SecretPattern } from './secret-patterns.js';
import { policyHeader } from './policy-header.js';
import { EXPOSURES } from '../run/response.js';
import { closed, Identifier, OneOf } from '../shapes.js';

/** An ending, or the whole name of a file that has none, such as Makefile. */
const Extension = Type.String({ pattern: '^(?:\\.[A-Za-z0-9]{1,16}|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$' });
const Limit = (maximum: number) => Type.Integer({ minimum: 1, maximum });

/**
 * What FINISH does while a request of its run waits for approval: `cancel` ends the run and its requests, `deny` denies
 * FINISH, `wait` answers it when the requests are decided or have expired.
 */
export const FINISH_RULES = ['cancel', 'deny', 'wait'] as const;
/** One of `FINISH_RULES`. */
export type FinishRule = (typeof FINISH_RULES)[number];

/** What an agent may propose, within which limits, and how much of the outcome it sees. */
export const ActionsPolicy = Type.Object(
  {
    ...policyHeader,
    actions: Type.Array(
      Type.Object(
        {
          action: Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' }),
          /**
           * Allowed file extensions per path argument, and names of files without one; an argument that is not listed
           * is not restricted.
           */
          extensions: Type.Optional(
            Type.Record(
              Type.String({ pattern: '^[a-z_]{1,40}$' }),
              Type.Array(Extension, { minItems: 1, maxItems: 64 }),
            ),
          ),
          /** D12: the lane of this action's mediated run, if it is not the agent's own. */
          lane: Type.Optional(Identifier),
        },
        closed,
      ),
      { minItems: 1, maxItems: 256 },
    ),
    limits: Type.Object(
      {
        payload_bytes_max: Limit(16_777_216),
        payload_depth_max: Limit(64),
        path_bytes_max: Limit(1_024),
        content_bytes_max: Limit(16_777_216),
        read_bytes_max: Limit(16_777_216),
        list_entries_max: Limit(100_000),
        steps_per_run_max: Limit(10_000_000),
        denials_per_run_max: Limit(1_000_000),
        /** C81: default 100, or `denials_per_run_max` if that is greater. */
        invalid_per_run_max: Type.Optional(Limit(1_000_000)),
      },
      closed,
    ),
    sandbox: Type.Object(
      { bytes_max: Limit(1e12), files_max: Limit(10_000_000), depth_max: Limit(64), portable_names: Type.Boolean() },
      closed,
    ),
    response: Type.Object({ exposure: OneOf(EXPOSURES) }, closed),
    /** The budget of one run tree; a caller may ask for less. */
    budgets: Type.Optional(BudgetLimits),
    /** What is removed from the events of coding agents before they are recorded. Default: keys of well-known forms. */
    secrets: Type.Optional(Type.Array(SecretPattern, { maxItems: 64 })),
    /** Which subjects need approval, and by whom (D7). */
    approvals: Type.Optional(Type.Array(ApprovalRule, { maxItems: 64 })),
    /** Decision points outside the platform that can deny what policy allows. */
    decision_points: Type.Optional(Type.Array(DecisionPoint, { minItems: 1, maxItems: DECISION_POINTS_MAX })),
    /** The number of retries of a failed idempotent action and the first delay, which doubles each time (C54). */
    retries: Type.Optional(
      Type.Object(
        {
          max: Type.Integer({ minimum: 0, maximum: 10 }),
          backoff_ms: Type.Integer({ minimum: 0, maximum: 86_400_000 }),
        },
        closed,
      ),
    ),
    knobs: Type.Object(
      {
        duplicate_proposal_ids: OneOf(['reject', 'replay']),
        dotdot: OneOf(['reject', 'defer']),
        extensions_stage: OneOf(['authorize', 'validate']),
        on_child_failure: OneOf(['fail', 'continue']),
        /** When the head of the ledger is signed. Default: after every batch. */
        checkpoints: Type.Optional(OneOf(['batch', 'tree_end'])),
        /** What FINISH does while a request of the run waits for its approval. Default: `cancel`. */
        finish_with_pending_request: Type.Optional(OneOf(FINISH_RULES)),
      },
      closed,
    ),
  },
  closed,
);
export type ActionsPolicy = Static<typeof ActionsPolicy>;
