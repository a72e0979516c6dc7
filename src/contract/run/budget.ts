// What runs use up. A budget splits along the run tree: a child gets a part of what its parent has, and what it leaves
// over goes back. The rules are in `run/budget.ts`.

import Type, { type Static } from 'typebox';
import { closed, Nullable } from '../shapes.js';

/**
 * What there are budgets for; of several that are exhausted, the first in this order is named. `wall_ms` adds up the
 * times of runs: two that run side by side for a second use two. `tokens` are what an agent reports of itself.
 */
export const BUDGET_KINDS = ['steps', 'tool_calls', 'wall_ms', 'bytes', 'tokens'] as const;
export type BudgetKind = (typeof BUDGET_KINDS)[number];

/** The largest amount; sums stop here. Beyond it a number is no longer exact. */
export const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;

const Amount = Type.Integer({ minimum: 0, maximum: AMOUNT_MAX });
const Limit = Nullable(Amount);
const OptionalAmount = Type.Optional(Amount);

/** So much of every kind. */
export const Amounts = Type.Object(
  { steps: Amount, tool_calls: Amount, wall_ms: Amount, bytes: Amount, tokens: Amount },
  closed,
);
export type Amounts = Static<typeof Amounts>;

/** At most so much of every kind; null is unlimited. */
export const Limits = Type.Object(
  { steps: Limit, tool_calls: Limit, wall_ms: Limit, bytes: Limit, tokens: Limit },
  closed,
);
export type Limits = Static<typeof Limits>;

/** The section `budgets` of a policy file. A kind that is left out is not limited by it; 0 allows nothing. */
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
 * What one run may use, has used, and holds back for children that have not settled yet. Of a kind without a limit
 * nothing is held back, because nothing can run out.
 */
export const Account = Type.Object({ limit: Limits, spent: Amounts, reserved: Amounts }, closed);
export type Account = Static<typeof Account>;
