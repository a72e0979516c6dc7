// The input and output schemas of the session tools.

import Type, { type TSchema } from 'typebox';
import { closed, Nullable, OneOf, Sha256 } from '../../../core/contract/shapes.js';
import { SessionErrorShape } from '../answer-schemas.js';
import {
  LOOP_SIGNALS,
  PAUSE_REASONS,
  REPORTED_STEP_TYPES,
  SESSION_STATUSES,
  STEP_OUTCOMES,
  STEP_TYPES,
} from '../contract/session.js';
import { Id, SESSION_OPERATIONS } from '../session-operations.js';

const OPEN_OBJECT = { additionalProperties: true };
const Text = (description: string) => Type.String({ description });
const OptionalId = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 160, description }));
const { heartbeat, context_usage_pct } = SESSION_OPERATIONS.next.request.properties;
const { estimated_tokens_used } = SESSION_OPERATIONS.heartbeat.request.properties;

/** The members of a report (S3-06). The session validates it, and reports all mistakes at once. */
const LastStepResult = Type.Object(
  {
    step_id: Text('next_step.step_id'),
    step_type: OneOf(REPORTED_STEP_TYPES),
    outcome: OneOf(STEP_OUTCOMES),
    step_proof: Text('next_step.step_proof, as it was given'),
    task_id: Type.Optional(Text('Of implement_task and execute_verification')),
    phase_id: Type.Optional(Text('Of run_fidelity_gate and address_fidelity_feedback')),
    gate_attempt_id: Type.Optional(Text('Of run_fidelity_gate: from the review')),
    note: Type.Optional(Text('A summary')),
    files_touched: Type.Optional(Type.Array(Type.String())),
    verification_receipt: Type.Optional(
      Type.Object(
        {
          command_hash: Sha256,
          exit_code: Type.Integer(),
          output_digest: Sha256,
          issued_at: Type.String(),
          step_id: Type.String(),
        },
        { ...closed, description: 'Of execute_verification: the receipt as verification returned it' },
      ),
    ),
  },
  { ...closed, description: 'What became of the outstanding step' },
);

export const TASK_ACTIONS = ['session-step', 'session', 'prepare'] as const;
/** `report` is listed so that it can be refused by name (C64). */
export const TASK_COMMANDS = ['start', 'next', 'replay', 'heartbeat', 'status', 'resume', 'list', 'report'] as const;

export const TaskArguments = Type.Object(
  {
    action: OneOf(TASK_ACTIONS),
    command: Type.Optional(
      Type.Unsafe<(typeof TASK_COMMANDS)[number]>({
        ...OneOf(TASK_COMMANDS),
        description:
          'Of session-step: start, next, replay, heartbeat, status. Of session: start, resume, heartbeat, status, list.',
      }),
    ),
    session_id: OptionalId('The session. Of every command but start and list; prepare and status also take spec_id.'),
    spec_id: OptionalId('The spec to work on.'),
    spec: Type.Optional(
      Type.Object({}, { ...OPEN_OBJECT, description: 'Of start: the spec itself, where that is allowed.' }),
    ),
    case: Type.Optional(
      Type.String({
        ...{ minLength: 4, maxLength: 80, pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$' },
        description: 'Of start: the case of the session, if the connection has none.',
      }),
    ),
    task_id: OptionalId('Of prepare: a task. Default: that of the outstanding step.'),
    idempotency_key: Type.Optional(
      Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$', description: 'Of start: the same key gives the same session.' }),
    ),
    last_step_result: Type.Optional(LastStepResult),
    heartbeat,
    context_usage_pct,
    estimated_tokens_used,
  },
  closed,
);

export const ReviewArguments = Type.Object(
  {
    action: OneOf(['fidelity-gate']),
    spec_id: OptionalId('The spec of the session.'),
    session_id: Id,
    phase_id: Id,
    step_id: Id,
  },
  closed,
);

/** There is no argument for the command: the spec defines it (C68). */
export const VerificationArguments = Type.Object(
  {
    action: OneOf(['execute']),
    spec_id: OptionalId('The spec of the session.'),
    session_id: Id,
    step_id: Id,
    task_id: OptionalId('The task of the step.'),
  },
  closed,
);

const NextStep = Type.Object(
  {
    step_id: Text('To be named in the report'),
    type: OneOf(STEP_TYPES),
    instruction: Text('All that is to be done'),
    run_id: Nullable(Text('The run for the proposals of this step')),
    step_proof: Type.Optional(Text('To be sent back as it is')),
  },
  OPEN_OBJECT,
);

const Session = Type.Object(
  {
    session_id: Type.String(),
    spec_id: Type.String(),
    status: OneOf(SESSION_STATUSES),
    next_step: Nullable(NextStep),
    loop_signal: Nullable(OneOf(LOOP_SIGNALS)),
    pause_reason: Nullable(OneOf(PAUSE_REASONS)),
  },
  OPEN_OBJECT,
);
const Task = Type.Object({ task_id: Type.String(), instruction: Type.String() }, OPEN_OBJECT);
const List = Type.Object({ sessions: Type.Array(Type.Object({ session_id: Type.String() }, OPEN_OBJECT)) }, closed);

const answerSchema = (data: TSchema) =>
  Type.Object({ success: Type.Boolean(), data: Nullable(data), error: Nullable(SessionErrorShape) }, closed);

export const SessionOutput = answerSchema(Session);
export const TaskOutput = answerSchema(Type.Union([Session, Task, List]));
