// The run and the request that a recorded decision was about, under any policy.

import { prepareHighRiskRun } from '../../../machines/high-risk-run.js';
import { toPrivilegedWrite } from '../../../machines/mediated.js';
import { newChildContext } from '../../../machines/orchestrator.js';
import { retryContext, childContext, type RunContext } from '../../core/contract/run/run-context.js';
import { InvariantError } from '../../core/errors.js';
import type { PrivilegedRequest } from '../../core/policy/authorize-run.js';
import type { Policy } from '../../core/policy/policy.js';
import { mediatedContext, privilegedRequest } from '../../core/step/mediated-request.js';
import { agentContextUnder } from './agent-under-policy.js';
import type { DecisionFacts, MediatedAct, StartedRun, WriteFacts } from './recorded-decision.js';

/** The run in its lane, and what it requests; no request if it only starts. */
export interface DecidedRequest {
  readonly run: RunContext;
  readonly privileged: PrivilegedRequest | null;
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
    case 'retry': {
      const { act } = facts;
      if (act === null) return null;
      const first = runOf(act, policy);
      const run = facts.kind === 'step' ? first : retryContext(first, facts.run_id);
      return { run, privileged: requestOf(act, run, policy) };
    }
    case 'write': {
      const { run, privileged } = resolveDelegation(facts.of, facts.parent_run_id, policy);
      const child = childContext(run, facts.run_id, 'db_write');
      return { run: child, privileged: toPrivilegedWrite(privileged, run.run_kind) };
    }
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

/** The privileged request of an action. */
export function requestOf(
  { action, args, label }: MediatedAct,
  run: RunContext,
  { catalogue }: Policy,
): PrivilegedRequest {
  const definition = catalogue.action(action);
  if (definition === undefined) throw new InvariantError(`a run was mediated for ${action}, which does not exist`);
  return privilegedRequest(definition, args, run, catalogue, label);
}

/** The run that delegates a write, and its request. */
export function resolveDelegation(of: WriteFacts['of'], run_id: string, policy: Policy) {
  if (of.kind === 'run') {
    const { run, request } = prepareHighRiskRun(startedRunContext(of, policy), of.event, policy).input;
    return { run, privileged: request.privileged, action: of.event.act.action };
  }
  const { act } = of;
  if (act === null) throw new InvariantError('a step without a run has delegated a write');
  const first = runOf(act, policy);
  const run = of.kind === 'step' ? first : retryContext(first, run_id);
  return { run, privileged: requestOf(act, run, policy), action: act.action };
}

/** The context of a run that no agent starts. */
export const startedRunContext = ({ from, event }: StartedRun, policy: Policy): RunContext =>
  newChildContext(from, event, event.run_kind, policy);
