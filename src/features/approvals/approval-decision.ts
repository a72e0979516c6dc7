// Whether a step has the approval that it needs, and what core asks of approvals.

import { APPROVAL_STATUS_RULES } from '../../core/contract/run/approval-rules.js';
import {
  approvalDigest,
  effectiveRule,
  type ApprovalDecider,
  type ApprovalDecision,
  type StepToApprove,
  type ActionWithRequests,
  type FinishPolicy,
} from '../../core/policy/policy-features.js';
import { deny, denyCondition, type Verdict } from '../../core/policy/verdict.js';
import {
  approvalStatus,
  consume,
  countBallot,
  requestApproval,
  tightenRequest,
  withoutVotes,
  obligationOf,
} from './approval-requests.js';
import type { FinishRule } from '../../core/contract/policy/actions-policy.js';
import type { ApprovalBook } from '../../core/contract/run/approval.js';

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

// FINISH while requests of the run wait for their approval: the policy says what becomes of it
// (`knobs.finish_with_pending_request`).

/** The rule for FINISH. */
const finishRule = ({ knobs }: FinishPolicy): FinishRule => knobs.finish_with_pending_request ?? 'cancel';

/** The digests of the requests that people can still decide about at a time. */
const pendingDigests = ({ entries }: ApprovalBook, now: string): readonly string[] =>
  entries.filter(({ state, expires_at }) => state === 'open' && expires_at > now).map(({ digest }) => digest);

/** The denial of a FINISH that the policy does not allow now; null if it is allowed, or has to wait. */
const finishDenial = ({ action, approvals, received_at }: ActionWithRequests, policy: FinishPolicy): Verdict | null =>
  action === 'FINISH' && finishRule(policy) === 'deny' && pendingDigests(approvals, received_at).length > 0
    ? REQUEST_PENDING
    : null;

/** The requests that a FINISH waits for; none if it need not wait. */
const awaitedRequests = (
  { action, approvals, received_at }: ActionWithRequests,
  policy: FinishPolicy,
): readonly string[] =>
  action === 'FINISH' && finishRule(policy) === 'wait' ? pendingDigests(approvals, received_at) : [];

const REQUEST_PENDING: Verdict = { decision: 'deny', rule_id: 'finish.request_pending', cause: 'REQUEST_PENDING' };

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
