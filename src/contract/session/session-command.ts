// What a session can be asked, as the ledger records it. Where the content is an agent's or a file's, the command
// refers to an artifact that its input brings.

import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { OVERRIDE_REASONS } from './session.js';
import { closed, Nullable, OneOf, Sha256 } from '../shapes.js';
import { SpecId } from './session-spec.js';

const StepId = Type.String({ minLength: 1, maxLength: 160 });
const Percent = Type.Number({ minimum: 0, maximum: 100 });
const Detail = Type.String({ maxLength: 400 });
/** What a person says beside its codes: an artifact of the case, which is erased with it (C90). */
const noteProperties = { note_ref: Type.Optional(ArtifactRef) };
/** `reason_detail` is a word of the platform's own, or null: a person's words are the note. */
const Override = { reason_code: OneOf(OVERRIDE_REASONS), reason_detail: Nullable(Detail), ...noteProperties };

/** What the file of the spec is like now; null where a session has no file. */
export const SpecFact = Type.Union([
  Type.Object({ structure_hash: Sha256 }, closed),
  Type.Object({ problem: OneOf(['not_found', 'unreadable']) }, closed),
]);
export type SpecFact = Static<typeof SpecFact>;

/** What happened, and: what is to be done next? */
export const NextCommand = Type.Object(
  {
    name: Type.Literal('next'),
    /** `last_step_result` without its proof, as canonical JSON; null where there is none. */
    report: Nullable(ArtifactRef),
    /** SHA-256 of the proof that came with it; null where none came (D10). */
    proof_sha256: Nullable(Sha256),
    heartbeat: Type.Boolean(),
    /** How full the agent says that its context is. */
    context_usage_pct: Nullable(Percent),
    spec: Nullable(SpecFact),
  },
  closed,
);
/** The last answer once more, after a crash of the agent. */
export const ReplayCommand = Type.Object({ name: Type.Literal('replay') }, closed);
export const HeartbeatCommand = Type.Object(
  {
    name: Type.Literal('heartbeat'),
    context_usage_pct: Nullable(Percent),
    estimated_tokens_used: Nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  },
  closed,
);
/** Run the command of the outstanding verification (C68). There is no parameter for another command. */
export const VerifyCommand = Type.Object({ name: Type.Literal('verify'), step_id: StepId }, closed);
/** Have the outstanding gate reviewed (C70). */
export const ReviewCommand = Type.Object({ name: Type.Literal('review'), phase_id: SpecId, step_id: StepId }, closed);
export const PauseCommand = Type.Object(
  { name: Type.Literal('pause'), reason: Nullable(Detail), ...noteProperties },
  closed,
);
export const ResumeCommand = Type.Object(
  {
    name: Type.Literal('resume'),
    /** Of a session that has failed. */
    force: Type.Boolean(),
    /** What a person says to the gate that waits for it (C72). */
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
    /** Where it was read from, to be looked at at every step from now on; null where it came as a document. */
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

/** What the shell knows and the kernel cannot: hashes under keys of this home (D10), made for the input that comes. */
export const SessionVouch = Type.Object(
  {
    /** The proof that goes with the step this input may issue. */
    issue: Type.Object({ step_id: StepId, issue: Type.Integer({ minimum: 1 }), proof_sha256: Sha256 }, closed),
    /** Whether the checksum of the gate's evidence is this home's; null where there is no evidence. */
    evidence_intact: Nullable(Type.Boolean()),
  },
  closed,
);
export type SessionVouch = Static<typeof SessionVouch>;
