import Type, { type Static } from 'typebox';
import { FAILURE_REASONS, PAUSE_REASONS, SESSION_ROLES, SESSION_STATUSES, STEP_TYPES } from './session.js';
import { Actor, closed, Nullable, OneOf, RunId, Timestamp } from '../../../core/contract/shapes.js';

export const SESSION_EVENTS = [
  'start',
  'activation', // an orchestrator run was opened for the session
  'step_issued',
  'step_consumed', // a report was accepted and its step proof consumed
  'step_refused',
  'step_revoked', // an issued step was revoked
  'verification', // the platform ran a command: the receipt
  'gate_reviewed', // the evidence
  'gate_passed',
  'gate_failed',
  'gate_waived',
  'gate_acknowledged',
  'check_failed', // a verification or review that gave no result
  'heartbeat',
  'pause',
  'resume',
  'fail',
  'rebase',
  'override', // a person overrode the rules
  'end',
  'spec_complete',
] as const;
export type SessionEventName = (typeof SESSION_EVENTS)[number];

/** One event of a session, as the ledger records it. */
export const SessionEvent = Type.Object(
  {
    feature: Type.Literal('sessions'),
    session_id: RunId,
    event: OneOf(SESSION_EVENTS),
    timestamp_utc: Timestamp,
    /** The status of the session after the event. */
    status: OneOf(SESSION_STATUSES),
    state_version: Type.Integer({ minimum: 1 }),
    pause_reason: Nullable(OneOf(PAUSE_REASONS)),
    failure_reason: Nullable(OneOf(FAILURE_REASONS)),
    step_id: Nullable(Type.String({ maxLength: 160 })),
    step_type: Nullable(OneOf(STEP_TYPES)),
    task_id: Nullable(Type.String({ maxLength: 120 })),
    phase_id: Nullable(Type.String({ maxLength: 120 })),
    /** The orchestrator, agent or tool_gateway run that the event is about. */
    run_id: Nullable(RunId),
    actor: Actor,
    role: OneOf(SESSION_ROLES),
    /** Further data of the event: codes, hashes, counters, never an agent's text. */
    detail: Type.Record(Type.String({ maxLength: 80 }), Type.Unknown()),
  },
  closed,
);
export type SessionEvent = Static<typeof SessionEvent>;

declare module '../../../core/contract/run/entry.js' {
  interface FeatureEntries {
    readonly session_event: SessionEvent;
  }
}
