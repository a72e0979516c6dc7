// A paused or failed session goes on: with a new activation, and with what had stopped it out of the way (C74).

import type { CommandOf } from '../contract/session-command.js';
import type { SessionRole } from '../contract/session.js';
import type { NextStep, SessionAnswer } from '../contract/session-answer.js';
import { InvariantError } from '../errors.js';
import { answerOf, refusalOf } from './answer.js';
import { reopened } from './gate.js';
import { aboutStep, sayRevoked, startRun } from './issue.js';
import { activationId, FRESH_CONTEXT, type SessionState } from './state.js';
import { evaluate } from './take-report.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn.js';

type Resume = CommandOf<'resume'>;

export function resume(state: SessionState, command: Resume, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const refused = stillFailed(state, command) ?? acknowledge(turn, command, context);
  if (refused !== null) return turn.unchanged(refused);
  clearCause(turn, context.role);
  activate(turn, context);
  turn.say('resume', { run_id: activationId(turn.state) }, { reason: state.pause_reason ?? state.failure_reason });
  return turn.done(answerOf(turn.state, { next_step: takeUp(turn, context) }));
}

/** A failure is left by force alone, and a spec that has changed not even so before the session is rebased to it. */
function stillFailed(state: SessionState, { force, spec }: Resume): SessionAnswer | null {
  if (state.status !== 'failed') return null;
  const differs = spec !== null && (!('structure_hash' in spec) || spec.structure_hash !== state.structure_hash);
  if (differs) return refusalOf(state, 'SPEC_REBASE_REQUIRED');
  return force ? null : refusalOf(state, 'SESSION_UNRECOVERABLE', ['force is required']);
}

/** A gate that waits for a person gets its answer, from a maintainer and for that very attempt (C72). */
function acknowledge(turn: TurnBuilder, { acknowledge: said }: Resume, context: CommandContext): SessionAnswer | null {
  const { ack, evidence } = turn.state;
  if (ack === null) return said === null ? null : refusalOf(turn.state, 'INVALID_GATE_ACK');
  if (said === null) return refusalOf(turn.state, 'MANUAL_GATE_ACK_REQUIRED', [ack.gate_attempt_id]);
  if (context.role !== 'maintainer') return refusalOf(turn.state, 'AUTHORIZATION');
  if (said.gate_attempt_id !== ack.gate_attempt_id) return refusalOf(turn.state, 'INVALID_GATE_ACK');
  const passed = said.decision === 'pass';
  const verdict = evidence?.gate_attempt_id === ack.gate_attempt_id ? evidence.verdict : said.decision;
  turn.set({ ack: null });
  turn.say('gate_acknowledged', { phase_id: ack.phase_id }, { ...said });
  evaluate(turn, ack.phase_id, passed, context.time, { gate_attempt_id: ack.gate_attempt_id, verdict });
  return null;
}

/**
 * A new orchestrator run, and the limits that count by activation from the start. Skips are counted until a maintainer
 * resumes: else a loop that pauses for its context, and resumes itself, could skip as much as it likes.
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
  turn.order({ kind: 'open_activation', run_id: activationId(turn.state) });
}

/** What paused the session must not pause it again at once (F3). To be called while it is still paused. */
export function clearCause(turn: TurnBuilder, role: SessionRole): void {
  const { counters, cycles, gates, pause_reason, settings } = turn.state;
  if (pause_reason === 'error_threshold') turn.set({ counters: { ...counters, consecutive_errors: 0 } });
  const isStopped =
    pause_reason === 'gate_failed' || (pause_reason === 'fidelity_cycle_limit' && !settings.auto_retry_fidelity_gate);
  // It is reviewed again, unless somebody has waived it meanwhile (F2).
  if (isStopped && gates[cycles.phase_id]?.status === 'failed') {
    turn.set({ gates: reopened(gates, cycles.phase_id), evidence: null });
  }
  if (role === 'maintainer') turn.set({ cycles: { ...cycles, count: 0 } });
}

/** The step that was outstanding gets another agent run; where its reports were refused, another proof as well. */
function takeUp(turn: TurnBuilder, { vouch, time }: CommandContext): NextStep | null {
  const { outstanding } = turn.state;
  if (outstanding === null) return null;
  const { step_id } = outstanding.step;
  if (vouch.issue.step_id !== step_id) throw new InvariantError(`the proof of ${step_id} was not made`);
  const run_id = startRun(turn);
  const again = outstanding.refused > 0;
  const issue = again ? vouch.issue.issue : outstanding.issue;
  const step: NextStep = { ...outstanding.step, run_id, issue };
  const renewed = {
    ...outstanding,
    step,
    issue,
    proof_sha256: again ? vouch.issue.proof_sha256 : outstanding.proof_sha256,
    issued_at: time,
    run_ids: [...outstanding.run_ids, run_id],
    refused: 0,
  };
  turn.set({ outstanding: renewed });
  const lane_id = step.lane_id ?? turn.state.agent.lane_id;
  turn.order({ kind: 'start_agent', activation: activationId(turn.state), run_id, lane_id });
  turn.say('step_issued', aboutStep(renewed), { issue, proof_sha256: renewed.proof_sha256, lane_id });
  return step;
}

/** The activation may not act at all: its policy has no valid pins. */
export function denyActivation(turn: Turn, context: Pick<CommandContext, 'actor' | 'role'>, rule_id: string): Turn {
  const denied = new TurnBuilder(turn.state, context);
  sayRevoked(denied);
  denied.set({ status: 'failed', pause_reason: null, failure_reason: 'activation_denied', outstanding: null });
  denied.say('fail', {}, { reason: 'activation_denied', rule_id });
  return denied.done(refusalOf(denied.state, 'SESSION_UNRECOVERABLE', [rule_id]));
}

/**
 * An activation has ended. Where nobody had closed it, somebody has ended it from outside: the session stops, and can
 * be resumed. A check that it was asked for in its last moments was never begun: whoever waits for that is told so.
 * @returns null where nothing follows
 */
export function afterActivation(
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
    turn.say('check_failed', { step_id: check.step_id, run_id: check.run_id }, { kind: check.kind });
  }
  if (isLost) {
    turn.set({ status: 'paused', pause_reason: 'user' });
    turn.say('pause', { run_id }, { reason: 'user' });
  }
  return { turn: turn.done(refusalOf(turn.state, 'CHECK_FAILED')), input_id: check?.input_id ?? null };
}
