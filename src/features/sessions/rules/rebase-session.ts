// Continues a paused or failed session with another version of its spec. `planRebase` decides what stays completed and
// which phases must be checked again; `rebaseSession` applies the plan to the session.

import { type Json, canonicalJson } from '../../../core/contract/json.js';
import type { CommandOf } from '../contract/session-records.js';
import {
  isVerifyTask,
  VERIFY_CWD,
  VERIFY_TIMEOUT_SECONDS,
  type SessionSpec,
  type SpecPhase,
  type SpecTask,
} from '../contract/session-spec.js';
import { sessionAnswer } from './command-answer.js';
import { revokeStep } from './issue-step.js';
import { gateOf, isBlockedByGate, isPhaseFinished } from './task-progress.js';
import { activate, clearPauseCause } from './resume.js';
import { activationId, type GateRecord, type SessionState } from './session-state.js';
import { structureHash } from './spec/spec-structure.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn-builder.js';

export function rebaseSession(state: SessionState, command: CommandOf<'rebase'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const { force, spec_file } = command;
  const after = context.new_spec;
  if (after === null) return turn.reject('VALIDATION_ERROR', ['spec']);
  if (after.id !== state.spec.id) return turn.reject('VALIDATION_ERROR', ['spec id']);
  const rebase = planRebase({
    before: state.spec,
    after,
    completed: taskIdsWithStatus(state, 'completed'),
    skipped: taskIdsWithStatus(state, 'skipped'),
    satisfied: phasesNotBlocked(state),
    force,
  });
  if (rebase.kind === 'refused') return turn.reject(rebase.code, rebase.task_ids);
  revokeStep(turn);
  clearPauseCause(turn, context.role);
  applyPlan(turn, after, rebase.plan);
  turn.set({ spec_file });
  turn.recordEvent('rebase', {}, { change: rebase.kind, structure_hash: turn.state.structure_hash, forced: force });
  activate(turn, context);
  turn.recordEvent(
    'resume',
    { run_id: activationId(turn.state) },
    { reason: state.pause_reason ?? state.failure_reason },
  );
  return turn.build(sessionAnswer(turn.state, { warnings: rebase.kind === 'no_change' ? ['NO_CHANGE'] : [] }));
}

/**
 * Discards every review that has not passed. The phase must be reviewed again before a person acknowledges its gate or
 * the agent repairs findings, because those refer to the old spec.
 */
function applyPlan(turn: TurnBuilder, spec: SessionSpec, { structure_hash, completed, satisfied }: RebasePlan): void {
  const { gates, phases_told } = turn.state;
  const satisfiedIds = new Set(satisfied);
  turn.set({
    spec,
    structure_hash,
    evidence: null,
    ack: null,
    tasks: Object.fromEntries(completed.map((id) => [id, 'completed'] as const)),
    gates: Object.fromEntries<GateRecord>(Object.entries(gates).filter(([phase_id]) => satisfiedIds.has(phase_id))),
    cycles: { phase_id: '', count: 0 },
  });
  const finished = new Set(spec.phases.filter((phase) => isPhaseFinished(turn.state, phase)).map(({ id }) => id));
  turn.set({ phases_told: phases_told.filter((phase_id) => finished.has(phase_id)) });
}

const taskIdsWithStatus = ({ tasks }: SessionState, status: 'completed' | 'skipped'): string[] =>
  Object.keys(tasks).filter((id) => tasks[id] === status);

/** Phases whose gate was reviewed or waived and does not block the session. */
const phasesNotBlocked = (state: SessionState): string[] =>
  state.spec.phases
    .filter(
      (phase) =>
        phase.gate !== undefined && gateOf(state, phase).status !== 'pending' && !isBlockedByGate(state, phase),
    )
    .map(({ id }) => id);

export interface RebaseRequest {
  readonly before: SessionSpec;
  /** A spec that `checkSpec` has accepted. */
  readonly after: SessionSpec;
  /** Ids of tasks of `before`. */
  readonly completed: Iterable<string>;
  /** Ids of tasks of `before` that become pending again, in whatever phase they are now. */
  readonly skipped: Iterable<string>;
  /** Ids of phases of `before` whose gate has passed, was waived, or was reviewed and need not pass. */
  readonly satisfied: Iterable<string>;
  /** Accepts the loss of completed tasks that the new spec does not have. */
  readonly force: boolean;
}

export type RebaseResult =
  /** `no_change`: both specs have the same structure, instructions and checks. Titles and hints may still differ. */
  | { readonly kind: 'no_change' | 'plan'; readonly plan: RebasePlan }
  | {
      readonly kind: 'refused';
      readonly code: 'REBASE_COMPLETED_TASKS_REMOVED';
      /** In the order of the old spec. */
      readonly task_ids: readonly string[];
    };

export interface RebasePlan {
  readonly structure_hash: string;
  /** Completed tasks that stay completed, in the order of the new spec. */
  readonly completed: readonly string[];
  /** Phases whose gate stays satisfied, in the order of the new spec. */
  readonly satisfied: readonly string[];
}

/**
 * Plans a rebase. A phase is affected if it is new or moved, if its tasks, instructions or checks have changed, or if a
 * task of it is reopened. In an affected phase, the gate is cleared and verifications must run again, since both judge
 * everything else in the phase. Completed work stays completed, unless the task was or has become a verification.
 */
export function planRebase({ before, after, completed, skipped, satisfied, force }: RebaseRequest): RebaseResult {
  const [done, reopened, gates] = [new Set(completed), new Set(skipped), new Set(satisfied)];
  const [old, now] = [tasksById(before), tasksById(after)];
  const lost = [...old.keys()].filter((id) => done.has(id) && !now.has(id));
  if (lost.length > 0 && !force) return { kind: 'refused', code: 'REBASE_COMPLETED_TASKS_REMOVED', task_ids: lost };
  const changed = findChangedPhases(before, after);
  const isUnaffected = ({ id, tasks }: SpecPhase): boolean =>
    !changed.has(id) && !tasks.some((task) => reopened.has(task.id));
  const structure_hash = structureHash(after);
  return {
    kind: changed.size === 0 && structure_hash === structureHash(before) ? 'no_change' : 'plan',
    plan: {
      structure_hash,
      completed: after.phases.flatMap((phase) =>
        phase.tasks
          .filter((task) => done.has(task.id) && isVerifyTask(task) === old.get(task.id))
          .filter((task) => !isVerifyTask(task) || isUnaffected(phase))
          .map(({ id }) => id),
      ),
      satisfied: after.phases.filter((phase) => gates.has(phase.id) && isUnaffected(phase)).map(({ id }) => id),
    },
  };
}

/** The tasks in spec order, and whether each is a verification. */
const tasksById = ({ phases }: SessionSpec): ReadonlyMap<string, boolean> =>
  new Map(phases.flatMap(({ tasks }) => tasks.map((task) => [task.id, isVerifyTask(task)] as const)));

/** Phases of `after` that are new, have moved among the phases of both specs, or judge or run something else. */
function findChangedPhases(before: SessionSpec, after: SessionSpec): ReadonlySet<string> {
  const old = new Map(before.phases.map((phase) => [phase.id, definitionOf(phase)]));
  const now = new Set(after.phases.map(({ id }) => id));
  const oldOrder = [...old.keys()].filter((id) => now.has(id));
  const newOrder = after.phases.map(({ id }) => id).filter((id) => old.has(id));
  const moved = new Set(oldOrder.filter((id, index) => newOrder[index] !== id));
  const changed = after.phases.filter((phase) => moved.has(phase.id) || old.get(phase.id) !== definitionOf(phase));
  return new Set(changed.map(({ id }) => id));
}

/**
 * What a reviewer judges of a phase and what its verifications run: not titles, hints, lanes or dependencies, and not
 * the order of its tasks.
 */
const definitionOf = ({ gate, tasks }: SpecPhase): string =>
  canonicalJson([gate ?? null, Object.fromEntries(tasks.map((task) => [task.id, taskDefinition(task)]))]);

const taskDefinition = (task: SpecTask): Json[] =>
  isVerifyTask(task)
    ? ['verify', task.command, task.cwd ?? VERIFY_CWD, task.timeout_seconds ?? VERIFY_TIMEOUT_SECONDS]
    : ['implement', task.instruction, task.acceptance ?? []];
