// Schemas of session answers. A process that gets an answer from another process validates it before use.

import Type, { type TSchema } from 'typebox';
import {
  FAILURE_REASONS,
  GATE_VERDICTS,
  GateFinding,
  LOOP_SIGNALS,
  PAUSE_REASONS,
  SESSION_STATUSES,
  STEP_TYPES,
  VerificationReceipt,
} from './contract/session.js';
import { SESSION_ERRORS, type SessionAnswer, type SessionErrorCode } from './contract/session-answer.js';
import { closed, Nullable, OneOf } from '../../core/contract/shapes.js';
import type { SessionSummary, TaskDetails } from './sessions.js';

const text = Type.String();
const texts = Type.Array(text);
const Status = OneOf(SESSION_STATUSES);
const Signal = Nullable(OneOf(LOOP_SIGNALS));
const Pause = Nullable(OneOf(PAUSE_REASONS));
const ErrorCode = OneOf(Object.keys(SESSION_ERRORS) as SessionErrorCode[]);
const Actions = Type.Array(Type.Object({ action: text, description: text, command: Nullable(text) }, closed));

const NextStep = Type.Object(
  {
    step_id: text,
    type: OneOf(STEP_TYPES),
    phase_id: Nullable(text),
    task_id: Nullable(text),
    task_title: Nullable(text),
    instruction: text,
    instructions: Type.Array(Type.Object({ tool: text, action: text, description: text }, closed)),
    reason: Pause,
    run_id: Nullable(text),
    lane_id: Nullable(text),
    findings: Type.Array(GateFinding),
    step_proof: Type.Optional(text),
  },
  closed,
);

const ExitPacket = Type.Object(
  {
    spec_id: text,
    session_id: text,
    final_status: Status,
    loop_signal: Signal,
    pause_reason: Pause,
    active_phase_id: Nullable(text),
    last_step_id: Nullable(text),
    gates_satisfied: texts,
    steps_executed: Type.Integer(),
    summary: text,
    details: Type.Object(
      { response_success: Type.Boolean(), error_code: Nullable(ErrorCode), recommended_actions: Actions },
      closed,
    ),
  },
  closed,
);

const Data = Type.Object(
  {
    session_id: text,
    spec_id: text,
    status: Status,
    state_version: Type.Integer(),
    pause_reason: Pause,
    failure_reason: Nullable(OneOf(FAILURE_REASONS)),
    active_phase_id: Nullable(text),
    next_step: Nullable(NextStep),
    required_phase_gates: texts,
    satisfied_gates: texts,
    missing_required_gates: texts,
    loop_signal: Signal,
    recommended_actions: Actions,
    warnings: texts,
    verification_receipt: Nullable(VerificationReceipt),
    output: Nullable(text),
    review: Nullable(
      Type.Object(
        {
          gate_attempt_id: text,
          verdict: OneOf(GATE_VERDICTS),
          findings: Type.Array(GateFinding),
          gate_policy: text,
          gate_passed_preview: Type.Boolean(),
        },
        closed,
      ),
    ),
    exit_packet: Nullable(ExitPacket),
  },
  closed,
);

export const SessionErrorShape = Type.Object(
  { code: ErrorCode, error_type: text, message: text, details: texts },
  closed,
);

/** Wrapped in an object, because an answer may be null. */
const answerResult = <T>(schema: TSchema) => Type.Object({ answer: Type.Unsafe<T>(schema) }, closed);

export const SessionAnswerResult = answerResult<SessionAnswer>(
  Type.Union([
    Type.Object({ success: Type.Literal(true), data: Data, error: Type.Null() }, closed),
    Type.Object({ success: Type.Literal(false), data: Nullable(Data), error: SessionErrorShape }, closed),
  ]),
);

export const TaskDetailsResult = answerResult<TaskDetails | null>(
  Nullable(
    Type.Object(
      {
        task_id: text,
        phase_id: text,
        title: text,
        instruction: text,
        acceptance: texts,
        files: texts,
        depends_on: texts,
        status: OneOf(['pending', 'completed', 'skipped']),
      },
      closed,
    ),
  ),
);

export const SessionListResult = answerResult<readonly SessionSummary[]>(
  Type.Array(
    Type.Object(
      { session_id: text, spec_id: text, status: Status, effective_status: Status, created_at_utc: text },
      closed,
    ),
  ),
);
