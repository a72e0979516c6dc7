// D7: the approvals that a policy can require, and the recorded votes.

import Type, { type Static } from 'typebox';
import { namedActorProperties, Person } from '../person.js';
import { CALL_RULE_ID_PATTERN } from '../policy/call-rules.js';
import { AuthenticationContext, IssuerUrl } from '../policy/identities.js';
import { Actor, closed, Identifier, OneOf, RunId, Sha256, Timestamp } from '../shapes.js';
import { OPERATOR_SUBJECTS } from './operator-act.js';
import { VerifiedIdentity } from './verified-identity.js';

/** A run with a full book accepts no more approval requests; more would be too many for a person to review. */
export const APPROVALS_MAX = 256;
export const BALLOT_DIGESTS_MAX = 64;
const QUORUM_MAX = 8;

/** What can need an approval: a run that a person starts, an action of the catalogue, or `call.ID` for a call rule. */
const ApprovalSubject = Type.String({
  pattern: `^(?:promotion|export|${OPERATOR_SUBJECTS.join('|')}|[A-Z][A-Z0-9_]{0,63}|call\\.${CALL_RULE_ID_PATTERN})$`,
});

/** C98: voters whom an issuer has authenticated. All of its members must hold. */
export const VoterRequirement = Type.Object(
  {
    /** Default: any issuer of identities.yaml. */
    issuers: Type.Optional(Type.Array(IssuerUrl, { minItems: 1, maxItems: 16 })),
    /** The authentication context classes that suffice. Default: any. */
    acr: Type.Optional(Type.Array(AuthenticationContext, { minItems: 1, maxItems: 16 })),
    /** How long ago the voter may have authenticated, counted at the time of the vote. Default: any time. */
    max_age_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 31_536_000 })),
  },
  closed,
);
export type VoterRequirement = Static<typeof VoterRequirement>;

/** S4-78: who must approve, how many people, and how long an approval is valid. One rule for each subject. */
export const ApprovalRule = Type.Object(
  {
    for: ApprovalSubject,
    approver_roles: Type.Array(Identifier, { minItems: 1, maxItems: 16 }),
    /** The number of distinct people. */
    quorum: Type.Integer({ minimum: 1, maximum: QUORUM_MAX }),
    /** Counted from the earliest vote that counts; for a request without votes, from the request. */
    expires_minutes: Type.Integer({ minimum: 1, maximum: 525_600 }),
    /** Absent: also voters of the token book, the command and the library. */
    identity: Type.Optional(VoterRequirement),
  },
  closed,
);
export type ApprovalRule = Static<typeof ApprovalRule>;

/** What conditions ask of the approvers of one request, joined with the rule of its subject. */
export const ApprovalObligation = Type.Object(
  {
    /** The ids of the conditions that ask, in the order of the file. */
    conditions: Type.Array(Identifier, { minItems: 1, maxItems: 256 }),
    approver_roles: Type.Array(Identifier, { minItems: 1, maxItems: 1_024 }),
    quorum: Type.Integer({ minimum: 1, maximum: QUORUM_MAX }),
    expires_minutes: Type.Integer({ minimum: 1, maximum: 525_600 }),
    identity: Type.Optional(VoterRequirement),
  },
  closed,
);
export type ApprovalObligation = Static<typeof ApprovalObligation>;

const PersonId = Actor.properties.actor_id;

/** One person's yes. A no is not stored as a vote: it decides the request. */
export const ApprovalVote = Type.Object(
  {
    actor_id: PersonId,
    role_id: Identifier,
    at: Timestamp,
    /** The person that the voter is compared as. */
    person: Type.Optional(Person),
    /** How the voter was authenticated; absent for voters of the command and the library. */
    identity: Type.Optional(VerifiedIdentity),
  },
  closed,
);
export type ApprovalVote = Static<typeof ApprovalVote>;

/** One exact request and its votes. All members are always present, so that memory objects have one shape. */
export const ApprovalEntry = Type.Object(
  {
    digest: Sha256,
    name: ApprovalSubject,
    requested_by: PersonId,
    /** The person that the requester is compared as. */
    requester: Type.Optional(Person),
    requested_at: Timestamp,
    votes: Type.Array(ApprovalVote, { maxItems: QUORUM_MAX }),
    state: OneOf(['open', 'approved', 'rejected', 'consumed']),
    /** When the quorum was reached. Null unless the state is approved or consumed. */
    approved_at: Type.Union([Timestamp, Type.Null()]),
    expires_at: Timestamp,
    /** Absent: the approval rule of the policy for `name` applies. */
    obligation: Type.Optional(ApprovalObligation),
  },
  closed,
);
export type ApprovalEntry = Static<typeof ApprovalEntry>;

/** The requests of one run, in the order in which they were made; digests are unique. */
export const ApprovalBook = Type.Object(
  { run_id: RunId, entries: Type.Array(ApprovalEntry, { maxItems: APPROVALS_MAX }) },
  closed,
);
export type ApprovalBook = Static<typeof ApprovalBook>;

/** One person's answer to requests of one run. `at` is the time of recording, never a time from the sender. */
export const ApprovalBallot = Type.Object(
  {
    digests: Type.Array(Sha256, { minItems: 1, maxItems: BALLOT_DIGESTS_MAX }),
    decision: OneOf(['approve', 'reject']),
    approver: Type.Object(
      { ...namedActorProperties, role_id: Identifier, identity: Type.Optional(VerifiedIdentity) },
      closed,
    ),
    at: Timestamp,
    for_run: RunId,
  },
  closed,
);
export type ApprovalBallot = Static<typeof ApprovalBallot>;
