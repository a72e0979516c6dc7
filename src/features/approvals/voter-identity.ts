// Decides whether a voter is the requester, or an earlier voter, under another spelling (C87) or from another source
// (C98). Request and vote carry the canonical id, skeletons and looks of a name, and a vote carries how its voter was
// authenticated. These are compared as text, so a replay needs no Unicode table.

import type {
  ApprovalBallot,
  ApprovalEntry,
  ApprovalVote,
  VoterRequirement,
} from '../../core/contract/run/approval.js';
import type { VerifiedIdentity } from '../../core/contract/run/verified-identity.js';
import { compareNames, type Likeness, type Person } from '../../core/contract/person.js';

/** The values by which the name of a voter is compared, and how it was authenticated. */
interface NamedVoter {
  readonly person?: Person | undefined;
  readonly identity?: VerifiedIdentity | undefined;
}

export type IdentityRule = 'approval.by_requester' | 'approval.already_voted' | IdentityDoubt;
type IdentityDoubt = 'approval.look_alike' | 'approval.person_unknown' | 'approval.person_unmapped';
export type RequirementRule = 'approval.not_verified' | 'approval.step_up_required';

/** `unmapped`: the voters come from different sources, and policy does not say which person one of them is. */
type VoterLikeness = Likeness | 'unmapped';

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
): IdentityRule | null => ruleOf(compareNames(entry.requester, approver.person), 'approval.by_requester');

/** The rule that rejects the ballot because of earlier voters; null if all of them are other people. */
export function checkAgainstEarlierVotes(
  { votes }: ApprovalEntry,
  approver: ApprovalBallot['approver'],
): IdentityRule | null {
  const found = votes.map((vote) => compareVoters(vote, voterOf(approver)));
  // The strongest relation found.
  const worst = (['same', 'alike', 'unknown', 'unmapped'] as const).find((kind) => found.includes(kind)) ?? 'other';
  return ruleOf(worst, 'approval.already_voted');
}

/** The number of distinct voters other than the requester, so that an illegitimate vote does not count. */
export function countVoters(entry: ApprovalEntry, votes: readonly ApprovalVote[]): number {
  const counted: ApprovalVote[] = [];
  for (const vote of votes) {
    if (compareNames(entry.requester, vote.person) !== 'other') continue;
    if (counted.every((other) => compareVoters(other, vote) === 'other')) counted.push(vote);
  }
  return counted.length;
}

const voterOf = ({ person, identity }: ApprovalBallot['approver']): NamedVoter => ({
  person,
  identity,
});

/** Two names of one source are two people. Names of two sources are, if policy says which persons they are. */
function compareVoters(a: NamedVoter, b: NamedVoter): VoterLikeness {
  const names = compareNames(a.person, b.person);
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
