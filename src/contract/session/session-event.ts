import Type, { type Static } from 'typebox';
import { FAILURE_REASONS, PAUSE_REASONS, SESSION_ROLES, SESSION_STATUSES, STEP_TYPES } from './session.js';
import { Actor, closed, Nullable, OneOf, RunId, Timestamp } from '../shapes.js';

export const SESSION_EVENTS = [
  'start',
  'activation', // an orchestrator run was opened for the session
  'step_issued',
  'step_consumed', // a report was taken, and its proof with it
  'step_refused',
  'step_revoked', // an issued step counts no more
  'verification', // the platform has run a command: the receipt
  'gate_reviewed', // the evidence
  'gate_passed',
  'gate_failed',
  'gate_waived',
  'gate_acknowledged',
  'check_failed', // a verification or review that came to no result
  'heartbeat',
  'pause',
  'resume',
  'fail',
  'rebase',
  'override', // somebody asked for what the rules would not give
  'end',
  'spec_complete',
] as const;
export type SessionEventName = (typeof SESSION_EVENTS)[number];

/** One thing that happened in a session, as the ledger has it. */
export const SessionEvent = Type.Object(
  {
    session_id: RunId,
    event: OneOf(SESSION_EVENTS),
    timestamp_utc: Timestamp,
    /** What the session was after it. */
    status: OneOf(SESSION_STATUSES),
    state_version: Type.Integer({ minimum: 1 }),
    pause_reason: Nullable(OneOf(PAUSE_REASONS)),
    failure_reason: Nullable(OneOf(FAILURE_REASONS)),
    step_id: Nullable(Type.String({ maxLength: 160 })),
    step_type: Nullable(OneOf(STEP_TYPES)),
    task_id: Nullable(Type.String({ maxLength: 120 })),
    phase_id: Nullable(Type.String({ maxLength: 120 })),
    /** The orchestrator, agent or tool_gateway run that it is about. */
    run_id: Nullable(RunId),
    actor: Actor,
    role: OneOf(SESSION_ROLES),
    /** What else belongs to the event: codes, hashes, counters, never an agent's text. */
    detail: Type.Record(Type.String({ maxLength: 80 }), Type.Unknown()),
  },
  closed,
);
export type SessionEvent = Static<typeof SessionEvent>;
