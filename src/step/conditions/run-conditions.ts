// What the conditions of policy say of a promotion or export, when it starts and with each vote.

import type { ApprovalObligation } from '../../contract/run/approval.js';
import type { RunContext } from '../../contract/run/run-context.js';
import { approvalRuleFor } from '../../policy/approval/approval.js';
import { obligationOf } from '../../policy/approval/obligation.js';
import type { Policy } from '../../policy/policy.js';
import type { PrivilegedRequest } from '../../policy/privileged-request.js';
import { runConditionVerdict } from './condition-verdict.js';

/** @returns a denial, or what they ask of the approvers */
export function askConditions(
  run: RunContext,
  { label, write }: Pick<PrivilegedRequest, 'label' | 'write'>,
  at: string,
  policy: Policy,
):
  | { readonly kind: 'deny'; readonly rule_id: string }
  | { readonly kind: 'allow'; readonly obligation: ApprovalObligation | null } {
  const conditions = runConditionVerdict({ run, label, table: write?.table ?? null, at }, policy);
  if (conditions.kind === 'deny') return conditions;
  if (conditions.kind === 'none') return { kind: 'allow', obligation: null };
  const obligation = obligationOf(conditions, approvalRuleFor(policy.approvals, run.run_kind));
  return obligation.approver_roles.length === 0
    ? { kind: 'deny', rule_id: 'condition.no_approver' }
    : { kind: 'allow', obligation };
}
