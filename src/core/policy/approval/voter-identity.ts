// Decides whether a voter is the requester, or an earlier voter, under another spelling (C87) or from another source
// (C98). Under behaviour flag 6, request and vote carry a canonical id and skeletons; under flag 13 also looks; under
// flag 18 a vote also carries how its voter was authenticated. These are compared as text. Without flag 6, this file
// folds names with the Unicode tables of the running Node, which remains for trees that were recorded that way.

import type { ApprovalBallot, ApprovalEntry, ApprovalVote, VoterRequirement } from '../../contract/run/approval.js';
import type { VerifiedIdentity } from '../../contract/run/verified-identity.js';
import { compareNames, withoutLooks, type Likeness, type Person } from '../../contract/person.js';

/** A name, and the values by which it is compared. */
interface NamedPerson {
  readonly actor_id: string;
  readonly person?: Person | undefined;
}

/** A voter, with how it was authenticated. */
interface NamedVoter extends NamedPerson {
  readonly identity?: VerifiedIdentity | undefined;
}

export type IdentityRule = 'approval.by_requester' | 'approval.already_voted' | IdentityDoubt;
type IdentityDoubt = 'approval.look_alike' | 'approval.person_unknown' | 'approval.person_unmapped';
export type RequirementRule = 'approval.not_verified' | 'approval.step_up_required';

/** `unmapped`: the voters come from different sources, and policy does not say which person one of them is. */
type VoterLikeness = Likeness | 'unmapped';

/** A ballot as it was compared before behaviour flag 13. */
export const withoutLooksOf = (ballot: ApprovalBallot): ApprovalBallot => {
  const { person, ...approver } = ballot.approver;
  return person === undefined ? ballot : { ...ballot, approver: { ...approver, person: withoutLooks(person) } };
};

/** How far the clock of an issuer may be ahead, in milliseconds. */
const AHEAD_MS_MAX = 60_000;

/** Why a rule takes no vote of this identity at this time; null if it does. */
export function checkIdentity(
  required: VoterRequirement | undefined,
  identity: VerifiedIdentity | undefined,
  at: string,
): RequirementRule | null {
  if (required === undefined) return null;
  const { issuers, acr, max_age_seconds } = required;
  if (identity?.source !== 'oidc') return 'approval.not_verified';
  if (issuers?.includes(identity.issuer) === false) return 'approval.not_verified';
  if (acr !== undefined && (identity.acr === null || !acr.includes(identity.acr))) return 'approval.step_up_required';
  if (max_age_seconds === undefined) return null;
  const age = identity.auth_time === null ? NaN : Date.parse(at) - Date.parse(identity.auth_time);
  return age >= -AHEAD_MS_MAX && age <= max_age_seconds * 1_000 ? null : 'approval.step_up_required';
}

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
  const found = votes.map((vote) => compareVoters(vote, voterOf(approver), byPerson));
  // The strongest relation found.
  const worst = (['same', 'alike', 'unknown', 'unmapped'] as const).find((kind) => found.includes(kind)) ?? 'other';
  return ruleOf(worst, 'approval.already_voted');
}

/** The number of distinct voters other than the requester, so that an illegitimate vote does not count. */
export function countVoters(entry: ApprovalEntry, votes: readonly ApprovalVote[]): number {
  const byPerson = entry.requester !== undefined;
  const counted: ApprovalVote[] = [];
  for (const vote of votes) {
    if (compare(requesterOf(entry), vote, byPerson) !== 'other') continue;
    if (counted.every((other) => compareVoters(other, vote, byPerson) === 'other')) counted.push(vote);
  }
  return counted.length;
}

const requesterOf = ({ requested_by, requester }: ApprovalEntry): NamedPerson => ({
  actor_id: requested_by,
  person: requester,
});
const voterOf = ({ actor, person, identity }: ApprovalBallot['approver']): NamedVoter => ({
  actor_id: actor.actor_id,
  person,
  identity,
});

const compare = (a: NamedPerson, b: NamedPerson, byPerson: boolean): Likeness => {
  if (byPerson) return compareNames(a.person, b.person);
  return normalizeActorId(a.actor_id) === normalizeActorId(b.actor_id) ? 'same' : 'other';
};

/** Two names of one source are two people. Names of two sources are, if policy says which persons they are. */
function compareVoters(a: NamedVoter, b: NamedVoter, byPerson: boolean): VoterLikeness {
  const names = compare(a, b, byPerson);
  if (names !== 'other') return names;
  if (sourceOf(a) === sourceOf(b)) return haveSameSubject(a, b) ? 'same' : 'other';
  return a.identity?.mapped === true && b.identity?.mapped === true ? 'other' : 'unmapped';
}

/** The names of the token book, the command and the library are one source: the operator gives them. */
const sourceOf = ({ identity }: NamedVoter): string => (identity?.source === 'oidc' ? identity.issuer : '');

const haveSameSubject = ({ identity: a }: NamedVoter, { identity: b }: NamedVoter): boolean =>
  a?.source === 'oidc' && b?.source === 'oidc' && a.subject_sha256 === b.subject_sha256;

const ruleOf = (found: VoterLikeness, same: IdentityRule): IdentityRule | null =>
  LIKENESS_RULES[found] ?? (found === 'same' ? same : null);
const LIKENESS_RULES: Readonly<Partial<Record<VoterLikeness, IdentityDoubt>>> = {
  alike: 'approval.look_alike',
  unknown: 'approval.person_unknown',
  unmapped: 'approval.person_unmapped',
};

/** The comparison of names before flag 6. */
const normalizeActorId = (actor_id: string): string =>
  actor_id
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replace(/[\s\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '');
