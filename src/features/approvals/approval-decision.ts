// Whether a step has the approval that it needs, and what core asks of approvals.

import { APPROVAL_STATUS_RULES } from '../../core/contract/run/approval-rules.js';
import {
  approvalDigest,
  effectiveRule,
  type ApprovalDecider,
  type ApprovalDecision,
  type StepToApprove,
} from '../../core/policy/policy-features.js';
import { deny, denyCondition, type Verdict } from '../../core/policy/verdict.js';
import {
  approvalStatus,
  consume,
  countBallot,
  requestApproval,
  tightenRequest,
  withoutVotes,
} from './approval-requests.js';
import { awaitedRequests, finishDenial } from './finish-rule.js';
import { obligationOf } from './obligation.js';

/** A step needs an approval by the rule of its subject, by conditions, or by both. */
export function decideApproval({
  subject,
  rule: ruled,
  conditions,
  request,
  book,
  at,
}: StepToApprove): ApprovalDecision {
  const obligation = conditions.kind === 'approval' ? obligationOf(conditions, ruled) : null;
  if (obligation?.approver_roles.length === 0) return withoutApproval(denyCondition('condition.no_approver'));
  const rule = effectiveRule(subject, ruled, obligation);
  // A call rule asks for an approval that no approval rule grants.
  if (ruled === undefined && subject !== request.action) return withoutApproval(deny('call.not_allowed'));
  if (rule === undefined) return withoutApproval(null);
  const digest = approvalDigest(request);
  const status = approvalStatus(book, digest, at, rule);
  if (status === 'granted') return { denial: null, digest, obligation };
  const rule_id = status === 'missing' ? APPROVAL_STATUS_RULES.open : APPROVAL_STATUS_RULES[status];
  return { denial: { decision: 'deny', rule_id, cause: 'APPROVAL_REQUIRED' }, digest, obligation };
}

const withoutApproval = (denial: Verdict | null): ApprovalDecision => ({ denial, digest: null, obligation: null });

/** What core asks of approvals. */
export const APPROVAL_DECIDER: ApprovalDecider = {
  decide: decideApproval,
  request: requestApproval,
  tighten: tightenRequest,
  countBallot,
  withoutVotes,
  status: approvalStatus,
  consume,
  obligation: obligationOf,
  finishDenial,
  awaitedRequests,
};
