// Sessions over the control socket (D13): the request that another process sends, and both ends that exchange it. The
// caller declares its role, like a caller in this process; the session decides what that role may do.

import Type, { type Static, type TSchema } from 'typebox';
import { resolve } from 'node:path';
import { EXPOSURES } from '../../core/contract/run/response.js';
import { closed, Nullable, OneOf } from '../../core/contract/shapes.js';
import { isInstance } from '../../core/contract/validators.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import type { RequestReader, RequestSender } from '../../runtime/host-feature.js';
import { SessionAnswerResult, SessionListResult, TaskDetailsResult } from './answer-schemas.js';
import type { SessionAnswer } from './contract/session-answer.js';
import { GATE_POLICIES, POSTURES, type SessionLimits } from './contract/session.js';
import {
  callOperation,
  Id,
  sessionOperations,
  SpecReference,
  type SessionOperationName,
} from './session-operations.js';
import type { SessionCaller, Sessions } from './sessions.js';

const Text = Type.String({ maxLength: 400 });
const Caller = Type.Object({ actor: Text, role: Text }, closed);
/** Names and ranges are checked in one place for all callers. */
const Limits = Type.Unsafe<Partial<SessionLimits>>(
  Type.Record(Type.String({ maxLength: 80 }), Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
);

const StartOptions = Type.Object(
  {
    spec: SpecReference,
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

/** An operation on one session, by one caller. */
interface OperationRequest {
  readonly method: SessionOperationName;
  readonly session_id: string;
  readonly request: object;
  readonly by: SessionCaller;
}
const OperationRequest = Type.Unsafe<OperationRequest>(
  Type.Union(
    sessionOperations.map(([name, { request }]) =>
      Type.Object({ method: Type.Literal(name), session_id: Id, request, by: Caller }, closed),
    ),
  ),
);
const SessionRequest = Type.Union([
  Type.Object({ method: Type.Literal('start'), request: StartOptions, by: Caller }, closed),
  Type.Object({ method: Type.Literal('status'), session_id: Id }, closed),
  Type.Object({ method: Type.Literal('prepare'), session_id: Id, task_id: Type.Optional(Id) }, closed),
  Type.Object({ method: Type.Literal('list'), spec_id: Type.Optional(Id) }, closed),
  OperationRequest,
]);
type SessionRequest = Static<typeof SessionRequest>;

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
function runSessionRequest(sessions: Sessions, question: SessionRequest): Promise<unknown> {
  switch (question.method) {
    case 'start':
      return sessions.start({ ...question.request, by: question.by });
    case 'status':
      return sessions.status(question.session_id);
    case 'prepare':
      return sessions.prepare(question.session_id, question.task_id);
    case 'list':
      return sessions.list(question.spec_id);
    default:
      return callOperation(sessions, question.method, question.session_id, question.request, question.by);
  }
}

/**
 * The sessions of the process that owns the ledger: the same methods, with the same answers.
 * @param contract the contract folder by which it must judge specs, or null for any
 */
export function remoteSessions(owner: RequestSender, contract: string | null): Sessions {
  const send = async <T extends TSchema>(question: SessionRequest, schema: T): Promise<Static<T>> => {
    const judgesSpec = question.method === 'start' || question.method === 'rebase';
    return owner.request({ op: 'session', contract: judgesSpec ? contract : null, question }, schema);
  };
  const requestSession = async (question: SessionRequest) => (await send(question, SessionAnswerResult)).answer;
  type Operation = (session_id: string, request: object, by: SessionCaller) => Promise<SessionAnswer>;
  const operations = Object.fromEntries(
    sessionOperations.map(([method]): [string, Operation] => [
      method,
      (session_id, request, by) => requestSession({ method, session_id, request, by: toCaller(by) }),
    ]),
  ) as Record<SessionOperationName, Operation>;
  return {
    ...operations,
    start: ({ by, spec, scope, limits, ...options }) =>
      requestSession({
        method: 'start',
        request: { ...options, spec: resolveSpec(spec), ...omitUndefined({ scope: scope && { ...scope }, limits }) },
        by: toCaller(by),
      }),
    replay: (session_id, by) => operations.replay(session_id, {}, by),
    rebase: (session_id, request, by) =>
      operations.rebase(session_id, { ...request, spec: resolveSpec(request.spec) }, by),
    status: (session_id) => requestSession({ method: 'status', session_id }),
    prepare: async (session_id, task_id) =>
      (await send({ method: 'prepare', session_id, ...omitUndefined({ task_id }) }, TaskDetailsResult)).answer,
    list: async (spec_id) => (await send({ method: 'list', ...omitUndefined({ spec_id }) }, SessionListResult)).answer,
  };
}

/** Only these members are sent. */
const toCaller = ({ actor, role }: SessionCaller): SessionCaller => ({ actor, role });

/** Resolved against the working directory of this process. */
const resolveSpec = <T>(spec: string | T): string | T => (typeof spec === 'string' ? resolve(spec) : spec);
