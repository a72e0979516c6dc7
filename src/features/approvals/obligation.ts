// What conditions ask of approvers, joined with the approval rule of the policy. Both must hold, so the stricter of
// each part counts.

import type { ApprovalObligation, ApprovalRule } from '../../core/contract/run/approval.js';
import type { ConditionRequirement } from '../../core/policy/policy-features.js';

/** What one request needs, by its conditions and the rule of its subject. Without a role, no person can approve it. */
export function obligationOf(
  { ids, obligation }: Pick<ConditionRequirement, 'ids' | 'obligation'>,
  rule: ApprovalRule | undefined,
): ApprovalObligation {
  const { quorum, approver_roles, expires_minutes } = obligation;
  if (rule === undefined) return { conditions: [...ids], approver_roles: [...approver_roles], quorum, expires_minutes };
  return {
    conditions: [...ids],
    approver_roles: approver_roles.filter((role) => rule.approver_roles.includes(role)),
    quorum: Math.max(quorum, rule.quorum),
    expires_minutes: Math.min(expires_minutes, rule.expires_minutes),
    ...(rule.identity === undefined ? {} : { identity: rule.identity }),
  };
}

/**
 * The obligation of a request that is made again: it can only become stricter. Null: the recorded one is as strict.
 * Where the two share no role, the new one counts: the request was decided by it.
 */
export function stricterObligation(
  recorded: ApprovalObligation | undefined,
  required: ApprovalObligation | undefined,
): ApprovalObligation | null {
  if (required === undefined) return null;
  if (recorded === undefined) return required;
  const shared = recorded.approver_roles.filter((role) => required.approver_roles.includes(role));
  const joined: ApprovalObligation = {
    ...required,
    conditions: [...new Set([...recorded.conditions, ...required.conditions])].slice(0, 256),
    approver_roles: shared.length > 0 ? shared : required.approver_roles,
    quorum: Math.max(recorded.quorum, required.quorum),
    expires_minutes: Math.min(recorded.expires_minutes, required.expires_minutes),
  };
  return isSame(joined, recorded) ? null : joined;
}

const isSame = (one: ApprovalObligation, other: ApprovalObligation): boolean =>
  one.quorum === other.quorum &&
  one.expires_minutes === other.expires_minutes &&
  one.approver_roles.length === other.approver_roles.length &&
  one.conditions.length === other.conditions.length;
