// Counts votes for a run that a person has started and that waits in `created` for approval (D7), and emits their audit
// events.

import type { ApprovalBallot, ApprovalBook, ApprovalObligation } from '../src/core/contract/run/approval.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import { APPROVAL_STATUS_RULES } from '../src/core/contract/run/approval-rules.js';
import {
  approvalDecider,
  ruleOfEntry,
  type ApprovalPolicy,
  type ApprovalVerdict,
  type SuspensionCheck,
} from '../src/core/policy/policy-features.js';
import type { AuditTarget } from '../src/core/contract/run/audit-event.js';
import type { RunContext } from '../src/core/contract/run/run-context.js';
import { overlayVerdict } from '../src/core/policy/authorize-run.js';
import type { Policy } from '../src/core/policy/policy.js';
import { denyCondition, type Verdict } from '../src/core/policy/verdict.js';
import { authzEvent, voteEvent } from '../src/core/run/audit-events.js';
import type { Emission } from './emission.js';
import { type RequiredApproval, type MediatedMemory, type MediatedRequest, type VoteEvent } from './mediated-memory.js';
import { authorizeRequest } from '../src/core/step/mediated-request.js';
import { askConditions } from '../src/core/step/run-conditions.js';

interface BallotOutcome {
  readonly update: Partial<MediatedMemory>;
  readonly verdicts: readonly ApprovalVerdict[];
}

/**
 * Counts a ballot. If it decides the request, the run is judged: a rejection denies it. A granted approval is consumed,
 * and lane, role, overlay and conditions are checked again, because days may have passed.
 */
export function applyBallot(context: MediatedMemory, { ballot, overlay }: VoteEvent, policy: Policy): BallotOutcome {
  const { approval, run } = context;
  if (approval === null) return { update: {}, verdicts: [] };
  const { digest } = approval;
  const approvals = approvalDecider();
  const request: MediatedRequest = { ...context.request, overlay };
  const conditions = askConditions(run, request, ballot.at, policy);
  const { rule, book: waiting } =
    conditions.kind === 'deny' ? approval : withStricterRule(approval, conditions.obligation, policy);
  const { book, verdicts } = approvals.countBallot(waiting, ballot, approvalPolicyFor(policy, ballot, overlay));
  const status = approvals.status(book, digest, ballot.at, rule);
  if (status === 'open') return { update: { approval: { digest, rule, book }, request }, verdicts };
  const verdict: Verdict =
    status === 'granted'
      ? authorizeApproved(run, request, conditions, policy)
      : { decision: 'deny', rule_id: APPROVAL_STATUS_RULES[status], cause: 'APPROVAL_REQUIRED' };
  const consumed = verdict.decision === 'allow' ? approvals.consume(book, digest, ballot.at, rule) : book;
  return {
    update: { approval: { digest, rule, book: consumed }, request: withApprovals(request, consumed), verdict },
    verdicts,
  };
}

function authorizeApproved(
  run: RunContext,
  request: MediatedRequest,
  conditions: ReturnType<typeof askConditions>,
  policy: Policy,
): Verdict {
  const verdict = authorizeRequest(run, request, policy);
  return verdict.decision === 'allow' && conditions.kind === 'deny' ? denyCondition(conditions.rule_id) : verdict;
}

/** The approval that the run needs, if conditions ask more of the approvers now than when it was requested. */
function withStricterRule(
  approval: RequiredApproval,
  obligation: ApprovalObligation | null,
  { approvals }: Policy,
): RequiredApproval {
  const { digest, rule, book } = approval;
  const stricter = obligation === null ? book : approvalDecider().tighten(book, digest, obligation, rule);
  const entry = stricter.entries.find((known) => known.digest === digest);
  if (stricter === book || entry === undefined) return approval;
  return { digest, rule: ruleOfEntry(approvals, entry) ?? rule, book: stricter };
}

/** Approvers whom the overlay has suspended cannot vote: their role counts as unknown. */
export function approvalPolicyFor(
  { approvals, roles }: Policy,
  { approver }: ApprovalBallot,
  overlay: OverlayFact | null,
): ApprovalPolicy {
  const isSuspended = suspensionCheck(overlay);
  const { actor, role_id } = approver;
  const voter = { actor_id: actor.actor_id, role_id, person: approver.person };
  return { approvals, roles: isSuspended?.(voter) === true ? NO_ROLES : roles, isSuspended };
}

const NO_ROLES: ApprovalPolicy['roles'] = new Map();

/**
 * The approvals that count now: votes of approvers whom the overlay has suspended since do not count (D1). A book
 * without entries needs no call.
 */
export function dropSuspendedVotes(book: ApprovalBook, overlay: OverlayFact | null): ApprovalBook {
  const isSuspended = suspensionCheck(overlay);
  if (isSuspended === null) return book;
  return {
    run_id: book.run_id,
    entries: book.entries.map((entry) => approvalDecider().withoutVotes(entry, isSuspended)),
  };
}

/** Null if no approver is suspended. An untrusted overlay suspends no approver: it denies the effect itself. */
function suspensionCheck(overlay: OverlayFact | null): SuspensionCheck | null {
  if (overlay?.epoch == null) return null;
  return ({ actor_id, role_id, person }) =>
    overlayVerdict(overlay, { ...EMPTY_SUBJECT, actor_id, role_id, person }) !== null;
}

const EMPTY_SUBJECT = { lane_id: null, action: null, tool: null, table: null, case_id: null, run_id: null } as const;

/** S4-78: the approvers become part of the effect, so that the executor can record them where required. */
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

/** S4-44: policy allows the run, but it still needs approval of exactly this digest. */
export const approvalPendingEmission = ({ run, request, approval }: MediatedMemory, target: AuditTarget): Emission => ({
  type: 'audit_event',
  body: authzEvent(run, APPROVAL_REQUIRED, { target, overlay: request.overlay, digest: approval?.digest ?? null }),
});

const APPROVAL_REQUIRED = { decision: 'allow', rule_id: 'approval.required' } as const;

/** The decision after the run's approval. */
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

/** The time until which votes count. */
export const expiry = (approval: RequiredApproval | null): string | null =>
  approval?.book.entries.find(({ digest }) => digest === approval.digest)?.expires_at ?? null;

export const hasExpired = (approval: RequiredApproval | null, time: string): boolean => {
  const at = expiry(approval);
  return at !== null && time >= at;
};
