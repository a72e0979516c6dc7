// The operations on one session, each described once. The control socket, HTTP, MCP and the command line are made from
// this table.

import Type, { type Static, type TObject, type TProperties } from 'typebox';
import { closed, OneOf } from '../../core/contract/shapes.js';
import { OVERRIDE_REASONS, type SessionRole } from './contract/session.js';
import type { SessionAnswer } from './contract/session-answer.js';
import type { SessionSpec } from './contract/session-spec.js';
import type { SessionCaller, Sessions } from './sessions.js';

/** An operation on one session. */
export interface SessionOperation<Properties extends TProperties = TProperties> {
  /** Who usually requests it: the agent in its loop, or a person. The session decides what a caller's role may do. */
  readonly role: Exclude<SessionRole, 'observer'>;
  /** The summary of its route. Null: it has none, because it reads a file of this machine. */
  readonly route: string | null;
  readonly request: TObject<Properties>;
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

const operation = <Properties extends TProperties>(
  role: SessionOperation['role'],
  route: string | null,
  properties: Properties,
): SessionOperation<Properties> => ({ role, route, request: Type.Object(properties, closed) });

export const SESSION_OPERATIONS = {
  next: operation('autonomy_runner', 'Report the outstanding step, and get the next one', {
    /** Untrusted value of an agent: the session validates it, and reports all mistakes at once. */
    last_step_result: Type.Optional(Type.Unknown()),
    heartbeat: Type.Optional(Type.Boolean({ description: 'Of next: you are alive.' })),
    context_usage_pct,
  }),
  replay: operation('autonomy_runner', 'Get the last answer again', {}),
  heartbeat: operation('autonomy_runner', 'Record that the agent is alive', {
    context_usage_pct,
    estimated_tokens_used: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  }),
  verify: operation('autonomy_runner', 'Run the command of the outstanding verification', { step_id: Id }),
  review: operation('autonomy_runner', 'Review the outstanding gate', { step_id: Id, phase_id: Id }),
  pause: operation('maintainer', 'Pause the session', { reason: Type.Optional(Type.String({ maxLength: 400 })) }),
  resume: operation('maintainer', 'Resume the session after a pause', {
    force: Type.Optional(Type.Boolean()),
    acknowledge: Type.Optional(Type.Object({ gate_attempt_id: Id, decision: OneOf(['pass', 'fail']) }, closed)),
  }),
  end: operation('maintainer', 'End the session permanently', override),
  rebase: operation('maintainer', null, { spec: SpecReference, force: Type.Optional(Type.Boolean()) }),
  waive: operation('maintainer', 'Waive a gate: mark it as satisfied although nothing has passed it', {
    ...override,
    phase_id: Id,
  }),
} as const;

export type SessionOperationName = keyof typeof SESSION_OPERATIONS;
export type RequestOf<Name extends SessionOperationName> = Static<(typeof SESSION_OPERATIONS)[Name]['request']>;

/** The table as a list, with the types of the requests erased. */
export const sessionOperations = Object.entries(SESSION_OPERATIONS) as readonly (readonly [
  SessionOperationName,
  SessionOperation,
])[];

/** Requests an operation. @param request an instance of the schema `request` of the operation */
export function callOperation(
  sessions: Sessions,
  name: SessionOperationName,
  session_id: string,
  request: object,
  by: SessionCaller,
): Promise<SessionAnswer> {
  return name === 'replay' ? sessions.replay(session_id, by) : sessions[name](session_id, request as never, by);
}
