// What an agent run would be under another policy: the case that its lane leaves it, and the budget that it would have
// been given out of a tree that had used up what it had used up, with the same agents at work.

import { childOf } from '../../../machines/orchestrator.js';
import { BUDGET_KINDS, type Account, type Amounts, type BudgetKind, type Limits } from '../../contract/budget.js';
import type { RunContext } from '../../contract/run-context.js';
import type { Policy } from '../../policy/policy.js';
import { amountsOf, limitsOf, reserve } from '../../run/budget.js';
import type { AgentStart } from './decision.js';

interface Under {
  readonly run: RunContext;
  /** What it would have been given; null where it would have been refused. */
  readonly grant: Limits | null;
  readonly exhausted: BudgetKind | null;
  /** What its steps may use up. */
  readonly limit: Limits;
}

/** Agents are asked about in the order of their starts, so that those beside one are known before it. */
const known = new WeakMap<Policy, WeakMap<AgentStart, Under>>();

function under(start: AgentStart, policy: Policy): Under {
  let starts = known.get(policy);
  if (starts === undefined) known.set(policy, (starts = new WeakMap()));
  const found = starts.get(start) ?? made(start, policy);
  starts.set(start, found);
  return found;
}

function made(start: AgentStart, policy: Policy): Under {
  const { parent, children, event, spent, siblings } = start;
  const limit = limitsOf(policy.budgets);
  const grants = siblings.map((sibling) => under(sibling, policy).grant ?? limitsOf(sibling.event.budget ?? {}));
  const want = limitsOf(event.budget ?? {});
  const asked = reserve({ limit, spent, reserved: heldBack(limit, grants) }, want);
  const grant = 'exhausted' in asked ? null : asked.grant;
  return {
    run: childOf({ run: parent, children }, event, 'agent', policy),
    grant,
    exhausted: 'exhausted' in asked ? asked.exhausted : null,
    // One that would have been refused was there all the same, with what it had asked for.
    limit: limitsOf({ steps: policy.limits.steps_per_run_max }, grant ?? want),
  };
}

const heldBack = (limit: Limits, grants: readonly Limits[]): Amounts => {
  const total = { ...NOTHING };
  for (const grant of grants)
    for (const kind of BUDGET_KINDS) if (limit[kind] !== null) total[kind] += grant[kind] ?? 0;
  return total;
};

const NOTHING = amountsOf({});

export const agentUnder = (start: AgentStart, policy: Policy): RunContext => under(start, policy).run;

export const exhaustedAt = (start: AgentStart, policy: Policy): BudgetKind | null => under(start, policy).exhausted;

/** The account of the agent run after it has used up so much. */
export const accountUnder = (start: AgentStart, spent: Amounts, policy: Policy): Account => ({
  limit: under(start, policy).limit,
  spent,
  reserved: NOTHING,
});
