// `next`: judges and records the report, and finds the next action. One command is one transaction: it consumes the
// proof, counts the outcome and issues the next step together, or does none of it (C64).

import type { CommandOf } from '../contract/session-records.js';
import type { SessionAnswer } from '../contract/session-answer.js';
import type { GateEvidence } from '../contract/session.js';
import { type JsonObject, canonicalJson } from '../../../core/contract/json.js';
import { sessionAnswer, rejectionAnswer } from './command-answer.js';
import { stepEventFields, countFailedAttempt, createPauseStep, applyNextAction } from './issue-step.js';
import { updateContext, heartbeatStatus, isStepStale } from './agent-activity.js';
import { findNextAction, type InitialConditions } from './next-action.js';
import { findPhase, isPassingVerdict, reopenGate } from './task-progress.js';
import { judgeReport, type ReportRejection, type StepReport } from './judge-report.js';
import { mergeChangedFiles } from './review-order.js';
import {
  activationId,
  ANSWERS_CHARS_MAX,
  elapsedMs,
  CONSUMED_MAX,
  CONSUMED_MS,
  REPEAT_MS,
  type ConsumedProof,
  type OutstandingStep,
  type SessionState,
} from './session-state.js';
import { TurnBuilder, type CommandContext, type StepWork, type Turn } from './turn-builder.js';

type NextStepCommand = CommandOf<'next'>;

export function applyNextCommand(state: SessionState, command: NextStepCommand, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const repeated = findRepeatedAnswer(state, context, command);
  if (repeated !== null) return turn.buildUnchanged(repeated);
  // The step stays outstanding, and its report counts after a resume.
  if (state.status === 'paused' && context.report !== null)
    return turn.reject('INVALID_STATE_TRANSITION', ['last_step_result']);
  if (state.status !== 'running') return turn.buildUnchanged(notRunningAnswer(state));
  if (state.outstanding === null) {
    // No step is outstanding, so a report can only be an old one, or absent.
    if (context.report !== null) return rejectReport(turn, null, strayReportRejection(state, command, context));
    return advanceSession(turn, command, context, readInitialConditions(state, command, context.time), 0);
  }
  if (context.report === null) return turn.reject('STEP_RESULT_REQUIRED');
  return applyReport(turn, state.outstanding, context.report, command, context);
}

function applyReport(
  turn: TurnBuilder,
  outstanding: OutstandingStep,
  value: JsonObject,
  command: NextStepCommand,
  context: CommandContext,
): Turn {
  const { state } = turn;
  const judgement = judgeReport(state, value, factsOf(command, context));
  if (judgement.kind === 'repeated') return turn.buildUnchanged(JSON.parse(judgement.answer) as SessionAnswer);
  if (judgement.kind === 'refused') return rejectReport(turn, outstanding, judgement.refusal);
  if (context.work.busy || state.check !== null) return turn.buildUnchanged(rejectionAnswer(state, 'AGENT_BUSY'));
  const mediation = compareTouchedFiles(judgement.report, context.work);
  if (mediation.kind === 'unmediated' && context.work.refuses_unmediated) {
    return rejectReport(turn, outstanding, { code: 'AUTHORIZATION', details: ['files_touched'] });
  }
  turn.set({
    outstanding: null,
    changed: mergeChangedFiles(state.changed, outstanding.step.phase_id ?? '', context.work.touched),
    counters: { ...state.counters, steps_executed: state.counters.steps_executed + 1 },
  });
  turn.addOrder({ kind: 'end_agent', activation: activationId(state), run_id: outstanding.run_ids.at(-1) ?? '' });
  turn.recordEvent('step_consumed', stepEventFields(outstanding), {
    outcome: judgement.report.outcome,
    report_sha256: judgement.report_sha256,
    proof_sha256: outstanding.proof_sha256,
    mediation: mediation.kind,
    files_claimed: mediation.claimed,
    files_changed: mediation.changed,
    files_unseen: mediation.unseen,
  });
  recordOutcome(turn, outstanding, judgement.report, context.time);
  const advancedTurn = advanceSession(turn, command, context, readInitialConditions(state, command, context.time), 1);
  return recordConsumedProof(advancedTurn, outstanding, judgement.report_sha256, context.time);
}

/** The facts, besides the state, by which a report is judged. */
const factsOf = ({ proof_sha256 }: NextStepCommand, { vouch, time }: CommandContext) => ({
  proof_sha256,
  evidence_intact: vouch.evidence_intact,
  time,
});

/** The answer to a report that was accepted before, in any state of the session, while it may be repeated (C65). */
function findRepeatedAnswer(
  state: SessionState,
  context: CommandContext,
  command: NextStepCommand,
): SessionAnswer | null {
  const { report } = context;
  if (report === null || command.proof_sha256 === null) return null;
  if (!state.consumed.some(({ proof_sha256 }) => proof_sha256 === command.proof_sha256)) return null;
  const judgement = judgeReport(state, report, factsOf(command, context));
  return judgement.kind === 'repeated' ? (JSON.parse(judgement.answer) as SessionAnswer) : null;
}

function strayReportRejection(state: SessionState, command: NextStepCommand, context: CommandContext): ReportRejection {
  const judgement = judgeReport(state, context.report ?? {}, factsOf(command, context));
  return judgement.kind === 'refused' ? judgement.refusal : { code: 'STEP_MISMATCH', details: [] };
}

/** The step stays outstanding and its proof valid; too many rejections stop the session (C64). */
function rejectReport(
  turn: TurnBuilder,
  outstanding: OutstandingStep | null,
  { code, details }: ReportRejection,
): Turn {
  turn.recordEvent('step_refused', outstanding === null ? {} : stepEventFields(outstanding), {
    code,
    details: [...details],
  });
  if (outstanding !== null) countFailedAttempt(turn, outstanding);
  return turn.build(rejectionAnswer(turn.state, code, details));
}

/** The answer of a session that is not running: its status and the reason. */
export function notRunningAnswer(state: SessionState): SessionAnswer {
  switch (state.status) {
    case 'paused':
      return sessionAnswer(state, { next_step: createPauseStep(state) });
    case 'failed':
      return rejectionAnswer(
        state,
        state.failure_reason === 'spec_structure_changed' ? 'SPEC_REBASE_REQUIRED' : 'SESSION_UNRECOVERABLE',
      );
    default:
      return sessionAnswer(state);
  }
}

const readInitialConditions = (
  state: SessionState,
  { heartbeat }: NextStepCommand,
  time: string,
): InitialConditions => ({
  step_was_stale: isStepStale(state, time),
  step_was_active: state.outstanding !== null,
  heartbeat: heartbeat ? 'alive' : heartbeatStatus(state, time),
});

/** Rules 4 to 17: checks that the spec is unchanged, and finds the next action. */
function advanceSession(
  turn: TurnBuilder,
  command: NextStepCommand,
  context: CommandContext,
  conditions: InitialConditions,
  steps: number,
): Turn {
  const { spec, heartbeat, context_usage_pct } = command;
  const { limits } = turn.state.settings;
  turn.set({ context: updateContext(turn.state.context, context_usage_pct, steps, limits) });
  if (spec !== null && 'problem' in spec) return failSession(turn, 'spec_not_found');
  if (spec !== null && spec.structure_hash !== turn.state.structure_hash)
    return failSession(turn, 'spec_structure_changed');
  const action = findNextAction(turn.state, conditions);
  const warnings = conditions.heartbeat !== 'alive' && conditions.step_was_active ? ['HEARTBEAT_STALE'] : [];
  // A report or a heartbeat shows that the agent is alive.
  if (heartbeat || conditions.step_was_active || action.kind === 'step') turn.set({ heartbeat_at: context.time });
  return turn.build(applyNextAction(turn, action, context, warnings));
}

function failSession(turn: TurnBuilder, failure_reason: 'spec_not_found' | 'spec_structure_changed'): Turn {
  turn.set({ status: 'failed', failure_reason });
  turn.recordEvent('fail', {}, { reason: failure_reason });
  turn.addOrder({ kind: 'close_activation', activation: activationId(turn.state), reason: `failed:${failure_reason}` });
  return turn.build(notRunningAnswer(turn.state));
}

function recordOutcome(turn: TurnBuilder, outstanding: OutstandingStep, report: StepReport, time: string): void {
  const { state } = turn;
  const { counters } = state;
  const { outcome } = report;
  if (outstanding.type === 'run_fidelity_gate') {
    recordReview(turn, outstanding, time);
    return;
  }
  const errors = outcome === 'success' ? 0 : counters.consecutive_errors + (outcome === 'failure' ? 1 : 0);
  const skips = counters.skips + (outcome === 'skipped' ? 1 : 0);
  turn.set({ counters: { ...counters, consecutive_errors: errors, skips } });
  const { task_id, phase_id } = outstanding.step;
  if (task_id === null) {
    recordFeedback(turn, outcome, phase_id ?? '');
    return;
  }
  if (outcome === 'failure') return;
  const status = outcome === 'success' ? 'completed' : 'skipped';
  const tasks_completed = counters.tasks_completed + (outcome === 'success' ? 1 : 0);
  turn.set({ tasks: { ...state.tasks, [task_id]: status }, counters: { ...turn.state.counters, tasks_completed } });
}

/** Reviews again what was addressed; anything else must still be addressed. */
function recordFeedback(turn: TurnBuilder, outcome: StepReport['outcome'], phase_id: string): void {
  if (outcome !== 'success') return;
  turn.set({ gates: reopenGate(turn.state.gates, phase_id), evidence: null });
}

/** The report states only that the review was made; the evidence has its result, judged by policy. */
function recordReview(turn: TurnBuilder, outstanding: OutstandingStep, time: string): void {
  const { evidence, settings } = turn.state;
  const phase = findPhase(turn.state, outstanding.step.phase_id ?? '');
  if (evidence === null || phase === null) return;
  const passed = isPassingVerdict(settings.gate_policy, evidence.verdict);
  if (passed === null) {
    turn.set({ ack: { gate_attempt_id: evidence.gate_attempt_id, phase_id: phase.id } });
    return;
  }
  recordGateResult(turn, phase.id, passed, time, evidence);
}

/** Records that the gate of a phase has passed or failed, by policy or by a person's decision. */
export function recordGateResult(
  turn: TurnBuilder,
  phase_id: string,
  passed: boolean,
  time: string,
  { gate_attempt_id, verdict }: Pick<GateEvidence, 'verdict' | 'gate_attempt_id'>,
): void {
  const { gates, cycles } = turn.state;
  const status = passed ? 'passed' : 'failed';
  const count = cycles.phase_id === phase_id ? cycles.count + 1 : 1;
  turn.set({
    gates: { ...gates, [phase_id]: { status, verdict, gate_attempt_id, evaluated_at: time, waiver: null } },
    ...(passed ? { evidence: null } : { cycles: { phase_id, count } }),
  });
  turn.recordEvent(passed ? 'gate_passed' : 'gate_failed', { phase_id }, { gate_attempt_id, verdict });
}

interface Mediation {
  readonly kind: 'mediated' | 'unmediated' | 'none';
  readonly claimed: number;
  readonly changed: number;
  /** Files that the agent reports as touched, but that no run of the step has changed. */
  readonly unseen: number;
}

/** Compares the files that the agent reports as touched with those that its runs have changed. */
function compareTouchedFiles({ files_touched = [] }: StepReport, { touched }: StepWork): Mediation {
  const changedFiles = new Set(touched.map(toSandboxRelative));
  const claimed = new Set(files_touched.map(toSandboxRelative));
  const unseen = [...claimed].filter((file) => !changedFiles.has(file)).length;
  const kind = unseen > 0 ? 'unmediated' : changedFiles.size > 0 ? 'mediated' : 'none';
  return { kind, claimed: claimed.size, changed: changedFiles.size, unseen };
}

const toSandboxRelative = (file: string): string => file.replace(/^(?:\/sandbox\/|\.\/)/, '');

/** Records the proof as used, and stores its answer in case the client did not receive it. */
function recordConsumedProof(
  turn: Turn,
  { proof_sha256, step }: OutstandingStep,
  report_sha256: string,
  time: string,
): Turn {
  const proof: ConsumedProof = {
    proof_sha256,
    step_id: step.step_id,
    report_sha256,
    consumed_at: time,
    answer: canonicalJson(turn.answer),
  };
  return { ...turn, state: { ...turn.state, consumed: pruneConsumedProofs([...turn.state.consumed, proof], time) } };
}

/** Drops expired proofs. Drops answers earlier, the oldest first, if they take too much space. */
function pruneConsumedProofs(consumed: readonly ConsumedProof[], time: string): readonly ConsumedProof[] {
  let left = ANSWERS_CHARS_MAX;
  return consumed
    .slice(-CONSUMED_MAX)
    .filter(({ consumed_at }) => elapsedMs(consumed_at, time) < REPEAT_MS + CONSUMED_MS)
    .toReversed()
    .map((proof) => {
      if (proof.answer === null) return proof;
      left -= proof.answer.length;
      return left < 0 || elapsedMs(proof.consumed_at, time) >= REPEAT_MS ? { ...proof, answer: null } : proof;
    })
    .reverse();
}
