// The AUTHORIZE phase: first lane and overlay, then case and budget, then the facts with paths and quota, then unknown
// outcomes, and last the required approval (`STEP_CHECKS`). The mediated run carries the verdict, so every check uses
// that run's context (C51).

import type { ActionDefinition } from '../contract/policy/actions.js';
import type { CounterFact } from '../contract/policy/counters/counters.js';
import type { GatheredFacts, GatherRequest } from '../contract/run/effect.js';
import type { ExecutionCause, Fault } from '../contract/fault.js';
import type { JsonObject } from '../contract/json.js';
import { InvariantError } from '../errors.js';
import {
  approvalDigest,
  approvalRuleFor,
  approvalStatus,
  APPROVAL_STATUS_RULES,
} from '../policy/approval/approval-book.js';
import { effectiveRule, obligationOf } from '../policy/approval/obligation.js';
import { authorizeWithOverlay, BUDGET_CHECK } from '../policy/authorize-with-overlay.js';
import { conditionVerdict, type ConditionedRequest, type ConditionVerdict } from '../policy/conditions.js';
import { decidedActionName } from '../policy/decided-action.js';
import { decisionPointDenial, decisionQueries } from '../policy/decision-queries.js';
import { counterQueries } from '../policy/counters/counter-queries.js';
import type { CheckDescription } from '../policy/ordered-check.js';
import type { PrivilegedRequest } from '../policy/privileged-request.js';
import type { Policy } from '../policy/policy.js';
import { deny, denyBudget, denyCondition, type Verdict } from '../policy/verdict.js';
import { UNDECIDED_AUTHORIZATION, type AuthorizationSubject, type Authorization } from './authorization-subject.js';
import { approvalSubject } from './approval-subject.js';
import { authorizePaths, gatherRequestFor, PATH_CHECKS } from './authorize-paths.js';
import { finishDenial } from '../policy/approval/finish-rule.js';
import { mediatedContext, requestHash } from './requests/mediated-request.js';
import { privilegedRequest } from './requests/action-request.js';

export type { AuthorizationSubject, Authorization } from './authorization-subject.js';
export { UNDECIDED_AUTHORIZATION } from './authorization-subject.js';

/** Precedes the check of approvals if the policy has conditions. Each condition has its own rule id besides. */
export const CONDITION_CHECK: CheckDescription = {
  claim: 'no condition forbids it',
  rules: ['condition.*'],
};

/** Follows conditions if the policy has decision points. */
export const DECISION_POINT_CHECK: CheckDescription = {
  claim: 'the decision points of the action permit it',
  rules: ['decision_point.*'],
};

/** Needed by steps, promotions and exports. */
export const APPROVAL_CHECK: CheckDescription = {
  claim: 'the required approvals are granted',
  rules: ['approval.*'],
};

/**
 * The first half: role, lane, tool, scope, prohibitions (S4-31 to S4-35). `exhausted` is the first exhausted budget
 * that the step needs. Returns no verdict if facts are needed.
 */
export function authorizeLane(
  step: AuthorizationSubject,
  policy: Policy,
  exhausted: string | null = null,
): Authorization {
  const definition = definitionOf(step, policy);
  const budgetVerdict = exhausted === null ? null : denyBudget(exhausted);
  // An agent without budget may still end its run.
  if (definition.run_kind === null) {
    const denial = definition.name === 'FINISH' ? finishDenial(step, policy) : budgetVerdict;
    return denial === null ? UNDECIDED_AUTHORIZATION : deniedAuthorization(denial);
  }
  const run = mediatedContext(step, policy);
  const args = step.args ?? {};
  const request = privilegedRequest(definition, args, run, policy.catalogue, step.label);
  const authorizationRequest = { action: definition.name, privileged: request, overlay: step.overlay };
  const verdict = authorizeWithOverlay(run, authorizationRequest, policy);
  if (verdict.decision === 'deny') return deniedAuthorization(verdict);
  const denial = (run.case_id === null ? missingCaseDenial(definition, request) : null) ?? budgetVerdict;
  if (denial !== null) return deniedAuthorization(denial);
  // Anything denied by its arguments alone is denied without reading facts.
  return factsRequest(step, policy) === null ? authorizeWithFacts(step, null, policy) : UNDECIDED_AUTHORIZATION;
}

/** The facts that the engine must gather. @throws InvariantError if the step needs none */
export function requireGatherRequest(step: AuthorizationSubject, policy: Policy): GatherRequest {
  const request = factsRequest(step, policy);
  if (request === null) throw new InvariantError('there is nothing to gather for this step');
  return request;
}

/** @returns null if the step needs no facts, or is denied by its arguments alone */
function factsRequest(step: AuthorizationSubject, policy: Policy): GatherRequest | null {
  const { case_id } = mediatedContext(step, policy);
  const definition = definitionOf(step, policy);
  const args = step.args ?? {};
  const request = case_id === null ? null : gatherRequestFor(definition, args, case_id, policy);
  if (request === null && definition.paths.length > 0) return null;
  const name = decidedActionName(definition.name, args);
  const counters = counterQueries({ name, args }, step.agent, policy);
  const queried = { name, action: definition.name, args, paths: request?.paths ?? [] };
  const decisions = decisionQueries(queried, mediatedContext(step, policy), policy);
  if (counters.length === 0 && decisions.length === 0) return request;
  return {
    ...(request ?? { case_id, paths: [], usage: false, portable_names: false }),
    ...(counters.length === 0 ? {} : { counters }),
    ...(decisions.length === 0 ? {} : { decisions, mediated_run_id: step.mediated_run_id }),
  };
}

/** The second half: canonical paths, extensions, existing files, quota, approval. Denies a path without facts. */
export function authorizeWithFacts(
  step: AuthorizationSubject,
  facts: GatheredFacts | null,
  policy: Policy,
): Authorization {
  const definition = definitionOf(step, policy);
  const checked = authorizePaths({ definition, args: step.args ?? {}, facts, policy });
  if (!checked.ok) {
    const { rule_id, cause } = checked.fault;
    return deniedAuthorization({ decision: 'deny', rule_id, cause: asPolicyCause(cause) });
  }
  const args = checked.value;
  if (step.unsettled.length > 0 && isUnsettled(step, definition, args, policy)) return deniedAuthorization(UNSETTLED);
  const allowed: Authorization = { verdict: GRANTED, args, before: facts?.paths ?? [], digest: null };
  const conditions = conditionVerdict(
    conditionedRequest(step, definition, allowed, facts?.counters ?? [], policy),
    policy,
  );
  if (conditions.kind === 'deny') return deniedAuthorization(denyCondition(conditions.rule_id));
  const denial = decisionDenial(step, facts, policy);
  if (denial !== null) return deniedAuthorization(denial);
  return requireApproval(step, definition.name, allowed, conditions.kind === 'none' ? null : conditions, policy);
}

function decisionDenial(step: AuthorizationSubject, facts: GatheredFacts | null, policy: Policy): Verdict | null {
  if (policy.decision_points === undefined) return null;
  return decisionPointDenial(factsRequest(step, policy)?.decisions ?? [], facts?.decisions ?? []);
}

/** The checks of a step that follow those of its lane, in order, without that of conditions. */
export const STEP_CHECKS: readonly CheckDescription[] = [
  { claim: 'the run has a case where it needs one', rules: ['sandbox.no_case', 'records.no_case'] },
  BUDGET_CHECK,
  { claim: 'the run is not ending', rules: ['lifecycle.*'] },
  ...PATH_CHECKS,
  { claim: 'no outcome of the same request is unknown', rules: ['outcome.unsettled'] },
  APPROVAL_CHECK,
];

const conditionedRequest = (
  step: AuthorizationSubject,
  definition: ActionDefinition,
  { args, before: files }: Authorization,
  counters: readonly CounterFact[],
  policy: Policy,
): ConditionedRequest => ({
  definition,
  args: args ?? {},
  run: mediatedContext(step, policy),
  label: step.label,
  files,
  counters,
  at: step.received_at,
});

const GRANTED: Verdict = { decision: 'allow', rule_id: 'lane.granted', cause: null };

/** D7: an allowed action without its approval is denied; the verdict carries the digest that approvers vote on. */
function requireApproval(
  step: AuthorizationSubject,
  action: string,
  allowed: Authorization,
  conditions: Extract<ConditionVerdict, { kind: 'approval' }> | null,
  policy: Policy,
): Authorization {
  const subject = approvalSubject(step, policy);
  const ruled = approvalRuleFor(policy.approvals, subject);
  const obligation = conditions === null ? null : obligationOf(conditions, ruled);
  if (obligation?.approver_roles.length === 0) return deniedAuthorization(denyCondition('condition.no_approver'));
  const rule = effectiveRule(subject, ruled, obligation);
  // A call rule asks for an approval that no approval rule grants.
  if (ruled === undefined && subject !== action) return deniedAuthorization(deny('call.not_allowed'));
  if (rule === undefined) return allowed;
  const { agent, approvals, received_at } = step;
  const args = allowed.args ?? {};
  const digest = approvalDigest({ action, args, case_id: agent.case_id, run_id: agent.run_id });
  const status = approvalStatus(approvals, digest, received_at, rule);
  const asking = obligation === null ? {} : { obligation };
  if (status === 'granted') return { verdict: GRANTED, args, before: allowed.before, digest, ...asking };
  const rule_id = status === 'missing' ? APPROVAL_STATUS_RULES.open : APPROVAL_STATUS_RULES[status];
  return {
    verdict: { decision: 'deny', rule_id, cause: 'APPROVAL_REQUIRED' },
    args: null,
    before: [],
    digest,
    ...asking,
  };
}

/** At most once: an effect with an unknown outcome must not run again before it is settled (D8). */
const UNSETTLED: Verdict = { decision: 'deny', rule_id: 'outcome.unsettled', cause: 'UNSETTLED' };
const UNSETTLED_MAX = 64;

const isUnsettled = (
  step: AuthorizationSubject,
  definition: ActionDefinition,
  args: JsonObject,
  policy: Policy,
): boolean =>
  step.unsettled.length >= UNSETTLED_MAX ||
  step.unsettled.includes(requestHash(definition, args, mediatedContext(step, policy)));

const deniedAuthorization = (verdict: Verdict): Authorization => ({ verdict, args: null, before: [], digest: null });

export const denialFault = ({ rule_id, cause }: Verdict): Fault => ({ code: 'POLICY_VIOLATION', rule_id, cause });

export const executionFault = (cause: ExecutionCause): Fault => ({
  code: 'EXECUTION_ERROR',
  rule_id: `execute.${cause.toLowerCase()}`,
  cause,
});

/** Denies what a run without a case cannot do: sandboxes and record rows belong to a case. */
function missingCaseDenial({ paths, run_kind }: ActionDefinition, { plane }: PrivilegedRequest): Verdict | null {
  if (paths.length > 0) return { decision: 'deny', rule_id: 'sandbox.no_case', cause: 'SANDBOX' };
  if (run_kind === 'tool_gateway' || plane === 'shared') return null;
  return { decision: 'deny', rule_id: 'records.no_case', cause: 'LANE' };
}

function definitionOf({ action }: AuthorizationSubject, { catalogue }: Policy): ActionDefinition {
  const definition = catalogue.action(action ?? '');
  if (definition === undefined) throw new InvariantError('AUTHORIZE was reached without an action');
  return definition;
}

const asPolicyCause = (cause: Fault['cause']): Verdict['cause'] =>
  cause === 'SANDBOX' || cause === 'EXTENSION' || cause === 'QUOTA' ? cause : 'LANE';
