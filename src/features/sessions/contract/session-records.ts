// What the ledger records of sessions: their commands, the inputs that bring these, and their events. Content of an
// agent or a file is an artifact that comes with the input; the command refers to it.

import Type, { type Static, type TSchema } from 'typebox';
import { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import {
  OVERRIDE_REASONS,
  SESSION_ROLES,
  SessionSettings,
  FAILURE_REASONS,
  PAUSE_REASONS,
  SESSION_STATUSES,
  STEP_TYPES,
} from './session.js';
import { closed, Nullable, OneOf, Sha256, Actor, Identifier, RunId, Timestamp } from '../../../core/contract/shapes.js';
import { SpecId, SessionSpec } from './session-spec.js';
import { namedActorProperties } from '../../../core/contract/person.js';
import { OverlayFact } from '../../../core/contract/policy/overlay.js';
import { envelope, OpenInput } from '../../../core/contract/run/input.js';
import { EXPOSURES } from '../../../core/contract/run/response.js';
import type { SchemaDocument } from '../../../core/contract/core-schema-documents.js';

const StepId = Type.String({ minLength: 1, maxLength: 160 });
const Percent = Type.Number({ minimum: 0, maximum: 100 });
const Detail = Type.String({ maxLength: 400 });
/** A person's note besides the codes: an artifact of the case, erased with it (C90). */
const noteProperties = { note_ref: Type.Optional(ArtifactRef) };
/** `reason_detail` is a word of the platform or null; a person's own words are in the note. */
const Override = { reason_code: OneOf(OVERRIDE_REASONS), reason_detail: Nullable(Detail), ...noteProperties };

/** The current state of the spec file; null if the session has no file. */
export const SpecFact = Type.Union([
  Type.Object({ structure_hash: Sha256 }, closed),
  Type.Object({ problem: OneOf(['not_found', 'unreadable']) }, closed),
]);
export type SpecFact = Static<typeof SpecFact>;

/** Reports the result of the last step and requests the next one. */
export const NextCommand = Type.Object(
  {
    name: Type.Literal('next'),
    /** `last_step_result` without its step proof, as canonical JSON; null if the agent sent no result. */
    report: Nullable(ArtifactRef),
    /** SHA-256 of the step proof in the request; null if there was none (D10). */
    proof_sha256: Nullable(Sha256),
    heartbeat: Type.Boolean(),
    /** How full the agent's context is, as the agent reports it. */
    context_usage_pct: Nullable(Percent),
    spec: Nullable(SpecFact),
  },
  closed,
);
/** Requests the last answer again, after a crash of the agent. */
export const ReplayCommand = Type.Object({ name: Type.Literal('replay') }, closed);
export const HeartbeatCommand = Type.Object(
  {
    name: Type.Literal('heartbeat'),
    context_usage_pct: Nullable(Percent),
    estimated_tokens_used: Nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  },
  closed,
);
/** Runs the command of the outstanding verification (C68). No parameter can name another command. */
export const VerifyCommand = Type.Object({ name: Type.Literal('verify'), step_id: StepId }, closed);
/** Requests a review of the outstanding gate (C70). */
export const ReviewCommand = Type.Object({ name: Type.Literal('review'), phase_id: SpecId, step_id: StepId }, closed);
export const PauseCommand = Type.Object(
  { name: Type.Literal('pause'), reason: Nullable(Detail), ...noteProperties },
  closed,
);
export const ResumeCommand = Type.Object(
  {
    name: Type.Literal('resume'),
    /** Resumes a failed session too. */
    force: Type.Boolean(),
    /** A person's decision on the pending gate (C72). */
    acknowledge: Nullable(Type.Object({ gate_attempt_id: StepId, decision: OneOf(['pass', 'fail']) }, closed)),
    spec: Nullable(SpecFact),
  },
  closed,
);
export const EndCommand = Type.Object({ name: Type.Literal('end'), ...Override }, closed);
export const RebaseCommand = Type.Object(
  {
    name: Type.Literal('rebase'),
    /** The new spec as canonical JSON. */
    spec: ArtifactRef,
    /** The file that it was read from, which is read again at every step; null if it came as a document. */
    spec_file: Nullable(Type.String({ minLength: 1, maxLength: 4_096 })),
    force: Type.Boolean(),
  },
  closed,
);
export const WaiveCommand = Type.Object({ name: Type.Literal('waive'), phase_id: SpecId, ...Override }, closed);

export const SessionCommand = Type.Union([
  NextCommand,
  ReplayCommand,
  HeartbeatCommand,
  VerifyCommand,
  ReviewCommand,
  PauseCommand,
  ResumeCommand,
  EndCommand,
  RebaseCommand,
  WaiveCommand,
]);
export type SessionCommand = Static<typeof SessionCommand>;
export type SessionCommandName = SessionCommand['name'];
export type CommandOf<Name extends SessionCommandName> = Extract<SessionCommand, { readonly name: Name }>;

/** What the shell knows and the kernel cannot: hashes under keys of this home (D10), computed for the next input. */
export const SessionVouch = Type.Object(
  {
    /** The step proof of the step that this input may issue. */
    issue: Type.Object({ step_id: StepId, issue: Type.Integer({ minimum: 1 }), proof_sha256: Sha256 }, closed),
    /** Whether the checksum of the gate's evidence was made with this home's key; null if there is no evidence. */
    evidence_intact: Nullable(Type.Boolean()),
  },
  closed,
);
export type SessionVouch = Static<typeof SessionVouch>;

/** The caller of a session and its role. */
const RecordedCaller = Type.Object({ actor: Actor, role: OneOf(SESSION_ROLES) }, closed);

const feature = Type.Literal('sessions');

/** The first input of a session's tree (S3). */
export const OpenSessionInput = Type.Object(
  {
    ...OpenInput.properties,
    kind: Type.Literal('open_session'),
    feature,
    /** The spec as canonical JSON; a rebase replaces it. */
    spec: ArtifactRef,
    settings: SessionSettings,
    /** The actor and role of its agent runs. */
    agent: Type.Object(
      { ...namedActorProperties, role_id: Identifier, lane_id: Identifier, exposure: OneOf(EXPOSURES) },
      closed,
    ),
    by: RecordedCaller,
    /** The file that the spec was read from, which is read again at every step; null if it came as a document. */
    spec_file: Nullable(Type.String({ minLength: 1, maxLength: 4_096 })),
    /** A second request with the same key and spec returns this session. */
    idempotency_key: Nullable(Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$' })),
  },
  closed,
);
export type OpenSessionInput = Static<typeof OpenSessionInput>;

/** A command to a session, with the hashes from the shell. */
export const SessionInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('session'),
    feature,
    run_id: RunId,
    by: RecordedCaller,
    command: SessionCommand,
    vouch: SessionVouch,
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type SessionInput = Static<typeof SessionInput>;

declare module '../../../core/contract/run/input.js' {
  interface FeatureInputs {
    readonly open_session: OpenSessionInput;
    readonly session: SessionInput;
  }
}

export const SESSION_EVENTS = [
  'start',
  'activation', // an orchestrator run was opened for the session
  'step_issued',
  'step_consumed', // a report was accepted and its step proof consumed
  'step_refused',
  'step_revoked', // an issued step was revoked
  'verification', // the platform ran a command: the receipt
  'gate_reviewed', // the evidence
  'gate_passed',
  'gate_failed',
  'gate_waived',
  'gate_acknowledged',
  'check_failed', // a verification or review that gave no result
  'heartbeat',
  'pause',
  'resume',
  'fail',
  'rebase',
  'override', // a person overrode the rules
  'end',
  'spec_complete',
] as const;
export type SessionEventName = (typeof SESSION_EVENTS)[number];

/** One event of a session, as the ledger records it. */
export const SessionEvent = Type.Object(
  {
    feature: Type.Literal('sessions'),
    session_id: RunId,
    event: OneOf(SESSION_EVENTS),
    timestamp_utc: Timestamp,
    /** The status of the session after the event. */
    status: OneOf(SESSION_STATUSES),
    state_version: Type.Integer({ minimum: 1 }),
    pause_reason: Nullable(OneOf(PAUSE_REASONS)),
    failure_reason: Nullable(OneOf(FAILURE_REASONS)),
    step_id: Nullable(Type.String({ maxLength: 160 })),
    step_type: Nullable(OneOf(STEP_TYPES)),
    task_id: Nullable(Type.String({ maxLength: 120 })),
    phase_id: Nullable(Type.String({ maxLength: 120 })),
    /** The orchestrator, agent or tool_gateway run that the event is about. */
    run_id: Nullable(RunId),
    actor: Actor,
    role: OneOf(SESSION_ROLES),
    /** Further data of the event: codes, hashes, counters, never an agent's text. */
    detail: Type.Record(Type.String({ maxLength: 80 }), Type.Unknown()),
  },
  closed,
);
export type SessionEvent = Static<typeof SessionEvent>;

declare module '../../../core/contract/run/entry.js' {
  interface FeatureEntries {
    readonly session_event: SessionEvent;
  }
}

/** Inputs, which are part of the document of all inputs. */
export const SESSION_INPUTS: readonly TSchema[] = [OpenSessionInput, SessionInput];

export const SESSION_DOCUMENTS: readonly SchemaDocument[] = [
  {
    name: 'session_event',
    title: 'Ledger entry body: one thing that happened in a session',
    schema: SessionEvent,
  },
  {
    name: 'session_spec',
    title: 'What a session works through: phases of tasks, verifications and gates',
    schema: SessionSpec,
  },
];
