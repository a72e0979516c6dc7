// What the conditions of policy say of a run that a person starts, at its start and with each vote.

import type { JsonObject } from '../contract/json.js';
import type { ApprovalObligation } from '../contract/run/approval.js';
import { concernedCases, isOperatorAction, OPERATOR_ACTS } from '../contract/run/operator-act.js';
import type { RunContext } from '../contract/run/run-context.js';
import {
  runConditionVerdict,
  type ConditionError,
  approvalDecider,
  approvalRuleFor,
} from '../policy/policy-features.js';
import type { Policy } from '../policy/policy.js';
import type { PrivilegedRequest } from '../policy/privileged-request.js';

/** What a person requests by starting a run. */
export interface StartedRequest {
  readonly privileged: Pick<PrivilegedRequest, 'label' | 'write' | 'operator'>;
  readonly effect: { readonly action: string; readonly args: JsonObject };
}

/** The name of a started run for conditions and approval rules. */
export const subjectOf = (
  { run_kind }: Pick<RunContext, 'run_kind'>,
  { privileged, effect }: StartedRequest,
): string =>
  privileged.operator === true && isOperatorAction(effect.action) ? OPERATOR_ACTS[effect.action].subject : run_kind;

/** @returns a denial, or what they ask of the approvers */
export function askConditions(
  run: RunContext,
  request: StartedRequest,
  at: string,
  policy: Policy,
):
  | { readonly kind: 'deny'; readonly rule_id: string; readonly errors?: readonly ConditionError[] }
  | { readonly kind: 'allow'; readonly obligation: ApprovalObligation | null } {
  const { label, write, operator } = request.privileged;
  const action = subjectOf(run, request);
  const cases = operator === true ? concernedCases(request.effect.args) : [];
  const conditions = runConditionVerdict({ action, run, label, table: write?.table ?? null, cases, at }, policy);
  if (conditions.kind === 'deny') return conditions;
  if (conditions.kind === 'none') return { kind: 'allow', obligation: null };
  const obligation = approvalDecider().obligation(conditions, approvalRuleFor(policy.approvals, action));
  return obligation.approver_roles.length === 0
    ? { kind: 'deny', rule_id: 'condition.no_approver' }
    : { kind: 'allow', obligation };
}
