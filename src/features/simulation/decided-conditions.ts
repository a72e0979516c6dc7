// The conditions that made a recorded decision: the one that denied, or those that answer for its approval.

import { prepareHighRiskRun } from '../../../machines/high-risk-run.js';
import { askConditions } from '../../core/step/run-conditions.js';
import type { Policy } from '../../core/policy/policy.js';
import { authorizePaths } from '../../core/step/authorization.js';
import { conditionErrorText, conditionVerdict, type ConditionVerdict } from '../../core/policy/policy-features.js';
import { runOf, startedRunContext } from './decided-request.js';
import type { ApprovalFacts, DecisionFacts, RecordedDecision, StartedRun, StepFacts } from './recorded-decision.js';

/** Why conditions could not be evaluated, if that made the decision. */
export function decidedErrors({
  facts,
  policy,
  said: { rule_id },
}: Pick<RecordedDecision, 'facts' | 'policy' | 'said'>): readonly string[] {
  if (rule_id !== 'condition.error') return [];
  const verdict = verdictOn(facts, policy);
  return verdict?.kind === 'deny' ? (verdict.errors ?? []).map(conditionErrorText) : [];
}

/** @returns their ids; none if the policy has no conditions, or none of them decided */
export function decidedConditions({ facts, policy, said: { rule_id } }: RecordedDecision): readonly string[] {
  const { conditions } = policy;
  if (conditions === undefined) return [];
  if (conditions.all.some(({ id }) => id === rule_id)) return [rule_id ?? ''];
  const verdict = verdictOn(facts, policy);
  if (verdict?.kind === 'approval') return verdict.ids;
  return verdict?.kind === 'allow' ? (verdict.obligation?.conditions ?? []) : [];
}

/** What the conditions say of a step, or of a started run and its approvers; null for any other decision. */
function verdictOn(facts: DecisionFacts, policy: Policy): ConditionVerdict | ReturnType<typeof askConditions> | null {
  switch (facts.kind) {
    case 'step':
      return verdictOfStep(facts, policy);
    case 'run':
    case 'approval':
      return answerOnRun(facts, policy);
    default:
      return null;
  }
}

function verdictOfStep({ act, facts, input }: StepFacts, policy: Policy): ConditionVerdict | null {
  const definition = act === null ? undefined : policy.catalogue.action(act.action);
  if (act === null || definition === undefined) return null;
  const paths = authorizePaths({ definition, args: act.args, facts, policy });
  if (!paths.ok) return null;
  return conditionVerdict(
    {
      definition,
      args: paths.value,
      run: runOf(act, policy),
      label: act.label,
      files: facts?.paths ?? [],
      counters: facts?.counters ?? [],
      at: input.received_at,
    },
    policy,
  );
}

function answerOnRun(facts: StartedRun | ApprovalFacts, policy: Policy): ReturnType<typeof askConditions> {
  const started = facts.kind === 'run' ? facts : facts.of;
  const at = facts.kind === 'approval' && facts.event !== null ? facts.event.ballot.at : started.event.time;
  const run = startedRunContext(started, policy);
  const { request } = prepareHighRiskRun(run, started.event, policy).input;
  return askConditions(run, request, at, policy);
}
