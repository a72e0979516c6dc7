// The fields of every input, and the inputs about an existing run: facts, results and its end.

import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { SandboxAmount, SandboxFacts } from './effect.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../fault.js';
import { OverlayFact } from '../policy/overlay.js';
import { closed, Nullable, OneOf, RunId, Timestamp } from '../shapes.js';

export const INPUT_ID_CHARS_MAX = 160;
const InputId = Type.String({ minLength: 1, maxLength: INPUT_ID_CHARS_MAX });
export const envelope = { input_id: InputId, time: Timestamp };
const Reason = Type.String({ maxLength: 160 });
/** Free text that belongs to the input: an artifact of the case, erased with it (C90). */
export const noteProperties = { note_ref: Type.Optional(ArtifactRef) };

export const FactsInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('facts'),
    run_id: RunId,
    facts: SandboxFacts,
    /** C82: what earlier decisions of the case may still add to its usage. Absent: nothing. */
    reserved: Type.Optional(SandboxAmount),
  },
  closed,
);
export type FactsInput = Static<typeof FactsInput>;

export const ResultInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('result'),
    /** The mediated run whose command this answers. */
    run_id: RunId,
    status: OneOf(['done', 'failed', 'unknown']),
    cause: Nullable(OneOf(Object.keys(EXECUTION_CAUSES) as readonly ExecutionCause[])),
    result: Nullable(ArtifactRef),
    /** D8: true if the outcome was found out after a crash and not reported by the executor. */
    settled: Type.Boolean(),
  },
  closed,
);
export type ResultInput = Static<typeof ResultInput>;

/** The caller has no more proposals: the agent run is completed as `end_of_input` (D5). */
export const EndInput = Type.Object({ ...envelope, kind: Type.Literal('end'), run_id: RunId }, closed);
export const CancelInput = Type.Object(
  { ...envelope, kind: Type.Literal('cancel'), run_id: RunId, reason: Reason, ...noteProperties },
  closed,
);
/** D3: the process that an attached agent belonged to is gone. */
export const InterruptInput = Type.Object({ ...envelope, kind: Type.Literal('interrupt'), run_id: RunId }, closed);
export const WakeInput = Type.Object(
  { ...envelope, kind: Type.Literal('wake'), run_id: RunId, overlay: Nullable(OverlayFact) },
  closed,
);
