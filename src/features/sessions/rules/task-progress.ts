// The progress of a session in its spec: the active phase, the tasks that can start, and the gates that block.

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
