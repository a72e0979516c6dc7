// The commands to a session, as the ledger records them. Content of an agent or a file is an artifact that comes with
// the input; the command refers to it.

import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import { OVERRIDE_REASONS } from './session.js';
import { closed, Nullable, OneOf, Sha256 } from '../../../core/contract/shapes.js';
import { SpecId } from './session-spec.js';

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
