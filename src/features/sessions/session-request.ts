// Requests of other processes to sessions (D13): one schema for each method of `Sessions`. The caller declares its
// role, like a caller in this process; the session decides what that role may do.

import Type, { type Static } from 'typebox';
import { EXPOSURES } from '../../core/contract/run/response.js';
import { GATE_POLICIES, OVERRIDE_REASONS, POSTURES, type SessionLimits } from './contract/session.js';
import type { SessionSpec } from './contract/session-spec.js';
import { closed, Nullable, OneOf } from '../../core/contract/shapes.js';
import { isInstance } from '../../core/contract/validators.js';
import type { RequestReader } from '../../runtime/host-feature.js';
import type { Sessions } from './sessions.js';

const Text = Type.String({ maxLength: 400 });
/** Id of a session, step, phase, task or gate attempt. The session knows which exist. */
const Id = Type.String({ minLength: 1, maxLength: 160 });
const WholeNumber = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const callerFields = Type.Object({ actor: Text, role: Text }, closed);

/**
 * A path is absolute, because the processes may have different working directories. A document is checked on loading.
 */
const Spec = Type.Union([
  Type.String({ pattern: '^/', maxLength: 4_096 }),
  Type.Unsafe<SessionSpec>(Type.Object({}, { additionalProperties: true })),
]);
/** Names and ranges are checked in one place for all callers. */
const Limits = Type.Unsafe<Partial<SessionLimits>>(Type.Record(Type.String({ maxLength: 80 }), WholeNumber));

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
    /** Untrusted value of an agent, bounded only by the length of a request. */
    last_step_result: Type.Optional(Type.Unknown()),
    heartbeat: Type.Optional(Type.Boolean()),
    context_usage_pct: Type.Optional(Type.Number()),
  },
  closed,
);
const HeartbeatRequest = Type.Object(
  { context_usage_pct: Type.Optional(Type.Number()), estimated_tokens_used: Type.Optional(WholeNumber) },
  closed,
);
const ResumeRequest = Type.Object(
  {
    force: Type.Optional(Type.Boolean()),
    acknowledge: Type.Optional(Type.Object({ gate_attempt_id: Id, decision: OneOf(['pass', 'fail']) }, closed)),
  },
  closed,
);
const overrideFields = { reason_code: OneOf(OVERRIDE_REASONS), reason_detail: Type.Optional(Text) };

/** Members of a request about one session, by one caller. */
const sessionFields = <const Method extends string>(method: Method) => ({
  method: Type.Literal(method),
  session_id: Id,
  by: callerFields,
});

export const SessionRequest = Type.Union([
  Type.Object({ method: Type.Literal('start'), request: StartOptions, by: callerFields }, closed),
  Type.Object({ ...sessionFields('next'), request: NextRequest }, closed),
  Type.Object(sessionFields('replay'), closed),
  Type.Object({ ...sessionFields('heartbeat'), request: HeartbeatRequest }, closed),
  Type.Object({ ...sessionFields('verify'), request: Type.Object({ step_id: Id }, closed) }, closed),
  Type.Object({ ...sessionFields('review'), request: Type.Object({ phase_id: Id, step_id: Id }, closed) }, closed),
  Type.Object({ ...sessionFields('pause'), request: Type.Object({ reason: Type.Optional(Text) }, closed) }, closed),
  Type.Object({ ...sessionFields('resume'), request: ResumeRequest }, closed),
  Type.Object({ ...sessionFields('end'), request: Type.Object(overrideFields, closed) }, closed),
  Type.Object(
    { ...sessionFields('rebase'), request: Type.Object({ spec: Spec, force: Type.Optional(Type.Boolean()) }, closed) },
    closed,
  ),
  Type.Object({ ...sessionFields('waive'), request: Type.Object({ ...overrideFields, phase_id: Id }, closed) }, closed),
  Type.Object({ method: Type.Literal('status'), session_id: Id }, closed),
  Type.Object({ method: Type.Literal('prepare'), session_id: Id, task_id: Type.Optional(Id) }, closed),
  Type.Object({ method: Type.Literal('list'), spec_id: Type.Optional(Id) }, closed),
]);
export type SessionRequest = Static<typeof SessionRequest>;

/**
 * A request with the contract folder that its caller requires; null for any. The policy of a session is that of its
 * tree, so the contract matters only where it judges a spec.
 */
const ContractRequest = Type.Object(
  { contract: Nullable(Type.String({ maxLength: 8_192 })), question: SessionRequest },
  closed,
);

export const readSessionRequest: RequestReader = (request) => {
  if (!isInstance(ContractRequest, request)) return null;
  const { contract, question } = request;
  return async ({ members, checkContract }) => {
    checkContract(contract);
    return { answer: await runSessionRequest(members.sessions, question) };
  };
};

/** Calls the sessions of this process. @throws what the method throws */
function runSessionRequest(sessions: Sessions, sessionRequest: SessionRequest): Promise<unknown> {
  switch (sessionRequest.method) {
    case 'start':
      return sessions.start({ ...sessionRequest.request, by: sessionRequest.by });
    case 'next':
      return sessions.next(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'replay':
      return sessions.replay(sessionRequest.session_id, sessionRequest.by);
    case 'heartbeat':
      return sessions.heartbeat(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'verify':
      return sessions.verify(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'review':
      return sessions.review(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'pause':
      return sessions.pause(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'resume':
      return sessions.resume(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'end':
      return sessions.end(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'rebase':
      return sessions.rebase(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'waive':
      return sessions.waive(sessionRequest.session_id, sessionRequest.request, sessionRequest.by);
    case 'status':
      return sessions.status(sessionRequest.session_id);
    case 'prepare':
      return sessions.prepare(sessionRequest.session_id, sessionRequest.task_id);
    case 'list':
      return sessions.list(sessionRequest.spec_id);
  }
}
