// `next`: what was reported is judged and recorded, and what comes next is found. One command, one transaction: the
// proof is used up, the outcome counted and the next step issued together, or nothing of it (C64).

import type { CommandOf } from '../contract/session-command.js';
import type { SessionAnswer } from '../contract/session-answer.js';
import { canonicalJson } from '../contract/canonical-json.js';
import type { JsonObject } from '../contract/json.js';
import { answerOf, refusalOf } from './answer.js';
import { gateRecord, passes, reopened, withFailedCycle } from './gate.js';
import { aboutStep, countInVain, pauseStep, take } from './issue.js';
import { contextAfter, heartbeatOf, isStepStale } from './limits.js';
import { nextStep, type Entering } from './next-step.js';
import { phaseOf } from './progress.js';
import type { StepReport } from '../contract/session-report.js';
import { judgeReport, type Refusal } from './report.js';
import { withFiles } from './review-order.js';
import {
  activationId,
  ANSWERS_CHARS_MAX,
  between,
  CONSUMED_MAX,
  CONSUMED_MS,
  REPEAT_MS,
  type ConsumedProof,
  type OutstandingStep,
  type SessionState,
} from './state.js';
import { TurnBuilder, type CommandContext, type StepWork, type Turn } from './turn.js';

type Next = CommandOf<'next'>;

export function takeNext(state: SessionState, command: Next, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const repeated = repeatedAnswer(state, context, command);
  if (repeated !== null) return turn.unchanged(repeated);
  if (state.status !== 'running') return turn.unchanged(notRunning(state));
  if (state.outstanding === null) {
    // Nobody was told anything that could be reported: a report can only be an old one, or none.
    if (context.report !== null) return reportRefused(turn, null, refusalOfStray(state, command, context));
    return goOn(turn, command, context, entering(state, command, context.time), 0);
  }
  if (context.report === null) return turn.unchanged(refusalOf(state, 'STEP_RESULT_REQUIRED'));
  return withReport(turn, state.outstanding, context.report, command, context);
}

function withReport(
  turn: TurnBuilder,
  outstanding: OutstandingStep,
  value: JsonObject,
  command: Next,
  context: CommandContext,
): Turn {
  const { state } = turn;
  const judged = judgeReport(state, value, factsOf(command, context));
  if (judged.kind === 'repeated') return turn.unchanged(JSON.parse(judged.answer) as SessionAnswer);
  if (judged.kind === 'refused') return reportRefused(turn, outstanding, judged.refusal);
  if (context.work.busy || state.check !== null) return turn.unchanged(refusalOf(state, 'AGENT_BUSY'));
  const mediation = mediationOf(judged.report, context.work);
  if (mediation.kind === 'unmediated' && context.work.refuses_unmediated) {
    return reportRefused(turn, outstanding, { code: 'AUTHORIZATION', details: ['files_touched'] });
  }
  turn.set({
    outstanding: null,
    changed: withFiles(state.changed, outstanding.step.phase_id ?? '', context.work.touched),
    counters: { ...state.counters, steps_executed: state.counters.steps_executed + 1 },
  });
  turn.order({ kind: 'end_agent', activation: activationId(state), run_id: outstanding.run_ids.at(-1) ?? '' });
  turn.say('step_consumed', aboutStep(outstanding), {
    outcome: judged.report.outcome,
    report_sha256: judged.report_sha256,
    proof_sha256: outstanding.proof_sha256,
    mediation: mediation.kind,
    files_claimed: mediation.claimed,
    files_changed: mediation.changed,
    files_unseen: mediation.unseen,
  });
  recordOutcome(turn, outstanding, judged.report, context.time);
  const turned = goOn(turn, command, context, entering(state, command, context.time), 1);
  return withConsumed(turned, outstanding, judged.report_sha256, context.time);
}

/** What the report is judged by, beside the state. */
const factsOf = ({ proof_sha256 }: Next, { vouch, time }: CommandContext) => ({
  proof_sha256,
  evidence_intact: vouch.evidence_intact,
  time,
});

/** Of a report that was taken before, whatever the session is by now: its answer, while that may be given (C65). */
function repeatedAnswer(state: SessionState, context: CommandContext, command: Next): SessionAnswer | null {
  const { report } = context;
  if (report === null || command.proof_sha256 === null) return null;
  if (!state.consumed.some(({ proof_sha256 }) => proof_sha256 === command.proof_sha256)) return null;
  const judged = judgeReport(state, report, factsOf(command, context));
  return judged.kind === 'repeated' ? (JSON.parse(judged.answer) as SessionAnswer) : null;
}

function refusalOfStray(state: SessionState, command: Next, context: CommandContext): Refusal {
  const judged = judgeReport(state, context.report ?? {}, factsOf(command, context));
  return judged.kind === 'refused' ? judged.refusal : { code: 'STEP_MISMATCH', details: [] };
}

/** The step stays open and its proof good; too many of these stop the session (C64). */
function reportRefused(turn: TurnBuilder, outstanding: OutstandingStep | null, { code, details }: Refusal): Turn {
  turn.say('step_refused', outstanding === null ? {} : aboutStep(outstanding), { code, details: [...details] });
  if (outstanding !== null) countInVain(turn, outstanding);
  return turn.done(refusalOf(turn.state, code, details));
}

/** A session that is not running tells what it is, and why. */
export function notRunning(state: SessionState): SessionAnswer {
  switch (state.status) {
    case 'paused':
      return answerOf(state, { next_step: pauseStep(state) });
    case 'failed':
      return refusalOf(
        state,
        state.failure_reason === 'spec_structure_changed' ? 'SPEC_REBASE_REQUIRED' : 'SESSION_UNRECOVERABLE',
      );
    default:
      return answerOf(state);
  }
}

const entering = (state: SessionState, { heartbeat }: Next, time: string): Entering => ({
  step_was_stale: isStepStale(state, time),
  step_was_active: state.outstanding !== null,
  heartbeat: heartbeat ? 'alive' : heartbeatOf(state, time),
});

/** Rules 4 to 17: is the spec what it was, and what comes next? */
function goOn(turn: TurnBuilder, command: Next, context: CommandContext, before: Entering, steps: number): Turn {
  const { spec, heartbeat, context_usage_pct } = command;
  const { limits } = turn.state.settings;
  turn.set({ context: contextAfter(turn.state.context, context_usage_pct, steps, limits) });
  if (spec !== null && 'problem' in spec) return fail(turn, 'spec_not_found');
  if (spec !== null && spec.structure_hash !== turn.state.structure_hash) return fail(turn, 'spec_structure_changed');
  const next = nextStep(turn.state, before);
  const warnings = before.heartbeat !== 'alive' && before.step_was_active ? ['HEARTBEAT_STALE'] : [];
  // Whoever reports, or says so, is there.
  if (heartbeat || before.step_was_active || next.kind === 'step') turn.set({ heartbeat_at: context.time });
  return turn.done(take(turn, next, context, warnings));
}

function fail(turn: TurnBuilder, failure_reason: 'spec_not_found' | 'spec_structure_changed'): Turn {
  turn.set({ status: 'failed', failure_reason });
  turn.say('fail', {}, { reason: failure_reason });
  turn.order({ kind: 'close_activation', activation: activationId(turn.state), reason: `failed:${failure_reason}` });
  return turn.done(notRunning(turn.state));
}

function recordOutcome(turn: TurnBuilder, outstanding: OutstandingStep, report: StepReport, time: string): void {
  const { state } = turn;
  const { counters } = state;
  const { outcome } = report;
  if (outstanding.type === 'run_fidelity_gate') {
    recordGate(turn, outstanding, time);
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

/** What was addressed is reviewed again; what was not is still to be addressed. */
function recordFeedback(turn: TurnBuilder, outcome: StepReport['outcome'], phase_id: string): void {
  if (outcome !== 'success') return;
  turn.set({ gates: reopened(turn.state.gates, phase_id), evidence: null });
}

/** The report says only that the review was made: what came of it stands in the evidence, judged by policy. */
function recordGate(turn: TurnBuilder, outstanding: OutstandingStep, time: string): void {
  const { evidence, settings } = turn.state;
  const phase = phaseOf(turn.state, outstanding.step.phase_id ?? '');
  if (evidence === null || phase === null) return;
  const passed = passes(settings.gate_policy, evidence.verdict);
  if (passed === null) {
    turn.set({ ack: { gate_attempt_id: evidence.gate_attempt_id, phase_id: phase.id } });
    return;
  }
  evaluate(turn, phase.id, passed, time, evidence);
}

/** The gate of a phase has passed or failed, by policy or by a person's word. */
export function evaluate(
  turn: TurnBuilder,
  phase_id: string,
  passed: boolean,
  time: string,
  evidence: Parameters<typeof gateRecord>[1],
): void {
  const record = gateRecord(passed ? 'passed' : 'failed', evidence, time);
  turn.set({
    gates: { ...turn.state.gates, [phase_id]: record },
    ...(passed ? { evidence: null } : { cycles: withFailedCycle(turn.state, phase_id) }),
  });
  const { gate_attempt_id, verdict } = evidence;
  turn.say(passed ? 'gate_passed' : 'gate_failed', { phase_id }, { gate_attempt_id, verdict });
}

interface Mediation {
  readonly kind: 'mediated' | 'unmediated' | 'none';
  readonly claimed: number;
  readonly changed: number;
  /** Files that the agent says it has touched, and that no run of the step has changed. */
  readonly unseen: number;
}

/** Holds what the agent says it has touched against what its runs have really changed. */
function mediationOf({ files_touched = [] }: StepReport, { touched }: StepWork): Mediation {
  const seen = new Set(touched.map(relative));
  const claimed = new Set(files_touched.map(relative));
  const unseen = [...claimed].filter((file) => !seen.has(file)).length;
  const kind = unseen > 0 ? 'unmediated' : seen.size > 0 ? 'mediated' : 'none';
  return { kind, claimed: claimed.size, changed: seen.size, unseen };
}

const relative = (file: string): string => file.replace(/^(?:\/sandbox\/|\.\/)/, '');

/** The proof is used up; its answer is kept for whoever did not get it. */
function withConsumed(turn: Turn, { proof_sha256, step }: OutstandingStep, report_sha256: string, time: string): Turn {
  const proof: ConsumedProof = {
    proof_sha256,
    step_id: step.step_id,
    report_sha256,
    consumed_at: time,
    answer: canonicalJson(turn.answer),
  };
  return { ...turn, state: { ...turn.state, consumed: remembered([...turn.state.consumed, proof], time) } };
}

/** Proofs are forgotten with their time; answers earlier, and the oldest first where they are many and long. */
function remembered(consumed: readonly ConsumedProof[], time: string): readonly ConsumedProof[] {
  let left = ANSWERS_CHARS_MAX;
  return consumed
    .slice(-CONSUMED_MAX)
    .filter(({ consumed_at }) => between(consumed_at, time) < REPEAT_MS + CONSUMED_MS)
    .toReversed()
    .map((proof) => {
      if (proof.answer === null) return proof;
      left -= proof.answer.length;
      return left < 0 || between(proof.consumed_at, time) >= REPEAT_MS ? { ...proof, answer: null } : proof;
    })
    .reverse();
}
