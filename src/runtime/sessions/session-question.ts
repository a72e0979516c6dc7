// What other processes ask of sessions (D13): one question for each method of `Sessions`, with a schema of its own. Who
// asks says in which role, as a caller in the process does; what that role may do, the session decides.

import Type, { type Static } from 'typebox';
import { EXPOSURES } from '../../contract/response.js';
import { GATE_POLICIES, OVERRIDE_REASONS, POSTURES, type SessionLimits } from '../../contract/session.js';
import type { SessionSpec } from '../../contract/session-spec.js';
import { closed, OneOf } from '../../contract/shapes.js';
import type { Sessions } from './sessions.js';

const Text = Type.String({ maxLength: 400 });
/** Of a session, step, phase, task or gate attempt: which there are, the session knows. */
const Id = Type.String({ minLength: 1, maxLength: 160 });
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const by = Type.Object({ actor: Text, role: Text }, closed);

/** Absolute: the two processes need not stand in one folder. A document is judged where it is loaded. */
const Spec = Type.Union([
  Type.String({ pattern: '^/', maxLength: 4_096 }),
  Type.Unsafe<SessionSpec>(Type.Object({}, { additionalProperties: true })),
]);
/** Which names there are, and in which ranges, is told in one place for all callers. */
const Limits = Type.Unsafe<Partial<SessionLimits>>(Type.Record(Type.String({ maxLength: 80 }), Whole));

const StartOptions = Type.Object(
  {
    spec: Spec,
    case: Type.Optional(Text),
    actor: Type.Optional(Text),
    agentRole: Type.Optional(Text),
    lane: Type.Optional(Text),
    posture: Type.Optional(OneOf(POSTURES)),
    gatePolicy: Type.Optional(OneOf(GATE_POLICIES)),
    limits: Type.Optional(Limits),
    enforceGates: Type.Optional(Type.Boolean()),
    allowGateWaiver: Type.Optional(Type.Boolean()),
    allowSkipped: Type.Optional(Type.Boolean()),
    stopOnPhaseCompletion: Type.Optional(Type.Boolean()),
    autoRetryFidelityGate: Type.Optional(Type.Boolean()),
    idempotencyKey: Type.Optional(Text),
    force: Type.Optional(Type.Boolean()),
    correlation: Type.Optional(Text),
    scope: Type.Optional(Type.Record(Type.String(), Type.String())),
    exposure: Type.Optional(OneOf(EXPOSURES)),
  },
  closed,
);
const NextRequest = Type.Object(
  {
    /** An agent's: whatever it is, up to the length of a request. */
    last_step_result: Type.Optional(Type.Unknown()),
    heartbeat: Type.Optional(Type.Boolean()),
    context_usage_pct: Type.Optional(Type.Number()),
  },
  closed,
);
const HeartbeatRequest = Type.Object(
  { context_usage_pct: Type.Optional(Type.Number()), estimated_tokens_used: Type.Optional(Whole) },
  closed,
);
const ResumeRequest = Type.Object(
  {
    force: Type.Optional(Type.Boolean()),
    acknowledge: Type.Optional(Type.Object({ gate_attempt_id: Id, decision: OneOf(['pass', 'fail']) }, closed)),
  },
  closed,
);
const override = { reason_code: OneOf(OVERRIDE_REASONS), reason_detail: Type.Optional(Text) };

/** About one session, by somebody. */
const about = <const Method extends string>(method: Method) => ({
  method: Type.Literal(method),
  session_id: Id,
  by,
});

export const SessionQuestion = Type.Union([
  Type.Object({ method: Type.Literal('start'), request: StartOptions, by }, closed),
  Type.Object({ ...about('next'), request: NextRequest }, closed),
  Type.Object(about('replay'), closed),
  Type.Object({ ...about('heartbeat'), request: HeartbeatRequest }, closed),
  Type.Object({ ...about('verify'), request: Type.Object({ step_id: Id }, closed) }, closed),
  Type.Object({ ...about('review'), request: Type.Object({ phase_id: Id, step_id: Id }, closed) }, closed),
  Type.Object({ ...about('pause'), request: Type.Object({ reason: Type.Optional(Text) }, closed) }, closed),
  Type.Object({ ...about('resume'), request: ResumeRequest }, closed),
  Type.Object({ ...about('end'), request: Type.Object(override, closed) }, closed),
  Type.Object(
    { ...about('rebase'), request: Type.Object({ spec: Spec, force: Type.Optional(Type.Boolean()) }, closed) },
    closed,
  ),
  Type.Object({ ...about('waive'), request: Type.Object({ ...override, phase_id: Id }, closed) }, closed),
  Type.Object({ method: Type.Literal('status'), session_id: Id }, closed),
  Type.Object({ method: Type.Literal('prepare'), session_id: Id, task_id: Type.Optional(Id) }, closed),
  Type.Object({ method: Type.Literal('list'), spec_id: Type.Optional(Id) }, closed),
]);
export type SessionQuestion = Static<typeof SessionQuestion>;

/** Puts a question to the sessions of this process. @throws what the method throws */
export function answerQuestion(sessions: Sessions, question: SessionQuestion): Promise<unknown> {
  switch (question.method) {
    case 'start':
      return sessions.start({ ...question.request, by: question.by });
    case 'next':
      return sessions.next(question.session_id, question.request, question.by);
    case 'replay':
      return sessions.replay(question.session_id, question.by);
    case 'heartbeat':
      return sessions.heartbeat(question.session_id, question.request, question.by);
    case 'verify':
      return sessions.verify(question.session_id, question.request, question.by);
    case 'review':
      return sessions.review(question.session_id, question.request, question.by);
    case 'pause':
      return sessions.pause(question.session_id, question.request, question.by);
    case 'resume':
      return sessions.resume(question.session_id, question.request, question.by);
    case 'end':
      return sessions.end(question.session_id, question.request, question.by);
    case 'rebase':
      return sessions.rebase(question.session_id, question.request, question.by);
    case 'waive':
      return sessions.waive(question.session_id, question.request, question.by);
    case 'status':
      return sessions.status(question.session_id);
    case 'prepare':
      return sessions.prepare(question.session_id, question.task_id);
    case 'list':
      return sessions.list(question.spec_id);
  }
}
