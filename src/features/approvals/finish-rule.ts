// FINISH while requests of the run wait for their approval: the policy says what becomes of it
// (`knobs.finish_with_pending_request`).

import type { FinishRule } from '../../core/contract/policy/actions-policy.js';
import type { ApprovalBook } from '../../core/contract/run/approval.js';
import type { ActionWithRequests, FinishPolicy } from '../../core/policy/policy-features.js';
import type { Verdict } from '../../core/policy/verdict.js';

/** The rule for FINISH. */
export const finishRule = ({ knobs }: FinishPolicy): FinishRule => knobs.finish_with_pending_request ?? 'cancel';

/** The digests of the requests that people can still decide about at a time. */
export const pendingDigests = ({ entries }: ApprovalBook, now: string): readonly string[] =>
  entries.filter(({ state, expires_at }) => state === 'open' && expires_at > now).map(({ digest }) => digest);

/** The denial of a FINISH that the policy does not allow now; null if it is allowed, or has to wait. */
export const finishDenial = (
  { action, approvals, received_at }: ActionWithRequests,
  policy: FinishPolicy,
): Verdict | null =>
  action === 'FINISH' && finishRule(policy) === 'deny' && pendingDigests(approvals, received_at).length > 0
    ? REQUEST_PENDING
    : null;

/** The requests that a FINISH waits for; none if it need not wait. */
export const awaitedRequests = (
  { action, approvals, received_at }: ActionWithRequests,
  policy: FinishPolicy,
): readonly string[] =>
  action === 'FINISH' && finishRule(policy) === 'wait' ? pendingDigests(approvals, received_at) : [];

const REQUEST_PENDING: Verdict = { decision: 'deny', rule_id: 'finish.request_pending', cause: 'REQUEST_PENDING' };
