import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { FAULT_CODES } from '../fault.js';
import { DECISIONS, OUTCOMES, PHASES } from './phase.js';
import { EXPLANATION_CHARS_MAX } from '../policy/schema-mismatch.js';
import { closed, Nullable, OneOf, RunId, Sha256, Timestamp } from '../shapes.js';

const Digest = Type.Object({ sha256: Sha256, bytes: Type.Integer({ minimum: 0 }) }, closed);

/** C37: paths verbatim, content and response as hash and length, and of unknown arguments only the names. */
export const ArgsSummary = Type.Union([
  Type.Record(Type.String(), Type.Union([Type.String(), Digest])),
  Type.Object({ keys: Type.Array(Type.String()) }, closed),
]);
export type ArgsSummary = Static<typeof ArgsSummary>;

/** What RECORD writes for every step, whatever its outcome (S0-56 to S0-66). Missing values are null, not absent. */
export const StepTrace = Type.Object(
  {
    run_id: RunId,
    step_index: Type.Integer({ minimum: 1 }),
    proposal_id: Nullable(Type.String()),
    schema_version: Nullable(Type.String()),
    action: Nullable(Type.String()),
    args_summary: Nullable(ArgsSummary),
    outcome: OneOf(OUTCOMES),
    decision: OneOf(DECISIONS),
    error_code: Nullable(OneOf(FAULT_CODES)),
    /** C94: the field and the constraint that it breaks, in words of a schema. Absent if nothing is to be explained. */
    explanation: Type.Optional(Type.String({ maxLength: EXPLANATION_CHARS_MAX })),
    /** C94: the words of a tool about its failure, if the response contains them. */
    explanation_ref: Type.Optional(ArtifactRef),
    cause: Nullable(Type.String()),
    rule_id: Nullable(Type.String()),
    phase_failed_at: Nullable(OneOf(PHASES)),
    received_at: Timestamp,
    completed_at: Timestamp,
    /** For the audit only; no decision reads it (S0-66, S0-67). The text itself is in the raw payload. */
    reasoning: Nullable(Type.Object({ sha256: Sha256, chars: Type.Integer({ minimum: 0 }) }, closed)),
    payload: ArtifactRef,
    result: Nullable(ArtifactRef),
    mediated_run_id: Nullable(RunId),
    response_sha256: Sha256,
    /** C19: the step whose recorded response was returned again, without executing anything. */
    replay_of: Nullable(Type.Integer({ minimum: 1 })),
  },
  closed,
);
export type StepTrace = Static<typeof StepTrace>;
/** A trace from the step; the kernel fills in `completed_at`. */
export type StepTraceDraft = { -readonly [K in keyof StepTrace]: StepTrace[K] };
