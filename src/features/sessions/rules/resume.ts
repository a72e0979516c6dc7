// Resumes a paused or failed session: starts a new activation, and clears what had stopped the session (C74).

import type { CommandOf } from '../contract/session-records.js';
import type { SessionRole } from '../contract/session.js';
import type { NextStep, SessionAnswer } from '../contract/session-answer.js';
import { InvariantError } from '../../../core/errors.js';
import { sessionAnswer, rejectionAnswer } from './command-answer.js';
import { reopenGate } from './task-progress.js';
import { stepEventFields, recordRevocation, allocateRunId } from './issue-step.js';
import { activationId, FRESH_CONTEXT, type SessionState } from './session-state.js';
import { recordGateResult } from './apply-next.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn-builder.js';

type ResumeSessionCommand = CommandOf<'resume'>;

export function resume(state: SessionState, command: ResumeSessionCommand, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const rejection = rejectFailedSession(state, command) ?? acknowledgeGate(turn, command, context);
  if (rejection !== null) return turn.buildUnchanged(rejection);
  clearPauseCause(turn, context.role);
  activate(turn, context);
  turn.recordEvent(
    'resume',
    { run_id: activationId(turn.state) },
    { reason: state.pause_reason ?? state.failure_reason },
  );
  return turn.build(sessionAnswer(turn.state, { next_step: reissueStep(turn, context) }));
}

/** Only `force` leaves a failure. If the spec has changed, the session must be rebased to it first. */
function rejectFailedSession(state: SessionState, { force, spec }: ResumeSessionCommand): SessionAnswer | null {
  if (state.status !== 'failed') return null;
  const hasChanged = spec !== null && (!('structure_hash' in spec) || spec.structure_hash !== state.structure_hash);
  if (hasChanged) return rejectionAnswer(state, 'SPEC_REBASE_REQUIRED');
  return force ? null : rejectionAnswer(state, 'SESSION_UNRECOVERABLE', ['force is required']);
}

/** Records a maintainer's acknowledgement of a gate that waits for a person, for exactly that attempt (C72). */
function acknowledgeGate(
  turn: TurnBuilder,
  { acknowledge: acknowledgement }: ResumeSessionCommand,
  context: CommandContext,
): SessionAnswer | null {
  const { ack, evidence } = turn.state;
  if (ack === null) return acknowledgement === null ? null : rejectionAnswer(turn.state, 'INVALID_GATE_ACK');
  if (acknowledgement === null) return rejectionAnswer(turn.state, 'MANUAL_GATE_ACK_REQUIRED', [ack.gate_attempt_id]);
  if (context.role !== 'maintainer') return rejectionAnswer(turn.state, 'AUTHORIZATION');
  if (acknowledgement.gate_attempt_id !== ack.gate_attempt_id) return rejectionAnswer(turn.state, 'INVALID_GATE_ACK');
  const passed = acknowledgement.decision === 'pass';
  const verdict = evidence?.gate_attempt_id === ack.gate_attempt_id ? evidence.verdict : acknowledgement.decision;
  turn.set({ ack: null });
  turn.recordEvent('gate_acknowledged', { phase_id: ack.phase_id }, { ...acknowledgement });
  recordGateResult(turn, ack.phase_id, passed, context.time, { gate_attempt_id: ack.gate_attempt_id, verdict });
  return null;
}

/**
 * Starts a new orchestrator run and resets the limits per activation. Skips are reset only when a maintainer resumes;
 * otherwise a loop that pauses for its context and resumes itself could skip without limit.
 */
export function activate(turn: TurnBuilder, { role, time }: Pick<CommandContext, 'role' | 'time'>): void {
  const { activation, counters } = turn.state;
  const skips = role === 'maintainer' ? 0 : counters.skips;
  turn.set({
    status: 'running',
    pause_reason: null,
    failure_reason: null,
    activation: activation + 1,
    runs_started: 0,
    counters: { ...counters, tasks_completed: 0, skips },
    context: FRESH_CONTEXT,
    heartbeat_at: time,
  });
  turn.addOrder({ kind: 'open_activation', run_id: activationId(turn.state) });
}

/**
 * Prevents the cause of the pause from pausing the session again at once (F3). Call it while the session is still
 * paused.
 */
export function clearPauseCause(turn: TurnBuilder, role: SessionRole): void {
  const { counters, cycles, gates, pause_reason, settings } = turn.state;
  if (pause_reason === 'error_threshold') turn.set({ counters: { ...counters, consecutive_errors: 0 } });
  const isStopped =
    pause_reason === 'gate_failed' || (pause_reason === 'fidelity_cycle_limit' && !settings.auto_retry_fidelity_gate);
  // The gate is reviewed again, unless it was waived meanwhile (F2).
  if (isStopped && gates[cycles.phase_id]?.status === 'failed') {
    turn.set({ gates: reopenGate(gates, cycles.phase_id), evidence: null });
  }
  if (role === 'maintainer') turn.set({ cycles: { ...cycles, count: 0 } });
}

/** Gives the outstanding step another agent run and, if its reports were rejected, another proof. */
function reissueStep(turn: TurnBuilder, { vouch, time }: CommandContext): NextStep | null {
  const { outstanding } = turn.state;
  if (outstanding === null) return null;
  const { step_id } = outstanding.step;
  if (vouch.issue.step_id !== step_id) throw new InvariantError(`the input lacks the step proof of ${step_id}`);
  const run_id = allocateRunId(turn);
  const needsNewProof = outstanding.refused > 0;
  const issue = needsNewProof ? vouch.issue.issue : outstanding.issue;
  const step: NextStep = { ...outstanding.step, run_id, issue };
  const renewed = {
    ...outstanding,
    step,
    issue,
    proof_sha256: needsNewProof ? vouch.issue.proof_sha256 : outstanding.proof_sha256,
    issued_at: time,
    run_ids: [...outstanding.run_ids, run_id],
    refused: 0,
  };
  turn.set({ outstanding: renewed });
  const lane_id = step.lane_id ?? turn.state.agent.lane_id;
  turn.addOrder({ kind: 'start_agent', activation: activationId(turn.state), run_id, lane_id });
  turn.recordEvent('step_issued', stepEventFields(renewed), { issue, proof_sha256: renewed.proof_sha256, lane_id });
  return step;
}

/** The activation may not act at all: its policy has no valid pins. */
export function denyActivation(turn: Turn, context: Pick<CommandContext, 'actor' | 'role'>, rule_id: string): Turn {
  const failedTurn = new TurnBuilder(turn.state, context);
  recordRevocation(failedTurn);
  failedTurn.set({ status: 'failed', pause_reason: null, failure_reason: 'activation_denied', outstanding: null });
  failedTurn.recordEvent('fail', {}, { reason: 'activation_denied', rule_id });
  return failedTurn.build(rejectionAnswer(failedTurn.state, 'SESSION_UNRECOVERABLE', [rule_id]));
}

/**
 * Handles the end of an activation. If the session did not end it, it was ended from outside: the session stops and can
 * be resumed. A check requested too late to start is answered as such.
 * @returns null if nothing follows
 */
export function handleActivationEnd(
  state: SessionState,
  run_id: string,
  context: Pick<CommandContext, 'actor' | 'role'>,
): { readonly turn: Turn; readonly input_id: string | null } | null {
  const check = state.check?.run_id.startsWith(`${run_id}.`) === true ? state.check : null;
  const isLost = state.status === 'running' && run_id === activationId(state);
  if (check === null && !isLost) return null;
  const turn = new TurnBuilder(state, context);
  if (check !== null) {
    turn.set({ check: null });
    turn.recordEvent('check_failed', { step_id: check.step_id, run_id: check.run_id }, { kind: check.kind });
  }
  if (isLost) {
    turn.set({ status: 'paused', pause_reason: 'user' });
    turn.recordEvent('pause', { run_id }, { reason: 'user' });
  }
  return { turn: turn.build(rejectionAnswer(turn.state, 'CHECK_FAILED')), input_id: check?.input_id ?? null };
}
