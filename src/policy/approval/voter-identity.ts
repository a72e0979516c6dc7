// Decides whether a voter is the requester, or an earlier voter, under another spelling (C87). Under behaviour flag 6,
// request and vote carry a canonical id and skeletons; under flag 13 also looks. These are compared as text. Without
// flag 6, this file folds names with the Unicode tables of the running Node, which remains for trees that were recorded
// that way.

import type { ApprovalBallot, ApprovalEntry, ApprovalVote } from '../../contract/run/approval.js';
import { compareNames, withoutLooks, type Likeness, type Person } from '../../contract/person.js';

/** A name, and the values by which it is compared. */
interface NamedPerson {
  readonly actor_id: string;
  readonly person?: Person | undefined;
}

export type IdentityRule = 'approval.by_requester' | 'approval.already_voted' | IdentityDoubt;
type IdentityDoubt = 'approval.look_alike' | 'approval.person_unknown';

/** A ballot as it was compared before behaviour flag 13. */
export const withoutLooksOf = (ballot: ApprovalBallot): ApprovalBallot => {
  const { actor, role_id, person } = ballot.approver;
  return person === undefined ? ballot : { ...ballot, approver: { actor, role_id, person: withoutLooks(person) } };
};

/** The rule that rejects the ballot because of the requester; null if the voter is another person. */
export const checkAgainstRequester = (
  entry: ApprovalEntry,
  approver: ApprovalBallot['approver'],
  byPerson: boolean,
): IdentityRule | null => ruleOf(compare(requesterOf(entry), voterOf(approver), byPerson), 'approval.by_requester');

/** The rule that rejects the ballot because of earlier voters; null if all of them are other people. */
export function checkAgainstEarlierVotes(
  { votes }: ApprovalEntry,
  approver: ApprovalBallot['approver'],
  byPerson: boolean,
): IdentityRule | null {
  const found = votes.map((vote) => compare(vote, voterOf(approver), byPerson));
  // The strongest relation found.
  const worst = (['same', 'alike', 'unknown'] as const).find((kind) => found.includes(kind)) ?? 'other';
  return ruleOf(worst, 'approval.already_voted');
}

/** The number of distinct voters other than the requester, so that an illegitimate vote does not count. */
export function countVoters(entry: ApprovalEntry, votes: readonly ApprovalVote[]): number {
  const byPerson = entry.requester !== undefined;
  const counted: ApprovalVote[] = [];
  for (const vote of votes) {
    const others: readonly NamedPerson[] = [requesterOf(entry), ...counted];
    if (others.every((other) => compare(other, vote, byPerson) === 'other')) counted.push(vote);
  }
  return counted.length;
}

const requesterOf = ({ requested_by, requester }: ApprovalEntry): NamedPerson => ({
  actor_id: requested_by,
  person: requester,
});
const voterOf = ({ actor, person }: ApprovalBallot['approver']): NamedPerson => ({ actor_id: actor.actor_id, person });

const compare = (a: NamedPerson, b: NamedPerson, byPerson: boolean): Likeness => {
  if (byPerson) return compareNames(a.person, b.person);
  return normalizeActorId(a.actor_id) === normalizeActorId(b.actor_id) ? 'same' : 'other';
};

const ruleOf = (found: Likeness, same: IdentityRule): IdentityRule | null =>
  LIKENESS_RULES[found] ?? (found === 'same' ? same : null);
const LIKENESS_RULES: Readonly<Partial<Record<Likeness, IdentityDoubt>>> = {
  alike: 'approval.look_alike',
  unknown: 'approval.person_unknown',
};

/** The comparison of names before flag 6. */
const normalizeActorId = (actor_id: string): string =>
  actor_id
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replace(/[\s\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '');
