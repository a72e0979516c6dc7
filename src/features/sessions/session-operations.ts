// The operations on one session, each described once. The control socket, HTTP, MCP and the command line are made from
// this table.

import Type, { type Static, type TObject, type TProperties } from 'typebox';
import { closed, OneOf } from '../../core/contract/shapes.js';
import { OVERRIDE_REASONS, type SessionRole } from './contract/session.js';
import type { SessionAnswer } from './contract/session-answer.js';
import type { SessionSpec } from './contract/session-spec.js';
import type { SessionCaller, Sessions } from './sessions.js';

/** An operation on one session. */
export interface SessionOperation<Properties extends TProperties = TProperties, Request extends object = object> {
  /** Who usually requests it: the agent in its loop, or a person. The session decides what a caller's role may do. */
  readonly role: Exclude<SessionRole, 'observer'>;
  /** The summary of its route. Null: it has none, because it reads a file of this machine. */
  readonly route: string | null;
  readonly request: TObject<Properties>;
  /** @param request an instance of the schema `request` */
  call(sessions: Sessions, session_id: string, request: Request, by: SessionCaller): Promise<SessionAnswer>;
}

/** Id of a session, step, phase, task or gate attempt. The session knows which exist. */
export const Id = Type.String({ minLength: 1, maxLength: 160 });

/**
 * A path is absolute, because the processes may have different working directories. A document is checked on loading.
 */
export const SpecReference = Type.Union([
  Type.String({ pattern: '^/', maxLength: 4_096 }),
  Type.Unsafe<SessionSpec>(Type.Object({}, { additionalProperties: true })),
]);

const context_usage_pct = Type.Optional(
  Type.Number({ minimum: 0, maximum: 100, description: 'How full your context is, in per cent.' }),
);
const override = {
  reason_code: OneOf(OVERRIDE_REASONS),
  reason_detail: Type.Optional(Type.String({ maxLength: 1_000 })),
};

type OperationOf<Properties extends TProperties> = SessionOperation<Properties, Static<TObject<Properties>>>;

/** Gives `call` the type of a request of these properties. */
const operation = <Properties extends TProperties>({
  properties,
  ...rest
}: Omit<OperationOf<Properties>, 'request'> & { readonly properties: Properties }): OperationOf<Properties> => ({
  ...rest,
  request: Type.Object(properties, closed),
});

export const SESSION_OPERATIONS = {
  next: operation({
    role: 'autonomy_runner',
    route: 'Report the outstanding step, and get the next one',
    properties: {
      /** Untrusted value of an agent: the session validates it, and reports all mistakes at once. */
      last_step_result: Type.Optional(Type.Unknown()),
      heartbeat: Type.Optional(Type.Boolean({ description: 'Of next: you are alive.' })),
      context_usage_pct,
    },
    call: (sessions, session_id, request, by) => sessions.next(session_id, request, by),
  }),
  replay: operation({
    role: 'autonomy_runner',
    route: 'Get the last answer again',
    properties: {},
    call: (sessions, session_id, _request, by) => sessions.replay(session_id, by),
  }),
  heartbeat: operation({
    role: 'autonomy_runner',
    route: 'Record that the agent is alive',
    properties: {
      context_usage_pct,
      estimated_tokens_used: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    },
    call: (sessions, session_id, request, by) => sessions.heartbeat(session_id, request, by),
  }),
  verify: operation({
    role: 'autonomy_runner',
    route: 'Run the command of the outstanding verification',
    properties: { step_id: Id },
    call: (sessions, session_id, request, by) => sessions.verify(session_id, request, by),
  }),
  review: operation({
    role: 'autonomy_runner',
    route: 'Review the outstanding gate',
    properties: { step_id: Id, phase_id: Id },
    call: (sessions, session_id, request, by) => sessions.review(session_id, request, by),
  }),
  pause: operation({
    role: 'maintainer',
    route: 'Pause the session',
    properties: { reason: Type.Optional(Type.String({ maxLength: 400 })) },
    call: (sessions, session_id, request, by) => sessions.pause(session_id, request, by),
  }),
  resume: operation({
    role: 'maintainer',
    route: 'Resume the session after a pause',
    properties: {
      force: Type.Optional(Type.Boolean()),
      acknowledge: Type.Optional(Type.Object({ gate_attempt_id: Id, decision: OneOf(['pass', 'fail']) }, closed)),
    },
    call: (sessions, session_id, request, by) => sessions.resume(session_id, request, by),
  }),
  end: operation({
    role: 'maintainer',
    route: 'End the session permanently',
    properties: override,
    call: (sessions, session_id, request, by) => sessions.end(session_id, request, by),
  }),
  rebase: operation({
    role: 'maintainer',
    route: null,
    properties: { spec: SpecReference, force: Type.Optional(Type.Boolean()) },
    call: (sessions, session_id, request, by) => sessions.rebase(session_id, request, by),
  }),
  waive: operation({
    role: 'maintainer',
    route: 'Waive a gate: mark it as satisfied although nothing has passed it',
    properties: { ...override, phase_id: Id },
    call: (sessions, session_id, request, by) => sessions.waive(session_id, request, by),
  }),
} as const;

export type SessionOperationName = keyof typeof SESSION_OPERATIONS;
export type RequestOf<Name extends SessionOperationName> = Static<(typeof SESSION_OPERATIONS)[Name]['request']>;

/** The table with the types of the requests erased. */
export const sessionOperations: readonly (readonly [SessionOperationName, SessionOperation])[] = Object.entries(
  SESSION_OPERATIONS,
) as never;
