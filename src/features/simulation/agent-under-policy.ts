// The context and the budget of an agent run under another policy. The lane decides whether the run has a case. The
// budget comes from the tree's recorded consumption at that time, with the same agents live.

import { newChildContext } from '../../../machines/orchestrator.js';
import {
  BUDGET_KINDS,
  type Account,
  type Amounts,
  type BudgetKind,
  type Limits,
} from '../../core/contract/run/budget.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type { Policy } from '../../core/policy/policy.js';
import { amountsOf, limitsOf, reserve } from '../../core/run/budget-account.js';
import type { AgentStart } from './recorded-decision.js';

interface AgentUnderPolicy {
  readonly run: RunContext;
  /** The budget that the tree would have granted; null if it would have refused the start. */
  readonly grant: Limits | null;
  readonly exhausted: BudgetKind | null;
  /** The budget for the steps of the run. */
  readonly limit: Limits;
}

/** Callers query agents in the order of their starts, so the siblings of an agent are cached before it. */
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
    // If the other policy refuses the start, the recorded run still exists; its limit is the requested budget.
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

/** The account of the agent run after it has spent these amounts. */
export const accountUnder = (start: AgentStart, spent: Amounts, policy: Policy): Account => ({
  limit: agentUnderPolicy(start, policy).limit,
  spent,
  reserved: NO_AMOUNTS,
});
