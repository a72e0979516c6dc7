// The progress of a session in its spec: the active phase, the tasks that can start, and the gates that block. The
// audit of gates relies on the spec and not on the session's status.

import { OVERRIDE_REASONS, type GatePolicy, type GateVerdict } from '../contract/session.js';
import {
  isVerifyTask,
  type ImplementTask,
  type SpecPhase,
  type SpecTask,
  type VerifyTask,
} from '../contract/session-spec.js';
import type { GateRecord, SessionState } from './session-state.js';

/** A task id may equal the name of a property that every object inherits. */
export const taskStatus = ({ tasks }: SessionState, id: string): 'completed' | 'skipped' | 'pending' =>
  (Object.hasOwn(tasks, id) ? tasks[id] : undefined) ?? 'pending';

export const isTaskSettled = (state: SessionState, { id }: SpecTask): boolean => taskStatus(state, id) !== 'pending';

/** A skipped task has no result that its dependents could use (C73). */
export const isStartable = (state: SessionState, { depends_on = [] }: SpecTask): boolean =>
  depends_on.every((id) => taskStatus(state, id) === 'completed');

const NO_GATE: GateRecord = {
  status: 'pending',
  verdict: null,
  gate_attempt_id: null,
  evaluated_at: null,
  waiver: null,
};

export const gateOf = ({ gates }: SessionState, { id }: SpecPhase): GateRecord =>
  (Object.hasOwn(gates, id) ? gates[id] : undefined) ?? NO_GATE;

export const hasRequiredGate = ({ gate }: SpecPhase): boolean => gate !== undefined && gate.required !== false;

/** A waived gate counts as satisfied everywhere (C72). */
export function hasSatisfiedGate(state: SessionState, phase: SpecPhase): boolean {
  const { status } = gateOf(state, phase);
  return status === 'passed' || status === 'waived';
}

export const hasEnforcedGate = ({ settings }: SessionState, phase: SpecPhase): boolean =>
  settings.enforce_gates && hasRequiredGate(phase);

/** Whether the gate keeps the session in this phase. A gate that need not pass blocks only until it is reviewed. */
export function isBlockedByGate(state: SessionState, phase: SpecPhase): boolean {
  if (phase.gate === undefined || hasSatisfiedGate(state, phase)) return false;
  return hasEnforcedGate(state, phase) || gateOf(state, phase).status === 'pending';
}

export const hasSettledTasks = (state: SessionState, phase: SpecPhase): boolean =>
  phase.tasks.every((task) => isTaskSettled(state, task));

export const isPhaseFinished = (state: SessionState, phase: SpecPhase): boolean =>
  hasSettledTasks(state, phase) && !isBlockedByGate(state, phase);

/** The first phase that is not finished; null if all are finished. */
export const activePhase = (state: SessionState): SpecPhase | null =>
  state.spec.phases.find((phase) => !isPhaseFinished(state, phase)) ?? null;

export const findPhase = ({ spec }: SessionState, phase_id: string): SpecPhase | null =>
  spec.phases.find(({ id }) => id === phase_id) ?? null;

/** The implementation tasks of a phase that are neither completed nor skipped, in spec order. */
export const pendingImplementTasks = (state: SessionState, { tasks }: SpecPhase): readonly ImplementTask[] =>
  tasks.filter((task): task is ImplementTask => !isVerifyTask(task) && !isTaskSettled(state, task));

export const pendingVerifyTasks = (state: SessionState, { tasks }: SpecPhase): readonly VerifyTask[] =>
  tasks.filter((task): task is VerifyTask => isVerifyTask(task) && !isTaskSettled(state, task));

export const hasSkippedTasks = (state: SessionState, phase: SpecPhase): boolean =>
  phase.tasks.some(({ id }) => taskStatus(state, id) === 'skipped');

/**
 * Counts the phases whose gate the session must satisfy and those whose gate it has satisfied, and lists the missing
 * ones.
 */
export function summarizeGates(state: SessionState) {
  const required = state.settings.enforce_gates ? state.spec.phases.filter(hasRequiredGate) : [];
  const satisfied = state.spec.phases.filter((phase) => phase.gate !== undefined && hasSatisfiedGate(state, phase));
  const missing = required.filter((phase) => !hasSatisfiedGate(state, phase));
  return { required: idsOf(required), satisfied: idsOf(satisfied), missing: idsOf(missing) };
}

const idsOf = (phases: readonly SpecPhase[]): string[] => phases.map(({ id }) => id);

export function findTask(
  { spec }: SessionState,
  task_id: string,
): { readonly phase: SpecPhase; readonly task: SpecTask } | null {
  for (const phase of spec.phases) {
    const task = phase.tasks.find(({ id }) => id === task_id);
    if (task !== undefined) return { phase, task };
  }
  return null;
}

/** Whether a verdict passes under a policy; null if a person must decide (C72). */
export function isPassingVerdict(policy: GatePolicy, verdict: GateVerdict): boolean | null {
  switch (policy) {
    case 'strict':
      return verdict === 'pass';
    case 'lenient':
      return verdict !== 'fail';
    case 'manual':
      return null;
  }
}

/** Marks the gate of this phase as pending, so that it is reviewed again. */
export const reopenGate = (gates: SessionState['gates'], phase_id: string): SessionState['gates'] =>
  Object.fromEntries(Object.entries(gates).filter(([id]) => id !== phase_id));

export interface GateAuditFinding {
  readonly phase_id: string;
  readonly problem: 'missing_record' | 'invalid_status' | 'tampered';
}

/**
 * Determines from the spec which gates must be satisfied up to and including `phase_id` (null: all), and checks the
 * records against them. It trusts neither the order of events nor a status alone.
 */
export function auditGates(state: SessionState, phase_id: string | null): readonly GateAuditFinding[] {
  const { phases } = state.spec;
  const last = phase_id === null ? phases.length - 1 : phases.findIndex(({ id }) => id === phase_id);
  return phases.slice(0, last + 1).flatMap((phase) => {
    if (!hasEnforcedGate(state, phase)) return [];
    const problem = Object.hasOwn(state.gates, phase.id) ? recordProblem(state, phase) : 'missing_record';
    return problem === null ? [] : [{ phase_id: phase.id, problem }];
  });
}

/** Checks that the rules could have produced the record: its reason or verdict must be one that the settings allow. */
function recordProblem(state: SessionState, phase: SpecPhase): GateAuditFinding['problem'] | null {
  const { status, waiver, gate_attempt_id, verdict } = gateOf(state, phase);
  const { allow_gate_waiver, gate_policy } = state.settings;
  if (status === 'waived') {
    return allow_gate_waiver && waiver !== null && OVERRIDE_REASONS.includes(waiver.reason_code) ? null : 'tampered';
  }
  if (status !== 'passed') return 'invalid_status';
  if (gate_attempt_id === null || verdict === null || waiver !== null) return 'tampered';
  // A person may pass a gate after any verdict of a reviewer.
  const isPassing = phase.gate?.reviewer === 'manual' ? null : isPassingVerdict(gate_policy, verdict);
  return isPassing === false ? 'tampered' : null;
}
