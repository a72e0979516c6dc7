// The budget of runs. A budget splits along the run tree: a child gets a part of its parent's budget, and the rest
// returns to the parent at its end. The rules are in `core/run/budget-account.ts`.

import Type, { type Static } from 'typebox';
import { closed, Nullable } from '../shapes.js';

/**
 * The kinds of budgets; if several are exhausted, the first in this order is reported. `wall_ms` adds up the times of
 * runs: two concurrent runs of a second use two. An agent reports its own `tokens`.
 */
export const BUDGET_KINDS = ['steps', 'tool_calls', 'wall_ms', 'bytes', 'tokens'] as const;
export type BudgetKind = (typeof BUDGET_KINDS)[number];

/** The largest amount, at which sums saturate. Larger numbers are not exact. */
export const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;

const Amount = Type.Integer({ minimum: 0, maximum: AMOUNT_MAX });
const Limit = Nullable(Amount);
const OptionalAmount = Type.Optional(Amount);

/** An amount of every kind. */
export const Amounts = Type.Object(
  { steps: Amount, tool_calls: Amount, wall_ms: Amount, bytes: Amount, tokens: Amount },
  closed,
);
export type Amounts = Static<typeof Amounts>;

/** An upper limit for every kind; null is unlimited. */
export const Limits = Type.Object(
  { steps: Limit, tool_calls: Limit, wall_ms: Limit, bytes: Limit, tokens: Limit },
  closed,
);
export type Limits = Static<typeof Limits>;

/** The section `budgets` of a policy file. A kind that is left out is not limited; 0 allows nothing. */
export const BudgetLimits = Type.Object(
  {
    steps: OptionalAmount,
    tool_calls: OptionalAmount,
    wall_ms: OptionalAmount,
    bytes: OptionalAmount,
    tokens: OptionalAmount,
  },
  closed,
);
export type BudgetLimits = Static<typeof BudgetLimits>;

/**
 * The limit of one run, what it has spent, and what it reserves for children that have not settled. A kind without a
 * limit needs no reservation.
 */
export const Account = Type.Object({ limit: Limits, spent: Amounts, reserved: Amounts }, closed);
export type Account = Static<typeof Account>;
