// Verifications and reviews: the platform runs them itself, and binds each result to the step that it was made for
// (C68, C70).

import type { CommandOf } from '../contract/session-records.js';
import {
  GATE_FINDINGS_MAX,
  GATE_VERDICTS,
  GateEvidence,
  GateFinding,
  VerificationReceipt,
  type GateVerdict,
} from '../contract/session.js';
import { isJsonObject, type JsonObject } from '../../../core/contract/json.js';
import { isVerifyTask, VERIFY_CWD, VERIFY_TIMEOUT_SECONDS } from '../contract/session-spec.js';
import type { SessionAnswer } from '../contract/session-answer.js';
import { isConforming } from '../../../core/contract/validators.js';
import { sessionAnswer, rejectionAnswer } from './command-answer.js';
import { isPassingVerdict, findTask, findPhase } from './task-progress.js';
import { stepEventFields, countFailedAttempt, allocateRunId } from './issue-step.js';
import { reviewOrder } from './review-order.js';
import { activationId, nextAttemptId, type RunningCheck, type SessionState } from './session-state.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn-builder.js';

/** The two actions that only the platform executes, never an agent. */
export const RUN_VERIFICATION = 'RUN_VERIFICATION';
export const REVIEW_PHASE = 'REVIEW_PHASE';

/** The tools that a lane must list for the checks of a session (C68, C70). */
export const CHECK_TOOLS: Readonly<Record<string, string>> = {
  [RUN_VERIFICATION]: 'session.verify',
  [REVIEW_PHASE]: 'session.review',
};

export function startVerification(state: SessionState, command: CommandOf<'verify'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const { outstanding } = state;
  const task = outstanding === null ? null : findTask(state, outstanding.step.task_id ?? '')?.task;
  if (outstanding?.type !== 'execute_verification' || task == null || !isVerifyTask(task)) {
    return turn.reject('STEP_MISMATCH', ['no verification is outstanding']);
  }
  if (command.step_id !== outstanding.step.step_id) {
    return turn.reject('STEP_MISMATCH', ['step_id']);
  }
  const { cwd = VERIFY_CWD, timeout_seconds = VERIFY_TIMEOUT_SECONDS } = task;
  turn.set({ outstanding: { ...outstanding, receipt: null } });
  const args: JsonObject = {
    step_id: command.step_id,
    task_id: task.id,
    command: [...task.command],
    cwd,
    timeout_ms: timeout_seconds * 1_000,
  };
  return startCheck(turn, { kind: 'verify', gate_attempt_id: null, action: RUN_VERIFICATION, args }, context);
}

export function startReview(state: SessionState, command: CommandOf<'review'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const { outstanding } = state;
  const phase = findPhase(state, outstanding?.step.phase_id ?? '');
  if (outstanding?.type !== 'run_fidelity_gate' || phase?.gate === undefined) {
    return turn.reject('GATE_BLOCKED', ['no gate is outstanding']);
  }
  const differing = [
    ...(command.step_id === outstanding.step.step_id ? [] : ['step_id']),
    ...(command.phase_id === outstanding.step.phase_id ? [] : ['phase_id']),
  ];
  if (differing.length > 0) return turn.reject('STEP_MISMATCH', differing);
  const previousReview = existingReview(state, context);
  if (previousReview !== null) return turn.buildUnchanged(reviewAnswer(state, previousReview));
  const gate_attempt_id = nextAttemptId(state);
  const { gate } = phase;
  const { touched } = context.work;
  const args = reviewOrder(state, { phase: { ...phase, gate }, step_id: command.step_id, gate_attempt_id, touched });
  turn.set({ gate_attempts: state.gate_attempts + 1, evidence: null });
  return startCheck(turn, { kind: 'review', gate_attempt_id, action: REVIEW_PHASE, args }, context);
}

/**
 * The existing review of this step. A step is never reviewed twice: an agent that disagrees reports the review (C70,
 * C71).
 */
function existingReview({ evidence, outstanding }: SessionState, { vouch }: CommandContext): GateEvidence | null {
  const isThere = evidence !== null && evidence.step_id === outstanding?.step.step_id;
  return isThere && vouch.evidence_intact === true ? evidence : null;
}

interface CheckRequest extends Pick<RunningCheck, 'kind' | 'gate_attempt_id'> {
  readonly action: string;
  readonly args: JsonObject;
}

/** The answer waits for the run. Work that is still changing is not checked. */
function startCheck(turn: TurnBuilder, check: CheckRequest, { input_id, work }: CommandContext): Turn {
  const { kind, gate_attempt_id, action, args } = check;
  if (turn.state.check !== null || work.busy) return turn.buildUnchanged(rejectionAnswer(turn.state, 'AGENT_BUSY'));
  const run_id = allocateRunId(turn);
  const step_id = turn.state.outstanding?.step.step_id ?? '';
  turn.set({ check: { kind, run_id, input_id, step_id, gate_attempt_id } });
  turn.addOrder({ kind: 'start_check', activation: activationId(turn.state), run_id, act: { action, args } });
  return turn.build(null);
}

/** The outcome of a check's run. `result` is null if the run had none. */
export interface CheckResult {
  readonly run_id: string;
  readonly result: JsonObject | null;
  readonly time: string;
}

/** Null if the session does not wait for this run. */
export function applyCheckResult(
  state: SessionState,
  checkResult: CheckResult,
  caller: Pick<CommandContext, 'actor' | 'role'>,
) {
  const { check, outstanding } = state;
  if (check?.run_id !== checkResult.run_id) return null;
  const turn = new TurnBuilder(state, caller);
  turn.set({ check: null });
  const step = outstanding?.step.step_id === check.step_id ? outstanding : null;
  const answer = step === null ? null : answerCheck(turn, check, checkResult);
  if (answer !== null) return { input_id: check.input_id, turn: turn.build(answer) };
  const eventFields = step === null ? { step_id: check.step_id } : stepEventFields(step);
  turn.recordEvent('check_failed', { ...eventFields, run_id: checkResult.run_id }, { kind: check.kind });
  // A check that repeatedly has no result must not be retried forever.
  if (step !== null && state.status === 'running') countFailedAttempt(turn, step);
  return { input_id: check.input_id, turn: turn.build(rejectionAnswer(turn.state, 'CHECK_FAILED')) };
}

const answerCheck = (turn: TurnBuilder, check: RunningCheck, checkResult: CheckResult): SessionAnswer | null => {
  if (checkResult.result === null) return null;
  return check.kind === 'verify'
    ? applyVerificationResult(turn, checkResult.result, checkResult)
    : applyReviewResult(turn, check, checkResult.result, checkResult.time);
};

function applyVerificationResult(
  turn: TurnBuilder,
  result: JsonObject,
  { run_id, time }: CheckResult,
): SessionAnswer | null {
  const { outstanding } = turn.state;
  const { command_hash, exit_code, output_digest, output } = result;
  if (outstanding === null) return null;
  const { step_id } = outstanding.step;
  const receipt = { command_hash, exit_code, output_digest, issued_at: time, step_id };
  if (!isReceipt(receipt)) return null;
  turn.set({ outstanding: { ...outstanding, receipt } });
  turn.recordEvent('verification', { ...stepEventFields(outstanding), run_id }, { ...receipt });
  return sessionAnswer(turn.state, {
    verification: { verification_receipt: receipt, output: typeof output === 'string' ? output.toWellFormed() : null },
  });
}

function applyReviewResult(
  turn: TurnBuilder,
  check: RunningCheck,
  result: JsonObject,
  time: string,
): SessionAnswer | null {
  const { outstanding } = turn.state;
  const { verdict, findings, checksum } = result;
  if (outstanding === null || check.gate_attempt_id === null || typeof checksum !== 'string') return null;
  const evidence = {
    gate_attempt_id: check.gate_attempt_id,
    step_id: check.step_id,
    phase_id: outstanding.step.phase_id ?? '',
    // An invalid verdict does not pass.
    verdict: GATE_VERDICTS.find((known) => known === verdict) ?? ('fail' satisfies GateVerdict),
    findings: Array.isArray(findings) ? findings.filter(isRecordableFinding).slice(0, GATE_FINDINGS_MAX) : [],
    issued_at: time,
    checksum,
  };
  if (!isConforming(GateEvidence, evidence)) return null;
  turn.set({ evidence });
  const { gate_attempt_id } = evidence;
  turn.recordEvent(
    'gate_reviewed',
    { ...stepEventFields(outstanding), run_id: check.run_id },
    {
      gate_attempt_id,
      verdict: evidence.verdict,
      findings: evidence.findings.length,
      checksum,
    },
  );
  return reviewAnswer(turn.state, evidence);
}

function reviewAnswer(state: SessionState, { gate_attempt_id, verdict, findings }: GateEvidence): SessionAnswer {
  const { gate_policy } = state.settings;
  const gate_passed_preview = isPassingVerdict(gate_policy, verdict) === true;
  return sessionAnswer(state, { review: { gate_attempt_id, verdict, findings, gate_policy, gate_passed_preview } });
}

const isReceipt = (value: object): value is VerificationReceipt => isConforming(VerificationReceipt, value);

/** A text with invalid Unicode could not be recorded. */
const isRecordableFinding = (finding: unknown): finding is GateFinding =>
  isJsonObject(finding) &&
  isConforming(GateFinding, finding) &&
  Object.values(finding).every((member) => typeof member !== 'string' || member.isWellFormed());
