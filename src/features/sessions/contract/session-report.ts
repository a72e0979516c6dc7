import Type, { type Static } from 'typebox';
import { REPORTED_STEP_TYPES, STEP_OUTCOMES, type ReportedStepType, type StepOutcome } from './session.js';

const Id = Type.String({ minLength: 1, maxLength: 160 });

/** `last_step_result`, without its step proof (S3-04 to S3-15). */
export const StepReport = Type.Object(
  {
    step_id: Id,
    step_type: Type.Enum([...REPORTED_STEP_TYPES]),
    outcome: Type.Enum([...STEP_OUTCOMES]),
    task_id: Type.Optional(Id),
    phase_id: Type.Optional(Id),
    gate_attempt_id: Type.Optional(Id),
    note: Type.Optional(Type.String({ maxLength: 8_000 })),
    files_touched: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 1_024 }), { maxItems: 1_000 })),
    verification_receipt: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: false },
);
export type ReportShape = Static<typeof StepReport>;
export interface StepReport extends Omit<ReportShape, 'step_type' | 'outcome'> {
  readonly step_type: ReportedStepType;
  readonly outcome: StepOutcome;
}
