// Applies the next action: issues a step, or pauses, completes or stops the session.

import type { GateFinding, PauseReason } from '../contract/session.js';
import type { NextStep, SessionAnswer } from '../contract/session-answer.js';
import type { SpecPhase } from '../contract/session-spec.js';
import { stepPacket } from '../contract/step-packet.js';
import { InvariantError } from '../../../core/errors.js';
import { sessionAnswer, rejectionAnswer } from './command-answer.js';
import type { NextAction } from './next-action.js';
import { activePhase } from './task-progress.js';
import { activationId, nextAttemptId, nextStepId, type OutstandingStep, type SessionState } from './session-state.js';
import type { CommandContext, TurnBuilder } from './turn-builder.js';

export function applyNextAction(
  turn: TurnBuilder,
  action: NextAction,
  context: CommandContext,
  warnings: readonly string[],
): SessionAnswer {
  switch (action.kind) {
    case 'step':
      return sessionAnswer(turn.state, { next_step: issueStep(turn, action, context), warnings });
    case 'pause':
      return pauseSession(turn, action.reason, action.phase?.id ?? null, warnings);
    case 'complete':
      return completeSpec(turn, warnings);
    case 'refuse':
      turn.recordEvent('step_refused', {}, { code: action.code, details: [...action.details] });
      return rejectionAnswer(turn.state, action.code, action.details, { warnings });
  }
}

type StepAction = Extract<NextAction, { readonly kind: 'step' }>;

/** Issues a step with an agent run of its own, and the hash of its proof (C65, D10). */
function issueStep(turn: TurnBuilder, { type, phase, task }: StepAction, { vouch, time }: CommandContext): NextStep {
  const { state } = turn;
  const step_id = nextStepId(state);
  if (vouch.issue.step_id !== step_id) throw new InvariantError(`the input lacks the step proof of ${step_id}`);
  const lane_id = task?.lane ?? state.agent.lane_id;
  const run_id = allocateRunId(turn);
  const findings = type === 'address_fidelity_feedback' ? findingsOf(state, phase) : [];
  const { session_id, spec } = state;
  const packetBase = { session_id, spec_id: spec.id, step_id, type, phase, task, run_id, lane_id, findings };
  const step = stepPacket({ ...packetBase, issue: vouch.issue.issue });
  const { issue, proof_sha256 } = vouch.issue;
  const outstanding: OutstandingStep = {
    type,
    step,
    issue,
    proof_sha256,
    issued_at: time,
    run_ids: [run_id],
    receipt: null,
    refused: 0,
  };
  const cycles = state.cycles.phase_id === phase.id ? state.cycles : { phase_id: phase.id, count: 0 };
  turn.set({ outstanding, cycles, steps_issued: state.steps_issued + 1, last_step_id: step_id });
  turn.addOrder({ kind: 'start_agent', activation: activationId(state), run_id, lane_id });
  turn.recordEvent('step_issued', stepEventFields(outstanding), { issue, proof_sha256, lane_id });
  return step;
}

/** The findings of this phase's review; a review by a person has none. */
const findingsOf = ({ evidence }: SessionState, { id }: SpecPhase): readonly GateFinding[] =>
  evidence?.phase_id === id ? evidence.findings : [];

/** The id of the next run of this activation. */
export function allocateRunId(turn: TurnBuilder): string {
  const runs_started = turn.state.runs_started + 1;
  turn.set({ runs_started });
  return `${activationId(turn.state)}.${runs_started}`;
}

/** The fields of an event about a step. */
export const stepEventFields = ({ step, type, run_ids }: OutstandingStep) => ({
  step_id: step.step_id,
  step_type: type,
  task_id: step.task_id,
  phase_id: step.phase_id,
  run_id: run_ids.at(-1) ?? null,
});

/** Pauses the session: its activation ends, and an outstanding step stays outstanding. No proof is returned (C66). */
function pauseSession(
  turn: TurnBuilder,
  reason: PauseReason,
  phase_id: string | null,
  warnings: readonly string[] = [],
): SessionAnswer {
  enterPause(turn, reason, phase_id);
  return sessionAnswer(turn.state, { next_step: createPauseStep(turn.state), warnings });
}

export function enterPause(turn: TurnBuilder, reason: PauseReason, phase_id: string | null): void {
  if (reason === 'gate_review_required' && turn.state.ack === null && phase_id !== null) {
    const gate_attempt_id = nextAttemptId(turn.state);
    turn.set({ ack: { gate_attempt_id, phase_id }, gate_attempts: turn.state.gate_attempts + 1 });
  }
  if (reason === 'phase_complete' && phase_id !== null) {
    turn.set({ phases_told: [...turn.state.phases_told, phase_id] });
  }
  turn.set({ status: 'paused', pause_reason: reason });
  turn.recordEvent('pause', { phase_id }, { reason, ...(turn.state.ack === null ? {} : { ...turn.state.ack }) });
  turn.addOrder({ kind: 'close_activation', activation: activationId(turn.state), reason: `paused:${reason}` });
}

/** Counts a failed attempt at the step; too many stop the session (C64). */
export function countFailedAttempt(turn: TurnBuilder, outstanding: OutstandingStep): void {
  const refused = outstanding.refused + 1;
  turn.set({ outstanding: { ...outstanding, refused } });
  if (refused < turn.state.settings.limits.max_refused_reports) return;
  enterPause(turn, 'blocked', outstanding.step.phase_id);
}

/** The answer of a paused session, the same each time. */
export function createPauseStep(state: SessionState): NextStep {
  const reason = state.pause_reason ?? 'user';
  const attempt = state.ack === null ? '' : ` The gate that waits is ${state.ack.gate_attempt_id}.`;
  return {
    ...unreportedStepFields(state),
    type: 'pause',
    phase_id: pausedPhaseId(state),
    instruction: `The session has paused: ${reason}.${attempt} Stop, and hand on the exit packet; do not go on.`,
    reason,
  };
}

/** The phase that was just completed, or the active one. */
function pausedPhaseId(state: SessionState): string | null {
  if (state.pause_reason === 'phase_complete') return state.phases_told.at(-1) ?? null;
  return state.outstanding?.step.phase_id ?? activePhase(state)?.id ?? null;
}

/** Revokes a step: it can no longer be reported, and its run ends. */
export function revokeStep(turn: TurnBuilder): void {
  const { outstanding } = turn.state;
  if (outstanding === null) return;
  recordRevocation(turn);
  const run_id = outstanding.run_ids.at(-1) ?? '';
  const activation = activationId(turn.state);
  if (turn.state.status === 'running') turn.addOrder({ kind: 'end_agent', activation, run_id });
}

/** Records the revocation only: the runs of the session end anyway. */
export function recordRevocation(turn: TurnBuilder): void {
  const { outstanding } = turn.state;
  if (outstanding === null) return;
  turn.recordEvent('step_revoked', stepEventFields(outstanding));
  turn.set({ outstanding: null });
}

function completeSpec(turn: TurnBuilder, warnings: readonly string[]): SessionAnswer {
  turn.set({ status: 'completed' });
  turn.recordEvent('spec_complete', {}, { steps_executed: turn.state.counters.steps_executed });
  turn.addOrder({ kind: 'close_activation', activation: activationId(turn.state), reason: 'completed' });
  const next_step: NextStep = {
    ...unreportedStepFields(turn.state),
    type: 'complete_spec',
    phase_id: null,
    instruction: 'The spec is fully implemented. Stop, and return the exit packet.',
    reason: null,
  };
  return sessionAnswer(turn.state, { next_step, warnings });
}

const unreportedStepFields = (state: SessionState) => ({
  step_id: nextStepId(state),
  task_id: null,
  task_title: null,
  instructions: [],
  run_id: null,
  lane_id: null,
  findings: [],
});
