// Builds the answers of a session. Every answer has the same members, computed from the state alone.

import type { LoopSignal } from '../contract/session.js';
import {
  SESSION_ERRORS,
  type ExitPacket,
  type NextStep,
  type SessionAnswer,
  type SessionData,
  type SessionErrorCode,
} from '../contract/session-answer.js';
import { activePhase, summarizeGates } from './task-progress.js';
import { loopSignal, recommendedActions } from './loop-signal.js';
import type { SessionState } from './session-state.js';

/** The parts of one answer that are not in the state. */
export interface AnswerParts {
  readonly next_step?: NextStep | null;
  readonly warnings?: readonly string[];
  readonly verification?: Pick<SessionData, 'verification_receipt' | 'output'>;
  readonly review?: SessionData['review'];
}

export const sessionAnswer = (state: SessionState, parts: AnswerParts = {}): SessionAnswer => ({
  success: true,
  data: dataOf(state, parts, null),
  error: null,
});

export function rejectionAnswer(
  state: SessionState,
  code: SessionErrorCode,
  details: readonly string[] = [],
  parts: AnswerParts = {},
): SessionAnswer {
  return { success: false, data: dataOf(state, parts, code), error: sessionError(code, details) };
}

/** The rejection of a command for which there is no session. */
export const rejectionWithoutSession = (code: SessionErrorCode, details: readonly string[] = []): SessionAnswer => ({
  success: false,
  data: null,
  error: sessionError(code, details),
});

const sessionError = (code: SessionErrorCode, details: readonly string[]) => ({
  code,
  error_type: SESSION_ERRORS[code].type,
  message: SESSION_ERRORS[code].message,
  details: [...details],
});

function dataOf(state: SessionState, parts: AnswerParts, error: SessionErrorCode | null): SessionData {
  const { session_id, spec, status, state_version, pause_reason, failure_reason } = state;
  const gates = summarizeGates(state);
  const signal = loopSignal(state, error);
  return {
    session_id,
    spec_id: spec.id,
    status,
    state_version,
    pause_reason,
    failure_reason,
    active_phase_id: activePhase(state)?.id ?? null,
    next_step: parts.next_step ?? null,
    required_phase_gates: gates.required,
    satisfied_gates: gates.satisfied,
    missing_required_gates: gates.missing,
    loop_signal: signal,
    recommended_actions: recommendedActions(state, error),
    warnings: [...(parts.warnings ?? [])],
    verification_receipt: null,
    output: null,
    ...parts.verification,
    review: parts.review ?? null,
    exit_packet: signal === null ? null : exitPacket(state, signal, error),
  };
}

/** S3-38, S3-40: everything that the successor of this agent must know. Its members are always the same. */
export const exitPacket = (
  state: SessionState,
  loop_signal: LoopSignal | null,
  error: SessionErrorCode | null,
): ExitPacket => ({
  spec_id: state.spec.id,
  session_id: state.session_id,
  final_status: state.status,
  loop_signal,
  pause_reason: state.pause_reason,
  active_phase_id: activePhase(state)?.id ?? null,
  last_step_id: state.outstanding?.step.step_id ?? state.last_step_id,
  gates_satisfied: summarizeGates(state).satisfied,
  steps_executed: state.counters.steps_executed,
  summary: summaryOf(state, error),
  details: {
    response_success: error === null,
    error_code: error,
    recommended_actions: recommendedActions(state, error),
  },
});

function summaryOf(state: SessionState, error: SessionErrorCode | null): string {
  const tasks = Object.values(state.tasks);
  const all = state.spec.phases.reduce((sum, phase) => sum + phase.tasks.length, 0);
  const skipped = tasks.filter((status) => status === 'skipped').length;
  const done = `${tasks.length - skipped} of ${all} tasks completed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  const reason = state.pause_reason ?? state.failure_reason;
  return `${state.status}${reason === null ? '' : ` (${reason})`}: ${done}${error === null ? '' : `; refused: ${error}`}`;
}
