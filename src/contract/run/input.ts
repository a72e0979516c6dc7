// What enters the kernel, as the ledger records it: a closed vocabulary, each input with its time and its facts.

import Type, { type Static } from 'typebox';
import { ApprovalBallot } from './approval.js';
import { ArtifactRef } from '../artifact-ref.js';
import { BudgetLimits } from './budget.js';
import { Label } from '../policy/labels.js';
import { OverlayFact } from '../policy/overlay.js';
import { Pin, PIN_PROBLEMS } from '../policy/pins.js';
import { namedActorProperties } from '../person.js';
import { EXPOSURES } from './response.js';
import {
  CancelInput,
  EndInput,
  envelope,
  FactsInput,
  InterruptInput,
  noteProperties,
  ResultInput,
  WakeInput,
} from './run-input.js';
import { SeenProposal } from './seen-proposal.js';
import { SessionCommand, SessionVouch } from '../session/session-command.js';
import { SESSION_ROLES, SessionSettings } from '../session/session.js';
import { Actor, CaseId, closed, Identifier, Nullable, OneOf, RunId, Sha256, TaxonomyVersions } from '../shapes.js';

export { SeenProposal } from './seen-proposal.js';

const PolicyPin = Type.Union([
  Type.Object({ ...Pin.properties, artifact: ArtifactRef }, closed),
  Type.Object({ problem: OneOf(PIN_PROBLEMS), artifact: ArtifactRef }, closed),
]);

/** Whoever speaks to a session, and in which of its roles. */
const RecordedCaller = Type.Object({ actor: Actor, role: OneOf(SESSION_ROLES) }, closed);

/** The first input of a run tree: everything that its runs inherit, and the policy bytes they are judged by (D1). */
export const OpenInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('open'),
    run_id: RunId,
    correlation_id: Identifier,
    case_id: Nullable(CaseId),
    taxonomy_versions: Nullable(TaxonomyVersions),
    scope: Type.Record(Type.String({ maxLength: 120 }), Type.String({ maxLength: 400 })),
    policies: Type.Object({ lanes: PolicyPin, roles: PolicyPin, actions: PolicyPin }, closed),
    machines: ArtifactRef,
    /** Scope values that are no identifiers: the scope has their hashes (C90). */
    notes: Type.Optional(Type.Array(ArtifactRef, { maxItems: 32 })),
  },
  closed,
);
export type OpenInput = Static<typeof OpenInput>;

/** The first input of a session's tree (S3). */
export const OpenSessionInput = Type.Object(
  {
    ...OpenInput.properties,
    kind: Type.Literal('open_session'),
    /** The spec as canonical JSON: what the session works through until it is rebased. */
    spec: ArtifactRef,
    settings: SessionSettings,
    /** As whom its agent runs act. */
    agent: Type.Object(
      { ...namedActorProperties, role_id: Identifier, lane_id: Identifier, exposure: OneOf(EXPOSURES) },
      closed,
    ),
    by: RecordedCaller,
    /** Where the spec was read from, to be looked at again at every step; null where it came as a document. */
    spec_file: Nullable(Type.String({ minLength: 1, maxLength: 4_096 })),
    /** Given again with the same spec, it means this session. */
    idempotency_key: Nullable(Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$' })),
  },
  closed,
);
export type OpenSessionInput = Static<typeof OpenSessionInput>;

/** A command to a session, with what the shell vouches for. */
export const SessionInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('session'),
    run_id: RunId,
    by: RecordedCaller,
    command: SessionCommand,
    vouch: SessionVouch,
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type SessionInput = Static<typeof SessionInput>;

/** D3: an attached agent dies with its caller; a remote one lives on and ends by its idle timer. */
export const AGENT_LINKS = ['attached', 'remote'] as const;
export type AgentLink = (typeof AGENT_LINKS)[number];

export const StartAgentInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('start_agent'),
    /** The orchestrator run that shall be the parent. */
    run_id: RunId,
    ...namedActorProperties,
    role_id: Identifier,
    lane_id: Identifier,
    /** The effective exposure: the policy's, or narrower where the caller asked for it (D6). */
    exposure: OneOf(EXPOSURES),
    link: OneOf(AGENT_LINKS),
    /** Milliseconds without a proposal after which a remote agent is cancelled; null for an attached one. */
    idle_ms: Nullable(Type.Integer({ minimum: 1 })),
    /** What the agent may use up at most, where its caller gives it less than the tree has. */
    budget: Nullable(BudgetLimits),
    /** Prompts and configurations that the agent is started with (S4-59). */
    given: Type.Optional(Type.Array(ArtifactRef, { maxItems: 16 })),
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type StartAgentInput = Static<typeof StartAgentInput>;

export const ProposalInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('proposal'),
    run_id: RunId,
    payload: ArtifactRef,
    /** C80: the first bytes of a payload over the limit, which this input brings in its place. Absent: it is whole. */
    prefix: Type.Optional(ArtifactRef),
    seen: Nullable(SeenProposal),
    /** Tokens that the agent has used since its last proposal, as its caller reports. */
    tokens: Nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    /** What the agent was asked with, where its caller records that (S4-59). */
    prompt: Type.Optional(ArtifactRef),
    /** The emergency overlay as it was when the proposal came (D1). */
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type ProposalInput = Static<typeof ProposalInput>;

export { INPUT_ID_CHARS_MAX } from './run-input.js';
export { CancelInput, EndInput, FactsInput, InterruptInput, ResultInput, WakeInput } from './run-input.js';

/** The two kinds of runs that people start (S4 §10). */
export const HIGH_RISK_KINDS = ['promotion', 'export'] as const;
export type HighRiskKind = (typeof HIGH_RISK_KINDS)[number];

export const StartRunInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('start_run'),
    /** The orchestrator run that shall be the parent. */
    run_id: RunId,
    run_kind: OneOf(HIGH_RISK_KINDS),
    ...namedActorProperties,
    role_id: Identifier,
    lane_id: Identifier,
    /** What is to be done, as JSON `{action, args}`: an artifact that this input brings. */
    request: ArtifactRef,
    /** What it is made from. */
    inputs: Type.Array(ArtifactRef, { maxItems: 64 }),
    /** Facts that the platform has gathered of what would be carried over. */
    facts: Type.Object(
      { artifact_flags: Type.Array(Type.String({ maxLength: 80 }), { maxItems: 64 }), label: Label },
      closed,
    ),
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type StartRunInput = Static<typeof StartRunInput>;

/** People's answer to requests of one run (D7). */
export const VoteInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('vote'),
    /** The agent, promotion or export run that asked. */
    run_id: RunId,
    digests: ApprovalBallot.properties.digests,
    decision: ApprovalBallot.properties.decision,
    approver: ApprovalBallot.properties.approver,
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type VoteInput = Static<typeof VoteInput>;

/** D8: somebody has found out what became of an action whose outcome was unknown. */
export const ResolveInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('resolve'),
    /** The mediated run whose outcome is unknown. */
    run_id: RunId,
    outcome: OneOf(['done', 'not_executed']),
    actor: Actor,
    role_id: Identifier,
    /** Empty in every new input: what was said is the note (C90). */
    note: Type.String({ maxLength: 400 }),
    ...noteProperties,
  },
  closed,
);
export type ResolveInput = Static<typeof ResolveInput>;

/** Somebody will be given content of `run_id`: an artifact that its entry `entry` brought. */
export const AccessInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('access'),
    run_id: RunId,
    entry: Type.Integer({ minimum: 0 }),
    artifact_kind: Type.String({ minLength: 2, maxLength: 80 }),
    hash_sha256: Sha256,
    actor: Actor,
    role_id: Identifier,
  },
  closed,
);
export type AccessInput = Static<typeof AccessInput>;

export const INPUT_SCHEMAS = {
  open: OpenInput,
  start_agent: StartAgentInput,
  proposal: ProposalInput,
  facts: FactsInput,
  result: ResultInput,
  end: EndInput,
  cancel: CancelInput,
  interrupt: InterruptInput,
  wake: WakeInput,
  start_run: StartRunInput,
  vote: VoteInput,
  resolve: ResolveInput,
  access: AccessInput,
  open_session: OpenSessionInput,
  session: SessionInput,
} as const;
export type InputKind = keyof typeof INPUT_SCHEMAS;

export const RecordedInput = Type.Union([
  OpenInput,
  StartAgentInput,
  ProposalInput,
  FactsInput,
  ResultInput,
  EndInput,
  CancelInput,
  InterruptInput,
  WakeInput,
  StartRunInput,
  VoteInput,
  ResolveInput,
  AccessInput,
  OpenSessionInput,
  SessionInput,
]);
export type RecordedInput = Static<typeof RecordedInput>;
