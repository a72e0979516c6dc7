// D7: an approval belongs to one exact request of one run. Approvers grant it, it expires, and it is used once. These
// functions are pure: all times are recorded ones, and a missing vote is a denial.

import {
  APPROVALS_MAX,
  type ApprovalBallot,
  type ApprovalBook,
  type ApprovalEntry,
  type ApprovalObligation,
  type ApprovalRule,
  type ApprovalVote,
} from '../../core/contract/run/approval.js';
import type { ApprovalRuleId, ApprovalStatus } from '../../core/contract/run/approval-rules.js';
import { LATEST_TIMESTAMP_MS } from '../../core/contract/shapes.js';
import { InvariantError } from '../../core/errors.js';
import {
  ruleOfEntry,
  type ApprovalPolicy,
  type ApprovalVerdict,
  type NewApprovalRequest,
  type SuspensionCheck,
  type ConditionRequirement,
} from '../../core/policy/policy-features.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import { countVoters, checkAgainstEarlierVotes, checkAgainstRequester, checkIdentity } from './voter-identity.js';

/**
 * Requests an approval. Repeating a request changes nothing, so repetition cannot keep it open; only an expired request
 * is opened again, without its votes. A rejected or used request stays so for the whole run. If conditions ask more of
 * the approvers now, the request asks it too, and waits again if its votes do not suffice.
 *
 * A full book accepts no new request unless an old one has expired. If it dropped the oldest instead, an agent could
 * flush out the requests that approvers are looking at, and repeat one that they have rejected. The request is then
 * `missing`: denied.
 * @throws InvariantError for a rule of another subject, or an invalid time
 */
export function requestApproval(book: ApprovalBook, request: NewApprovalRequest, rule: ApprovalRule): ApprovalBook {
  const { digest, name, requested_by, requester, at, obligation } = request;
  if (rule.for !== name) throw new InvariantError(`the approval of ${name} is asked for under the rule of ${rule.for}`);
  const known = findEntry(book, digest);
  if (known !== undefined && !hasExpired(known, at)) return withObligation(book, known, obligation, rule);
  const entry: ApprovalEntry = {
    digest,
    name,
    requested_by,
    ...omitUndefined({ requester }),
    requested_at: at,
    votes: [],
    state: 'open',
    approved_at: null,
    expires_at: addMinutes(at, rule.expires_minutes),
    ...omitUndefined({ obligation }),
  };
  const others = book.entries.filter((other) => other !== known);
  const remaining = others.length < APPROVALS_MAX ? others : withoutOldestExpired(others, at);
  return remaining.length < APPROVALS_MAX ? { run_id: book.run_id, entries: [...remaining, entry] } : book;
}

/** The book with what conditions ask now of a request that waits or is approved. */
export function tightenRequest(
  book: ApprovalBook,
  digest: string,
  required: ApprovalObligation,
  rule: ApprovalRule,
): ApprovalBook {
  const entry = findEntry(book, digest);
  return entry === undefined ? book : withObligation(book, entry, required, rule);
}

function withObligation(
  book: ApprovalBook,
  entry: ApprovalEntry,
  required: ApprovalObligation | undefined,
  rule: ApprovalRule,
): ApprovalBook {
  const isPending = entry.state === 'open' || entry.state === 'approved';
  const obligation = isPending ? stricterObligation(entry.obligation, required) : null;
  if (obligation === null) return book;
  const stricter = { ...updateEntry(entry, {}), obligation };
  return replaceEntry(book, reopenIfQuorumLost(stricter, ruleOfEntry([rule], stricter) ?? rule));
}

/**
 * Counts a ballot. Each digest is judged alone, and a refused one does not affect the others. An approver may also
 * reject, until the approval has been used, even what they or others have approved before.
 * @returns the book, and a verdict for each digest in the ballot's order
 * @throws InvariantError for an invalid time
 */
export function countBallot(
  book: ApprovalBook,
  ballot: ApprovalBallot,
  policy: ApprovalPolicy,
): { readonly book: ApprovalBook; readonly verdicts: readonly ApprovalVerdict[] } {
  const approverProblem = checkApprover(book, ballot, policy);
  const verdicts: ApprovalVerdict[] = [];
  let currentBook = book;
  for (const digest of ballot.digests) {
    const known = findEntry(currentBook, digest);
    const rule = known && ruleOfEntry(policy.approvals, known);
    const entry =
      known && rule && policy.isSuspended ? reopenIfQuorumLost(withoutVotes(known, policy.isSuspended), rule) : known;
    const ballotProblem = approverProblem ?? checkBallot(entry, ballot, rule);
    if (ballotProblem !== null || entry === undefined || rule === undefined) {
      verdicts.push({ digest, counted: false, rule_id: ballotProblem ?? 'approval.unknown_digest' });
      continue;
    }
    const next = ballot.decision === 'reject' ? rejectEntry(entry) : approveEntry(entry, ballot, rule);
    currentBook = replaceEntry(currentBook, next);
    verdicts.push({ digest, counted: true, rule_id: COUNTED_RULES[next.state] });
  }
  return { book: currentBook, verdicts };
}

/** A request without the votes of suspended approvers (D1). A used or rejected request stays as it is. */
export const withoutVotes = (entry: ApprovalEntry, isSuspended: SuspensionCheck): ApprovalEntry =>
  (entry.state === 'open' || entry.state === 'approved') && entry.votes.some(isSuspended)
    ? updateEntry(entry, { votes: entry.votes.filter((voter) => !isSuspended(voter)) })
    : entry;

/** Reopens a request that has lost its quorum; it waits for votes again. */
const reopenIfQuorumLost = (entry: ApprovalEntry, rule: ApprovalRule): ApprovalEntry =>
  entry.state === 'approved' && !hasQuorum(entry, rule)
    ? updateEntry(entry, { state: 'open', approved_at: null })
    : entry;

/**
 * Evaluates a request again at the time of its execution, and counts the votes once more. An approval that has lost its
 * quorum is `open`, and denied.
 * @param book the book as it counts at that time (`withoutVotes`)
 */
export function approvalStatus(book: ApprovalBook, digest: string, now: string, rule: ApprovalRule): ApprovalStatus {
  const entry = findEntry(book, digest);
  if (entry === undefined) return 'missing';
  if (entry.state === 'rejected' || entry.state === 'consumed') return entry.state;
  if (hasExpired(entry, now)) return 'expired';
  return entry.state === 'approved' && hasQuorum(entry, rule) ? 'granted' : 'open';
}

/**
 * Uses an approval up. Call it only in the fold of the entry that commits the execution intent.
 * @throws InvariantError unless the status is `granted`
 */
export function consume(book: ApprovalBook, digest: string, at: string, rule: ApprovalRule): ApprovalBook {
  const entry = findEntry(book, digest);
  const found = approvalStatus(book, digest, at, rule);
  if (entry === undefined || found !== 'granted') throw new InvariantError(`an approval was used that is ${found}`);
  return replaceEntry(book, updateEntry(entry, { state: 'consumed' }));
}

const COUNTED_RULES = {
  open: 'approval.accepted',
  approved: 'approval.granted',
  rejected: 'approval.rejected',
  consumed: 'approval.consumed',
} as const satisfies Record<ApprovalEntry['state'], ApprovalRuleId>;

/** Why the sender may not vote, whatever the ballot contains, so that they do not learn which digests exist. */
function checkApprover(book: ApprovalBook, ballot: ApprovalBallot, policy: ApprovalPolicy): ApprovalRuleId | null {
  const { actor, role_id } = ballot.approver;
  const role = policy.roles.get(role_id);
  if (actor.actor_type === 'agent' || role?.class === 'agent') return 'approval.by_agent';
  if (role === undefined) return 'approval.role_unknown';
  if (actor.actor_type !== 'human' || role.class !== 'human') return 'approval.not_a_person';
  return ballot.for_run === book.run_id ? null : 'approval.other_run';
}

function checkBallot(
  entry: ApprovalEntry | undefined,
  { approver, decision, at }: ApprovalBallot,
  rule: ApprovalRule | undefined,
): ApprovalRuleId | null {
  const { role_id } = approver;
  if (entry === undefined) return 'approval.unknown_digest';
  if (rule?.approver_roles.includes(role_id) !== true) return 'approval.role_not_allowed';
  const identityProblem = checkIdentity(rule.identity, approver.identity, at);
  if (identityProblem !== null) return identityProblem;
  const requesterProblem = checkAgainstRequester(entry, approver);
  if (requesterProblem !== null) return requesterProblem;
  if (entry.state === 'consumed') return 'approval.consumed';
  if (entry.state === 'rejected') return 'approval.already_decided';
  if (hasExpired(entry, at)) return 'approval.expired';
  if (decision === 'reject') return null;
  if (entry.state === 'approved') return 'approval.already_decided';
  return checkAgainstEarlierVotes(entry, approver);
}

const rejectEntry = (entry: ApprovalEntry): ApprovalEntry =>
  updateEntry(entry, { state: 'rejected', approved_at: null });

/** The stricter of two readings: the validity starts at the first vote, not at the one that completes the quorum. */
function approveEntry(entry: ApprovalEntry, { approver, at }: ApprovalBallot, rule: ApprovalRule): ApprovalEntry {
  const end = addMinutes(at, rule.expires_minutes);
  const voted = updateEntry(entry, {
    votes: [...entry.votes, voteOf(approver, at)],
    expires_at: entry.votes.length > 0 && isBefore(entry.expires_at, end) ? entry.expires_at : end,
  });
  return hasQuorum(voted, rule) ? updateEntry(voted, { state: 'approved', approved_at: at }) : voted;
}

/** Counted from the votes themselves, so that an illegitimate vote does not help. */
function hasQuorum(entry: ApprovalEntry, rule: ApprovalRule): boolean {
  const counting = entry.votes.filter(
    ({ role_id, identity, at }) =>
      rule.approver_roles.includes(role_id) && checkIdentity(rule.identity, identity, at) === null,
  );
  return rule.for === entry.name && countVoters(entry, counting) >= rule.quorum;
}

const voteOf = ({ actor, role_id, person, identity }: ApprovalBallot['approver'], at: string): ApprovalVote => ({
  actor_id: actor.actor_id,
  role_id,
  at,
  ...omitUndefined({ person, identity }),
});

/** Only an undecided or unused request can expire. An invalid time counts as too late. */
const hasExpired = ({ state, expires_at }: ApprovalEntry, now: string): boolean =>
  (state === 'open' || state === 'approved') && !isBefore(now, expires_at);

const isBefore = (a: string, b: string): boolean => Date.parse(a) < Date.parse(b);

/** Computes with recorded times; reads no clock. */
function addMinutes(at: string, minutes: number): string {
  const end = Math.min(Date.parse(at) + minutes * 60_000, LATEST_TIMESTAMP_MS);
  if (Number.isNaN(end)) throw new InvariantError('the time of a request or a vote is no time');
  return new Date(end).toISOString();
}

const findEntry = (book: ApprovalBook, digest: string): ApprovalEntry | undefined =>
  book.entries.find((entry) => entry.digest === digest);

const replaceEntry = ({ run_id, entries }: ApprovalBook, next: ApprovalEntry): ApprovalBook => ({
  run_id,
  entries: entries.map((entry) => (entry.digest === next.digest ? next : entry)),
});

/** Dropping an expired request changes nothing: it is denied and may be requested anew, either way. */
function withoutOldestExpired(entries: readonly ApprovalEntry[], now: string): ApprovalEntry[] {
  const oldest = entries.findIndex((entry) => hasExpired(entry, now));
  return entries.filter((_, index) => index !== oldest);
}

/** Spelled out, so that all entries share one hidden class (decision 0009). */
const updateEntry = (
  entry: ApprovalEntry,
  { votes, state, approved_at, expires_at }: Partial<ApprovalEntry>,
): ApprovalEntry => ({
  digest: entry.digest,
  name: entry.name,
  requested_by: entry.requested_by,
  ...omitUndefined({ requester: entry.requester }),
  requested_at: entry.requested_at,
  votes: votes ?? entry.votes,
  state: state ?? entry.state,
  approved_at: approved_at === undefined ? entry.approved_at : approved_at,
  expires_at: expires_at ?? entry.expires_at,
  ...omitUndefined({ obligation: entry.obligation }),
});

// What conditions ask of approvers, joined with the approval rule of the policy. Both must hold, so the stricter of
// each part counts.

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
function stricterObligation(
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
