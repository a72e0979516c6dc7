// The run and the request that a recorded decision was about, under any policy. The lane decides whether the run has a
// case. The budget of an agent run comes from the tree's recorded consumption at that time, with the same agents live.

import { prepareHighRiskRun } from '../../../machines/high-risk-run.js';
import { toPrivilegedWrite } from '../../../machines/mediated.js';
import { newChildContext } from '../../../machines/orchestrator.js';
import { retryContext, childContext, type RunContext } from '../../core/contract/run/run-context.js';
import { InvariantError } from '../../core/errors.js';
import type { PrivilegedRequest } from '../../core/policy/authorize-run.js';
import type { Policy } from '../../core/policy/policy.js';
import { mediatedContext, privilegedRequest } from '../../core/step/mediated-request.js';
import type {
  DecisionFacts,
  MediatedAct,
  StartedRun,
  WriteFacts,
  AgentStart,
  RetryFacts,
} from './recorded-decision.js';
import {
  BUDGET_KINDS,
  type Account,
  type Amounts,
  type BudgetKind,
  type Limits,
} from '../../core/contract/run/budget.js';
import { amountsOf, limitsOf, reserve } from '../../core/run/budget-account.js';

/** The run in its lane, and what it requests; no request if it only starts. */
export interface DecidedRequest {
  readonly run: RunContext;
  readonly privileged: PrivilegedRequest | null;
}

/** A run that asks for an action. */
export interface RequestedAction extends DecidedRequest {
  readonly privileged: PrivilegedRequest;
  readonly action: string;
}

/** What a decision was about; null if it was about no run in a lane: a ballot, a run tree, an action without a run. */
export function decidedRequest(facts: DecisionFacts, policy: Policy): DecidedRequest | null {
  switch (facts.kind) {
    case 'orchestrator':
    case 'ballot':
      return null;
    case 'agent':
      return { run: agentContextUnder(facts, policy), privileged: null };
    case 'step':
      return facts.act === null ? null : requestedBy(facts.act, runOf(facts.act, policy), policy);
    case 'retry':
      return retriedAction(facts, policy);
    case 'write':
      return delegatedWrite(facts, policy);
    case 'run':
    case 'approval': {
      const started = facts.kind === 'run' ? facts : facts.of;
      const run = startedRunContext(started, policy);
      return { run, privileged: prepareHighRiskRun(run, started.event, policy).input.request.privileged };
    }
  }
}

/** The context of the first attempt's run, in the lane of the action under this policy. */
export const runOf = ({ start, action, run_id }: MediatedAct, policy: Policy): RunContext =>
  mediatedContext({ agent: agentContextUnder(start, policy), action, mediated_run_id: run_id }, policy);

function requestedBy({ action, args, label }: MediatedAct, run: RunContext, { catalogue }: Policy): RequestedAction {
  const definition = catalogue.action(action);
  if (definition === undefined) throw new InvariantError(`a run was mediated for ${action}, which does not exist`);
  return { run, privileged: privilegedRequest(definition, args, run, catalogue, label), action };
}

export const retriedAction = ({ act, run_id }: Pick<RetryFacts, 'act' | 'run_id'>, policy: Policy): RequestedAction =>
  requestedBy(act, retryContext(runOf(act, policy), run_id), policy);

/** The write that a run delegates, in the run of its own. */
export function delegatedWrite({ of, run_id, parent_run_id }: WriteFacts, policy: Policy): RequestedAction {
  const { run, privileged, action } = delegatingAction(of, parent_run_id, policy);
  const child = childContext(run, run_id, 'db_write');
  return { run: child, privileged: toPrivilegedWrite(privileged, run.run_kind), action };
}

function delegatingAction(of: WriteFacts['of'], run_id: string, policy: Policy): RequestedAction {
  if (of.kind === 'run') {
    const { run, request } = prepareHighRiskRun(startedRunContext(of, policy), of.event, policy).input;
    return { run, privileged: request.privileged, action: of.event.act.action };
  }
  const { act } = of;
  if (act === null) throw new InvariantError('a step without a run has delegated a write');
  return of.kind === 'step' ? requestedBy(act, runOf(act, policy), policy) : retriedAction({ act, run_id }, policy);
}

/** The context of a run that no agent starts. */
export const startedRunContext = ({ from, event }: StartedRun, policy: Policy): RunContext =>
  newChildContext(from, event, event.run_kind, policy);

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
