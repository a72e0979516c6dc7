// What an agent run would be under another policy: the case that its lane leaves it, and the budget that it would have
// been given out of a tree that had used up what it had used up, with the same agents at work.

import { newChildContext } from '../../../machines/orchestrator.js';
import { BUDGET_KINDS, type Account, type Amounts, type BudgetKind, type Limits } from '../../contract/run/budget.js';
import type { RunContext } from '../../contract/run/run-context.js';
import type { Policy } from '../../policy/policy.js';
import { amountsOf, limitsOf, reserve } from '../../run/budget.js';
import type { AgentStart } from './recorded-decision.js';

interface AgentUnderPolicy {
  readonly run: RunContext;
  /** What it would have been given; null where it would have been refused. */
  readonly grant: Limits | null;
  readonly exhausted: BudgetKind | null;
  /** What its steps may use up. */
  readonly limit: Limits;
}

/** Agents are asked about in the order of their starts, so that those beside one are known before it. */
const agentsByPolicy = new WeakMap<Policy, WeakMap<AgentStart, AgentUnderPolicy>>();

function agentUnderPolicy(start: AgentStart, policy: Policy): AgentUnderPolicy {
  let starts = agentsByPolicy.get(policy);
  if (starts === undefined) agentsByPolicy.set(policy, (starts = new WeakMap()));
  const found = starts.get(start) ?? decideAgentStart(start, policy);
  starts.set(start, found);
  return found;
}

function decideAgentStart(start: AgentStart, policy: Policy): AgentUnderPolicy {
  const { parent, children, event, spent, siblings } = start;
  const limit = limitsOf(policy.budgets);
  const grants = siblings.map(
    (sibling) => agentUnderPolicy(sibling, policy).grant ?? limitsOf(sibling.event.budget ?? {}),
  );
  const requested = limitsOf(event.budget ?? {});
  const reservation = reserve({ limit, spent, reserved: sumReserved(limit, grants) }, requested);
  const grant = 'exhausted' in reservation ? null : reservation.grant;
  return {
    run: newChildContext({ run: parent, children }, event, 'agent', policy),
    grant,
    exhausted: 'exhausted' in reservation ? reservation.exhausted : null,
    // One that would have been refused was there all the same, with what it had asked for.
    limit: limitsOf({ steps: policy.limits.steps_per_run_max }, grant ?? requested),
  };
}

const sumReserved = (limit: Limits, grants: readonly Limits[]): Amounts => {
  const total = { ...NO_AMOUNTS };
  for (const grant of grants)
    for (const kind of BUDGET_KINDS) if (limit[kind] !== null) total[kind] += grant[kind] ?? 0;
  return total;
};

const NO_AMOUNTS = amountsOf({});

export const agentContextUnder = (start: AgentStart, policy: Policy): RunContext => agentUnderPolicy(start, policy).run;

export const exhaustedBudgetUnder = (start: AgentStart, policy: Policy): BudgetKind | null =>
  agentUnderPolicy(start, policy).exhausted;

/** The account of the agent run after it has used up so much. */
export const accountUnder = (start: AgentStart, spent: Amounts, policy: Policy): Account => ({
  limit: agentUnderPolicy(start, policy).limit,
  spent,
  reserved: NO_AMOUNTS,
});
