// A promotion or export run that waits in `created` for people's approval (D7): what a ballot changes, what is said.

import { COMPARED_LOOKS, COMPARED_PERSONS } from './flags.js';
import type { ApprovalBallot, ApprovalBook } from '../src/contract/approval.js';
import type { OverlayFact } from '../src/contract/overlay.js';
import { personUnder } from '../src/contract/person.js';
import {
  consume,
  standing,
  STANDING_RULES,
  vote,
  withoutVotes,
  type ApprovalPolicy,
  type ApprovalVerdict,
  type Suspension,
} from '../src/policy/approval.js';
import type { AuditTarget } from '../src/contract/audit-event.js';
import type { RunContext } from '../src/contract/run-context.js';
import { overlayVerdict } from '../src/policy/overlay.js';
import type { Policy } from '../src/policy/policy.js';
import type { Verdict } from '../src/policy/verdict.js';
import { authzEvent, voteEvent } from '../src/run/audit.js';
import type { Emission } from './emission.js';
import {
  judgeRequest,
  type AwaitedApproval,
  type MediatedMemory,
  type MediatedRequest,
  type VoteEvent,
} from './mediated-act.js';

interface AfterVote {
  readonly update: Partial<MediatedMemory>;
  readonly verdicts: readonly ApprovalVerdict[];
}

/**
 * Counts a ballot. When that decides the request, the run is judged: a rejection denies it; an approval is used up, and
 * lane, role and overlay are asked once more, because days may have passed.
 */
export function afterVote(context: MediatedMemory, { ballot, overlay }: VoteEvent, policy: Policy): AfterVote {
  const { approval, run } = context;
  if (approval === null) return { update: {}, verdicts: [] };
  const { digest, rule } = approval;
  const { book, verdicts } = vote(approval.book, ballot, voters(policy, ballot, overlay));
  const now = standing(book, digest, ballot.at, rule);
  const request: MediatedRequest = { ...context.request, overlay };
  if (now === 'open') return { update: { approval: { digest, rule, book }, request }, verdicts };
  const verdict: Verdict =
    now === 'granted'
      ? judgeRequest(run, request, policy)
      : { decision: 'deny', rule_id: STANDING_RULES[now], cause: 'APPROVAL_REQUIRED' };
  const used = verdict.decision === 'allow' ? consume(book, digest, ballot.at, rule) : book;
  return {
    update: { approval: { digest, rule, book: used }, request: withApprovals(request, used), verdict },
    verdicts,
  };
}

/** Whom a rule of the overlay has suspended has no say: the role counts as one that there is not. */
export function voters(
  { approvals, roles, flags }: Policy,
  { approver }: ApprovalBallot,
  overlay: OverlayFact | null,
): ApprovalPolicy {
  const suspends = suspension(overlay);
  const { actor, role_id } = approver;
  const voter = { actor_id: actor.actor_id, role_id, person: personUnder(approver.person, flags) };
  const byWhat = { byPerson: flags.has(COMPARED_PERSONS), byLooks: flags.has(COMPARED_LOOKS) };
  return { approvals, roles: suspends?.(voter) === true ? NO_ROLES : roles, suspends, ...byWhat };
}

const NO_ROLES: ApprovalPolicy['roles'] = new Map();

/** What a run may rely on now: the votes of those whom the overlay has suspended meanwhile do not count (D1). */
export function countingNow(book: ApprovalBook, overlay: OverlayFact | null): ApprovalBook {
  const suspends = book.entries.length === 0 ? null : suspension(overlay);
  if (suspends === null) return book;
  return { run_id: book.run_id, entries: book.entries.map((entry) => withoutVotes(entry, suspends)) };
}

/** Null where nobody is. An overlay that cannot be trusted suspends nobody: it denies what would follow. */
function suspension(overlay: OverlayFact | null): Suspension | null {
  if (overlay?.epoch == null) return null;
  return ({ actor_id, role_id, person }) => overlayVerdict(overlay, { ...NOBODYS, actor_id, role_id, person }) !== null;
}

const NOBODYS = { lane_id: null, action: null, tool: null, table: null, case_id: null, run_id: null } as const;

/** S4-78: who has approved goes into what is performed, so that it can be written where it is needed. */
function withApprovals(request: MediatedRequest, { entries }: AwaitedApproval['book']): MediatedRequest {
  const approvals = entries.flatMap(({ votes }) =>
    votes.map(({ actor_id, role_id, at }) => ({ approved_by: actor_id, role_id, approved_at_utc: at })),
  );
  return { ...request, effect: { ...request.effect, args: { ...request.effect.args, approvals } } };
}

export const sayVotes = (
  run: RunContext,
  { ballot, overlay }: VoteEvent,
  verdicts: readonly ApprovalVerdict[],
): Emission[] => verdicts.map((verdict) => ({ type: 'audit_event', body: voteEvent(run, ballot, verdict, overlay) }));

/** S4-44: policy allows the run as far as policy goes; it has still to be approved, and by this digest. */
export const sayAwaited = ({ run, request, approval }: MediatedMemory, target: AuditTarget): Emission => ({
  type: 'audit_event',
  body: authzEvent(run, AWAITED, { target, overlay: request.overlay, digest: approval?.digest ?? null }),
});

const AWAITED = { decision: 'allow', rule_id: 'approval.required' } as const;

/** The decision that the run has waited for. */
export const sayDecided = ({ run, verdict, request, approval }: MediatedMemory, target: AuditTarget): Emission => ({
  type: 'audit_event',
  body: authzEvent(run, verdict ?? NOBODY, { target, overlay: request.overlay, digest: approval?.digest ?? null }),
});

const NOBODY = { decision: 'deny', rule_id: 'run.no_verdict' } as const;

/** Until when an answer counts. */
export const expiry = (approval: AwaitedApproval | null): string | null =>
  approval?.book.entries.find(({ digest }) => digest === approval.digest)?.expires_at ?? null;

export const hasExpired = (approval: AwaitedApproval | null, time: string): boolean => {
  const at = expiry(approval);
  return at !== null && time >= at;
};
