// Decides which role may send a session which command, and in which state; then applies the command: a pure function
// from the old state to the new one, with its events and its orders to the runs.

import type { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import type { JsonObject } from '../../../core/contract/json.js';
import type { CommandOf, SessionCommand, SessionCommandName } from '../contract/session-records.js';
import {
  SESSION_ROLES,
  SESSION_STATUSES,
  type PauseReason,
  type SessionRole,
  type SessionStatus,
} from '../contract/session.js';
import type { SessionErrorCode } from '../contract/session-answer.js';
import { sessionAnswer, rejectionAnswer } from './command-answer.js';
import { startReview, startVerification } from './checks.js';
import { enterPause, revokeStep, recordRevocation } from './issue-step.js';
import { updateContext } from './agent-activity.js';
import { gateOf, hasSatisfiedGate, findPhase } from './task-progress.js';
import { rebaseSession } from './rebase-session.js';
import { resume } from './resume.js';
import { activationId, type SessionState } from './session-state.js';
import { notRunningAnswer, applyNextCommand } from './apply-next.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn-builder.js';

interface CommandRule<Name extends SessionCommandName> {
  readonly roles: readonly SessionRole[];
  readonly statuses: readonly SessionStatus[];
  readonly apply: (state: SessionState, command: CommandOf<Name>, context: CommandContext) => Turn;
}

const LOOP_ROLES = ['autonomy_runner', 'maintainer'] as const;
const PERSON_ROLES = ['maintainer'] as const;

export const COMMAND_RULES: { readonly [Name in SessionCommandName]: CommandRule<Name> } = {
  // `next` and `replay` report the state, whatever it is.
  next: { roles: LOOP_ROLES, statuses: SESSION_STATUSES, apply: applyNextCommand },
  replay: { roles: LOOP_ROLES, statuses: SESSION_STATUSES, apply: replay },
  heartbeat: { roles: LOOP_ROLES, statuses: ['running'], apply: heartbeat },
  verify: { roles: LOOP_ROLES, statuses: ['running'], apply: startVerification },
  review: { roles: LOOP_ROLES, statuses: ['running'], apply: startReview },
  pause: { roles: PERSON_ROLES, statuses: ['running'], apply: pause },
  resume: { roles: LOOP_ROLES, statuses: ['paused', 'failed'], apply: resume },
  rebase: { roles: PERSON_ROLES, statuses: ['paused', 'failed'], apply: rebaseSession },
  waive: { roles: PERSON_ROLES, statuses: ['running', 'paused'], apply: waive },
  end: { roles: PERSON_ROLES, statuses: ['running', 'paused', 'failed'], apply: end },
};

/** Pauses that end without a decision by a person. For any other pause, a maintainer must resume the session. */
const RUNNER_RESUMABLE: ReadonlySet<PauseReason> = new Set([
  'phase_complete',
  'context_limit',
  'task_limit',
  'heartbeat_stale',
  'step_stale',
]);

/** Fail closed: an unknown role may only read. */
export const toSessionRole = (role: string): SessionRole => SESSION_ROLES.find((known) => known === role) ?? 'observer';

/** Why a session rejects this command from this role now; null if it accepts it. */
function commandRejection(
  { status, pause_reason }: Pick<SessionState, 'status' | 'pause_reason'>,
  command: SessionCommandName,
  role: SessionRole,
): SessionErrorCode | null {
  const { roles, statuses } = COMMAND_RULES[command];
  if (!roles.includes(role)) return 'AUTHORIZATION';
  if (!statuses.includes(status)) return 'INVALID_STATE_TRANSITION';
  if (command !== 'resume' || role === 'maintainer') return null;
  return pause_reason !== null && RUNNER_RESUMABLE.has(pause_reason) ? null : 'AUTHORIZATION';
}

/**
 * Applies `command` to `state`, or rejects it.
 * @returns the new state, the answer to the caller, the events and the orders to the runs
 */
export function applyCommand(state: SessionState, command: SessionCommand, context: CommandContext): Turn {
  const rejection = commandRejection(state, command.name, context.role);
  if (rejection !== null) return new TurnBuilder(state, context).reject(rejection, [command.name]);
  // The rule of a command has its type.
  return COMMAND_RULES[command.name].apply(state, command as never, context);
}

/** Repeats the outstanding step as issued, for an agent that has lost it. */
function replay(state: SessionState, _command: CommandOf<'replay'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  if (state.status !== 'running') return turn.buildUnchanged(notRunningAnswer(state));
  return turn.buildUnchanged(
    state.outstanding === null
      ? rejectionAnswer(state, 'NOT_FOUND')
      : sessionAnswer(state, { next_step: state.outstanding.step }),
  );
}

function heartbeat(state: SessionState, command: CommandOf<'heartbeat'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const { context_usage_pct, estimated_tokens_used } = command;
  turn.set({ heartbeat_at: context.time });
  if (context_usage_pct !== null) {
    turn.set({ context: updateContext(state.context, context_usage_pct, 0, state.settings.limits) });
  }
  turn.recordEvent('heartbeat', {}, { context_usage_pct, estimated_tokens_used });
  return turn.build(sessionAnswer(turn.state));
}

/** Pauses the session as by a person, whatever the reason. An outstanding step stays outstanding. */
function pause(state: SessionState, _command: CommandOf<'pause'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  enterPause(turn, 'user', state.outstanding?.step.phase_id ?? null);
  return turn.build(sessionAnswer(turn.state));
}

function waive(state: SessionState, command: CommandOf<'waive'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const { phase_id, reason_code, reason_detail, note_ref } = command;
  const phase = findPhase(state, phase_id);
  if (!state.settings.allow_gate_waiver) return turn.reject('AUTHORIZATION', ['allow_gate_waiver']);
  if (phase?.gate === undefined) return turn.reject('NOT_FOUND', ['phase_id']);
  if (hasSatisfiedGate(state, phase)) return turn.reject('INVALID_STATE_TRANSITION', ['phase_id']);
  const waiver = { reason_code, reason_detail, at: context.time, by: context.actor.actor_id };
  turn.set({ gates: { ...state.gates, [phase_id]: { ...gateOf(state, phase), status: 'waived', waiver } } });
  if (state.ack?.phase_id === phase_id) turn.set({ ack: null });
  if (state.evidence?.phase_id === phase_id) turn.set({ evidence: null });
  const { outstanding } = state;
  if (outstanding !== null && outstanding.step.task_id === null && outstanding.step.phase_id === phase_id)
    revokeStep(turn);
  turn.recordEvent('gate_waived', { phase_id }, { reason_code, reason_detail, ...hashOf(note_ref) });
  return turn.build(sessionAnswer(turn.state));
}

function end(state: SessionState, command: CommandOf<'end'>, context: CommandContext): Turn {
  const { reason_code, reason_detail, note_ref } = command;
  const turn = new TurnBuilder(state, context);
  recordRevocation(turn);
  turn.set({ status: 'ended', pause_reason: null, failure_reason: null });
  turn.recordEvent('end', {}, { reason_code, reason_detail, ...hashOf(note_ref) });
  if (state.status === 'running') {
    turn.addOrder({ kind: 'close_activation', activation: activationId(turn.state), reason: `ended:${reason_code}` });
  }
  return turn.build(sessionAnswer(turn.state));
}

/** The hash of the free text that a person gave in addition to the code. */
const hashOf = (note: ArtifactRef | undefined): JsonObject =>
  note === undefined ? {} : { note_sha256: note.hash_sha256 };
