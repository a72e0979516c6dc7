// A promotion or export run that waits in `created` for people's approval (D7): what a ballot changes, what is said.

import { COMPARED_LOOKS, COMPARED_PERSONS } from './flags.js';
import type { ApprovalBallot, ApprovalBook } from '../src/contract/run/approval.js';
import type { OverlayFact } from '../src/contract/policy/overlay.js';
import { personUnder } from '../src/contract/person.js';
import {
  consume,
  approvalStatus,
  APPROVAL_STATUS_RULES,
  countBallot,
  withoutVotes,
  type ApprovalPolicy,
  type ApprovalVerdict,
  type SuspensionCheck,
} from '../src/policy/approval/approval.js';
import type { AuditTarget } from '../src/contract/run/audit-event.js';
import type { RunContext } from '../src/contract/run/run-context.js';
import { overlayVerdict } from '../src/policy/overlay.js';
import type { Policy } from '../src/policy/policy.js';
import type { Verdict } from '../src/policy/verdict.js';
import { authzEvent, voteEvent } from '../src/run/audit-events.js';
import type { Emission } from './emission.js';
import {
  authorizeRequest,
  type RequiredApproval,
  type MediatedMemory,
  type MediatedRequest,
  type VoteEvent,
} from './mediated-memory.js';

interface BallotOutcome {
  readonly update: Partial<MediatedMemory>;
  readonly verdicts: readonly ApprovalVerdict[];
}

/**
 * Counts a ballot. When that decides the request, the run is judged: a rejection denies it; an approval is used up, and
 * lane, role and overlay are asked once more, because days may have passed.
 */
export function applyBallot(context: MediatedMemory, { ballot, overlay }: VoteEvent, policy: Policy): BallotOutcome {
  const { approval, run } = context;
  if (approval === null) return { update: {}, verdicts: [] };
  const { digest, rule } = approval;
  const { book, verdicts } = countBallot(approval.book, ballot, approvalPolicyFor(policy, ballot, overlay));
  const status = approvalStatus(book, digest, ballot.at, rule);
  const request: MediatedRequest = { ...context.request, overlay };
  if (status === 'open') return { update: { approval: { digest, rule, book }, request }, verdicts };
  const verdict: Verdict =
    status === 'granted'
      ? authorizeRequest(run, request, policy)
      : { decision: 'deny', rule_id: APPROVAL_STATUS_RULES[status], cause: 'APPROVAL_REQUIRED' };
  const consumed = verdict.decision === 'allow' ? consume(book, digest, ballot.at, rule) : book;
  return {
    update: { approval: { digest, rule, book: consumed }, request: withApprovals(request, consumed), verdict },
    verdicts,
  };
}

/** Whom a rule of the overlay has suspended has no say: the role counts as one that there is not. */
export function approvalPolicyFor(
  { approvals, roles, flags }: Policy,
  { approver }: ApprovalBallot,
  overlay: OverlayFact | null,
): ApprovalPolicy {
  const isSuspended = suspensionCheck(overlay);
  const { actor, role_id } = approver;
  const voter = { actor_id: actor.actor_id, role_id, person: personUnder(approver.person, flags) };
  const byWhat = { byPerson: flags.has(COMPARED_PERSONS), byLooks: flags.has(COMPARED_LOOKS) };
  return { approvals, roles: isSuspended?.(voter) === true ? NO_ROLES : roles, isSuspended, ...byWhat };
}

const NO_ROLES: ApprovalPolicy['roles'] = new Map();

/** What a run may rely on now: the votes of those whom the overlay has suspended meanwhile do not count (D1). */
export function dropSuspendedVotes(book: ApprovalBook, overlay: OverlayFact | null): ApprovalBook {
  const isSuspended = book.entries.length === 0 ? null : suspensionCheck(overlay);
  if (isSuspended === null) return book;
  return { run_id: book.run_id, entries: book.entries.map((entry) => withoutVotes(entry, isSuspended)) };
}

/** Null where nobody is. An overlay that cannot be trusted suspends nobody: it denies what would follow. */
function suspensionCheck(overlay: OverlayFact | null): SuspensionCheck | null {
  if (overlay?.epoch == null) return null;
  return ({ actor_id, role_id, person }) =>
    overlayVerdict(overlay, { ...EMPTY_SUBJECT, actor_id, role_id, person }) !== null;
}

const EMPTY_SUBJECT = { lane_id: null, action: null, tool: null, table: null, case_id: null, run_id: null } as const;

/** S4-78: who has approved goes into what is performed, so that it can be written where it is needed. */
function withApprovals(request: MediatedRequest, { entries }: RequiredApproval['book']): MediatedRequest {
  const approvals = entries.flatMap(({ votes }) =>
    votes.map(({ actor_id, role_id, at }) => ({ approved_by: actor_id, role_id, approved_at_utc: at })),
  );
  return { ...request, effect: { ...request.effect, args: { ...request.effect.args, approvals } } };
}

export const voteEmissions = (
  run: RunContext,
  { ballot, overlay }: VoteEvent,
  verdicts: readonly ApprovalVerdict[],
): Emission[] => verdicts.map((verdict) => ({ type: 'audit_event', body: voteEvent(run, ballot, verdict, overlay) }));

/** S4-44: policy allows the run as far as policy goes; it has still to be approved, and by this digest. */
export const approvalPendingEmission = ({ run, request, approval }: MediatedMemory, target: AuditTarget): Emission => ({
  type: 'audit_event',
  body: authzEvent(run, APPROVAL_REQUIRED, { target, overlay: request.overlay, digest: approval?.digest ?? null }),
});

const APPROVAL_REQUIRED = { decision: 'allow', rule_id: 'approval.required' } as const;

/** The decision that the run has waited for. */
export const approvalDecisionEmission = (
  { run, verdict, request, approval }: MediatedMemory,
  target: AuditTarget,
): Emission => ({
  type: 'audit_event',
  body: authzEvent(run, verdict ?? MISSING_VERDICT, {
    target,
    overlay: request.overlay,
    digest: approval?.digest ?? null,
  }),
});

const MISSING_VERDICT = { decision: 'deny', rule_id: 'run.no_verdict' } as const;

/** Until when an answer counts. */
export const expiry = (approval: RequiredApproval | null): string | null =>
  approval?.book.entries.find(({ digest }) => digest === approval.digest)?.expires_at ?? null;

export const hasExpired = (approval: RequiredApproval | null, time: string): boolean => {
  const at = expiry(approval);
  return at !== null && time >= at;
};
