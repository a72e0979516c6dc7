// Which elements of its policy made a recorded decision. An allow is made by everything that it needed: lane, grants,
// call rules, approval. A denial is made by the one element that its rule id names, and by the lane of that element.

import { approvalSubject, authorizePaths } from '../../core/step/authorization.js';
import type { DecisionFact } from '../../core/contract/policy/decision-points.js';
import type { Lane } from '../../core/contract/policy/lanes.js';
import {
  grantingCallRules,
  conditionErrorText,
  conditionVerdict,
  type ConditionVerdict,
} from '../../core/policy/policy-features.js';
import type { PrivilegedRequest } from '../../core/policy/privileged-request.js';
import type { Policy } from '../../core/policy/policy.js';
import { decidedRequest, type DecidedRequest, runOf, startedRunContext } from './decided-request.js';
import {
  actionGrant,
  approval,
  callRule,
  condition,
  decisionPoint,
  extensionRule,
  labelRule,
  laneElement,
  prohibition,
  readGrant,
  roleGrant,
  scopeRule,
  toolGrant,
  writeGrant,
  type PolicyElement,
} from './policy-elements.js';
import {
  VOTER_DENIALS,
  type BallotFacts,
  type MediatedAct,
  type RecordedDecision,
  type ApprovalFacts,
  type DecisionFacts,
  type StartedRun,
  type StepFacts,
} from './recorded-decision.js';
import { prepareHighRiskRun } from '../../../machines/high-risk-run.js';
import { askConditions } from '../../core/step/run-conditions.js';

/** The elements of the decision's own policy that made it; none if a limit, the overlay or the platform did. */
export function decidingElements(decision: RecordedDecision): readonly PolicyElement[] {
  const { facts, policy, said } = decision;
  if (facts.kind === 'ballot') return ballotElements(facts, said.rule_id, policy);
  const decided = decidedRequest(facts, policy);
  if (said.decision === 'allow') return allowingElements(decision, decided);
  const denying = policy.conditions?.all.find(({ id }) => id === said.rule_id);
  return denying === undefined ? denyingElements(decision, decided) : [condition(denying.id)];
}

function allowingElements(decision: RecordedDecision, decided: DecidedRequest | null): readonly PolicyElement[] {
  const { facts, policy, said } = decision;
  // A repeated proposal returns its earlier response: nothing is decided.
  const isNewStep = facts.kind === 'step' && !(facts.input.seen !== null && said.rule_id === null);
  const action = isNewStep ? [actionGrant(decision.action)] : [];
  const lane = laneOf(decided, policy);
  if (decided === null || lane === undefined) return action;
  const { lane_id } = lane;
  return [
    ...action,
    laneElement(lane_id),
    roleGrant(lane_id, decided.run.role_id),
    ...(decided.privileged === null ? [] : requestGrants(decided.privileged, lane)),
    ...pointAnswers(decision).map(({ name }) => decisionPoint(name)),
    ...approvalElements(decision, lane_id),
  ];
}

/** The decision points that were asked about a step, with their answers. */
const pointAnswers = ({ facts }: RecordedDecision): readonly DecisionFact[] =>
  facts.kind === 'step' ? (facts.facts?.decisions ?? []) : [];

function requestGrants({ tool, input, write, read }: PrivilegedRequest, lane: Lane): readonly PolicyElement[] {
  const { lane_id } = lane;
  const calls = tool === null || input === undefined ? [] : grantingCallRules(lane, { tool, input });
  return [
    ...(tool === null ? [] : [toolGrant(lane_id, tool)]),
    ...(write === null ? [] : [writeGrant(lane_id, write)]),
    ...(read === null ? [] : [readGrant(lane_id, read)]),
    ...calls.map(({ id }) => callRule(lane_id, id)),
  ];
}

function denyingElements(decision: RecordedDecision, decided: DecidedRequest | null): readonly PolicyElement[] {
  const rule_id = decision.said.rule_id ?? '';
  if (rule_id.startsWith('decision_point.')) {
    const denying = pointAnswers(decision).find(({ answer }) => answer !== 'permit');
    return denying === undefined ? [] : [decisionPoint(denying.name)];
  }
  if (rule_id === 'extension.not_allowed') return [extensionRule(decision.action)];
  const lane = laneOf(decided, decision.policy);
  if (lane === undefined) return [];
  const { lane_id } = lane;
  if (rule_id.startsWith('approval.')) return approvalElements(decision, lane_id);
  const named = namedElement(rule_id, lane);
  if (named !== null) return [laneElement(lane_id), named];
  return LANE_DENIALS.test(rule_id) ? [laneElement(lane_id)] : [];
}

/** Denials by what the lane does not list. */
const LANE_DENIALS = /^(?:lane\.|role\.lane_not_granted$|call\.(?:not_allowed|unreadable)$)/;

function namedElement(rule_id: string, { lane_id, scope }: Lane): PolicyElement | null {
  const [, family = '', name = ''] =
    /^(prohibition|scope\.missing|scope\.mismatch|label|call\.denied)\.(.*)$/.exec(rule_id) ?? [];
  switch (family) {
    case 'prohibition':
      return prohibition(lane_id, name);
    case 'scope.missing':
    case 'scope.mismatch':
      // A rule id contains only the beginning of a long field name.
      return scopeRule(lane_id, scope.requires.find((field) => field.startsWith(name)) ?? name);
    case 'label':
      return labelRule(lane_id, name);
    case 'call.denied':
      return callRule(lane_id, name);
    default:
      return null;
  }
}

/** The approval that was required of a step or of a run, and the call rule and the conditions that ask for it. */
function approvalElements(decision: RecordedDecision, lane_id: string): readonly PolicyElement[] {
  const { facts, policy } = decision;
  const asking = decidedConditions(decision).map(condition);
  const subject =
    facts.kind === 'step' && facts.act !== null
      ? subjectOf(facts.act, policy)
      : facts.kind === 'run'
        ? facts.event.run_kind
        : facts.kind === 'approval'
          ? facts.of.event.run_kind
          : null;
  if (subject === null || !policy.approvals.some((rule) => rule.for === subject)) return asking;
  const call = subject.startsWith('call.') ? [callRule(lane_id, subject.slice('call.'.length))] : [];
  return [approval(subject), ...call, ...asking];
}

const subjectOf = ({ agent, action, args, run_id }: MediatedAct, policy: Policy): string =>
  approvalSubject({ agent, action, args, mediated_run_id: run_id }, policy);

function ballotElements(
  { book, event, nth }: BallotFacts,
  rule_id: string | null,
  policy: Policy,
): readonly PolicyElement[] {
  const digest = event.ballot.digests[nth];
  const entry = book.entries.find((known) => known.digest === digest);
  if (entry === undefined || VOTER_DENIALS.has(rule_id)) return [];
  const isRuled = policy.approvals.some((rule) => rule.for === entry.name);
  const asking = (entry.obligation?.conditions ?? []).map(condition);
  return isRuled ? [approval(entry.name), ...asking] : asking;
}

const laneOf = (decided: DecidedRequest | null, { lanes }: Policy): Lane | undefined =>
  decided?.run.lane_id == null ? undefined : lanes.get(decided.run.lane_id);

// The conditions that made a recorded decision: the one that denied, or those that answer for its approval.

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
