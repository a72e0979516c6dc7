// Finds the next action of a session. The rules run in the fixed order of the contract, and the first one that applies
// decides.
//
//    6  the reported step had been silent for too long               pause step_stale
//    7  no agent was working, and no heartbeat came                  pause heartbeat_stale
//    8  limits: context, errors in a row, tasks, skips               pause context_limit, error_threshold, task_limit,
//                                                                          blocked
//    9  the phase's gate has failed too often                        pause fidelity_cycle_limit
//   10  no task of the phase can start                               pause blocked
//   11  the phase's work is done: the next verification              execute_verification
//   12  all verifications are done: the gate                         run_fidelity_gate, or pause gate_review_required
//   13  the gate has failed                                          address_fidelity_feedback, or pause gate_failed
//   15  a phase is finished                                          pause phase_complete
//       before another phase begins: the audit of earlier gates
//   16  the next task that can start                                 implement_task
//   17  everything is finished                                       complete_spec
//
// Rule 15 precedes rule 10: completed work comes before work still to do. Of the rules after it, at most one applies.
// Rules 0 to 5 precede the search for a step; they are in `judge-report.ts` and `apply-command.ts`.

import type { PauseReason, ReportedStepType } from '../contract/session.js';
import type { SessionErrorCode } from '../contract/session-answer.js';
import type { SpecPhase, SpecTask } from '../contract/session-spec.js';
import {
  auditGates,
  activePhase,
  gateOf,
  summarizeGates,
  hasSkippedTasks,
  isBlockedByGate,
  isPhaseFinished,
  hasSettledTasks,
  isStartable,
  hasEnforcedGate,
  pendingImplementTasks,
  pendingVerifyTasks,
} from './task-progress.js';
import type { SessionState } from './session-state.js';

export type NextAction =
  | {
      readonly kind: 'step';
      readonly type: ReportedStepType;
      readonly phase: SpecPhase;
      readonly task: SpecTask | null;
    }
  | { readonly kind: 'pause'; readonly reason: PauseReason; readonly phase: SpecPhase | null }
  | { readonly kind: 'complete' }
  /** The gates are not as the spec requires, so the session must neither continue nor end. */
  | { readonly kind: 'refuse'; readonly code: SessionErrorCode; readonly details: readonly string[] };

/** The conditions when the command arrived, before it was applied. */
export interface InitialConditions {
  readonly step_was_stale: boolean;
  readonly step_was_active: boolean;
  readonly heartbeat: 'alive' | 'late' | 'stale';
}

type NextActionRule = (state: SessionState, conditions: InitialConditions) => NextAction | null;

/** Requires a running session without an outstanding step. */
export function findNextAction(state: SessionState, conditions: InitialConditions): NextAction {
  for (const rule of RULES) {
    const action = rule(state, conditions);
    if (action !== null) return action;
  }
  return pauseAction(state, 'blocked');
}

const checkStaleStep: NextActionRule = (state, { step_was_stale }) =>
  step_was_stale ? pauseAction(state, 'step_stale') : null;

const checkStaleHeartbeat: NextActionRule = (state, { step_was_active, heartbeat }) =>
  heartbeat === 'stale' && !step_was_active ? pauseAction(state, 'heartbeat_stale') : null;

const checkLimits: NextActionRule = (state) => {
  const { settings, context, counters } = state;
  const maximums = settings.limits;
  if (context.pct >= maximums.context_threshold_pct) return pauseAction(state, 'context_limit');
  if (counters.consecutive_errors >= maximums.max_consecutive_errors) return pauseAction(state, 'error_threshold');
  if (counters.tasks_completed >= maximums.max_tasks_per_session)
    return hasWorkLeft(state) ? pauseAction(state, 'task_limit') : null;
  return counters.skips > maximums.max_skips ? pauseAction(state, 'blocked') : null;
};

/** A limit does not stop a session without remaining work. */
const hasWorkLeft = (state: SessionState): boolean =>
  !state.spec.phases.every((phase) => hasSettledTasks(state, phase));

const checkCycleLimit: NextActionRule = (state) => {
  const phase = activePhase(state);
  const { phase_id, count } = state.cycles;
  return phase !== null && phase.id === phase_id && count >= state.settings.limits.max_fidelity_review_cycles_per_phase
    ? pauseAction(state, 'fidelity_cycle_limit')
    : null;
};

/** A passed gate completes a phase; the session pauses then if the autonomy settings require it. */
const checkPhaseComplete: NextActionRule = (state) => {
  const { stop_on_phase_completion } = state.settings;
  if (!stop_on_phase_completion) return null;
  const { phases } = state.spec;
  const active = activePhase(state);
  const until = active === null ? phases.length : phases.indexOf(active);
  const finished = phases.slice(0, until).find(({ id }) => !state.phases_told.includes(id));
  if (finished === undefined) return null;
  return refuseFailedAudit(state, finished.id) ?? { kind: 'pause', reason: 'phase_complete', phase: finished };
};

const checkSpecComplete: NextActionRule = (state) => {
  if (!state.spec.phases.every((phase) => isPhaseFinished(state, phase))) return null;
  const { missing } = summarizeGates(state);
  if (missing.length > 0) return { kind: 'refuse', code: 'REQUIRED_GATE_UNSATISFIED', details: missing };
  return refuseFailedAudit(state, null) ?? { kind: 'complete' };
};

/** No work starts in a phase before the gates of earlier phases are as the spec requires (F18). */
const auditEarlierGates: NextActionRule = (state) => {
  const phase = activePhase(state);
  const before = phase === null ? undefined : state.spec.phases[state.spec.phases.indexOf(phase) - 1];
  return before === undefined ? null : refuseFailedAudit(state, before.id);
};

const selectImplementTask: NextActionRule = (state) => {
  const phase = activePhase(state);
  if (phase === null) return null;
  const pending = pendingImplementTasks(state, phase);
  if (pending.length === 0) return null;
  const task = pending.find((candidate) => isStartable(state, candidate));
  return task === undefined ? pauseAction(state, 'blocked') : { kind: 'step', type: 'implement_task', phase, task };
};

const selectVerifyTask: NextActionRule = (state) => {
  const phase = activePhase(state);
  if (phase === null || pendingImplementTasks(state, phase).length > 0) return null;
  const pending = pendingVerifyTasks(state, phase);
  if (pending.length === 0) return null;
  const task = pending.find((candidate) => isStartable(state, candidate));
  return task === undefined
    ? pauseAction(state, 'blocked')
    : { kind: 'step', type: 'execute_verification', phase, task };
};

const selectGateAction: NextActionRule = (state) => {
  const phase = activePhase(state);
  if (phase?.gate === undefined || !hasSettledTasks(state, phase) || !isBlockedByGate(state, phase)) return null;
  if (hasForbiddenSkips(state, phase)) return pauseAction(state, 'blocked');
  if (state.ack !== null) return pauseAction(state, 'gate_review_required');
  if (gateOf(state, phase).status === 'failed') {
    return state.settings.auto_retry_fidelity_gate
      ? { kind: 'step', type: 'address_fidelity_feedback', phase, task: null }
      : pauseAction(state, 'gate_failed');
  }
  // A review by a person has no step: the pause requests it (C72).
  if (phase.gate.reviewer === 'manual') return pauseAction(state, 'gate_review_required');
  return { kind: 'step', type: 'run_fidelity_gate', phase, task: null };
};

/** C73. A gate that blocks nothing does not block for skipped tasks either. */
const hasForbiddenSkips = (state: SessionState, phase: SpecPhase): boolean =>
  hasEnforcedGate(state, phase) && hasSkippedTasks(state, phase) && !state.settings.allow_skipped;

const RULES: readonly NextActionRule[] = [
  checkStaleStep,
  checkStaleHeartbeat,
  checkLimits,
  checkCycleLimit,
  checkPhaseComplete,
  auditEarlierGates,
  selectVerifyTask,
  selectGateAction,
  selectImplementTask,
  checkSpecComplete,
];

function refuseFailedAudit(state: SessionState, phase_id: string | null): NextAction | null {
  const findings = auditGates(state, phase_id);
  if (findings.length === 0) return null;
  const details = findings.map((finding) => `${finding.phase_id}: ${finding.problem}`);
  return { kind: 'refuse', code: 'GATE_AUDIT_FAILURE', details };
}

const pauseAction = (state: SessionState, reason: PauseReason): NextAction => ({
  kind: 'pause',
  reason,
  phase: activePhase(state),
});
