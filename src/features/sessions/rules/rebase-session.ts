// Continues a paused or failed session with another version of its spec. `planRebase` decides what stays completed and
// which phases must be checked again; `rebaseSession` applies the plan to the session.

import { canonicalJson } from '../../../core/contract/json.js';
import type { CommandOf } from '../contract/session-command.js';
import {
  isVerifyTask,
  VERIFY_CWD,
  VERIFY_TIMEOUT_SECONDS,
  type SessionSpec,
  type SpecPhase,
  type SpecTask,
} from '../contract/session-spec.js';
import { sessionAnswer, rejectionAnswer } from './command-answer.js';
import { revokeStep } from './issue-step.js';
import { gateOf, isBlockedByGate, isPhaseFinished } from './task-progress.js';
import { activate, clearPauseCause } from './resume.js';
import { activationId, type GateRecord, type SessionState } from './session-state.js';
import { diffStructure, isSameStructure, structureHash, type StructureDiff } from './spec/spec-structure.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn-builder.js';

export function rebaseSession(state: SessionState, command: CommandOf<'rebase'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const { force, spec_file } = command;
  const after = context.new_spec;
  if (after === null) return turn.buildUnchanged(rejectionAnswer(state, 'VALIDATION_ERROR', ['spec']));
  if (after.id !== state.spec.id) return turn.buildUnchanged(rejectionAnswer(state, 'VALIDATION_ERROR', ['spec id']));
  const rebase = planRebase({
    before: state.spec,
    after,
    completed: taskIdsWithStatus(state, 'completed'),
    skipped: taskIdsWithStatus(state, 'skipped'),
    satisfied: phasesNotBlocked(state),
    force,
  });
  if (rebase.kind === 'refused') return turn.buildUnchanged(rejectionAnswer(state, rebase.code, rebase.task_ids));
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
  readonly diff: StructureDiff;
  /** Completed tasks that stay completed, in the order of the new spec. */
  readonly completed: readonly string[];
  /** Completed tasks that the new spec has and that must be done again, in its order. */
  readonly reopened: readonly string[];
  /** Completed tasks that the new spec does not have; empty without `force`. */
  readonly lost: readonly string[];
  /** Phases whose gate stays satisfied. */
  readonly satisfied: readonly string[];
  /** Phases whose gate was satisfied, and must be satisfied again or no longer exists. */
  readonly cleared: readonly string[];
}

/**
 * Plans a rebase. A phase is affected if it is new or moved; if a task was added to it, removed from it, moved into it
 * or out of it, retyped or reopened; or if its instructions or checks have changed. In an affected phase, the gate is
 * cleared and verifications must run again, since both judge everything else in the phase. Completed work stays
 * completed, unless the task was or has become a verification.
 */
export function planRebase({ before, after, completed, skipped, satisfied, force }: RebaseRequest): RebaseResult {
  const diff = diffStructure(before, after);
  const done = new Set(completed);
  const lost = diff.tasks.removed.map(({ id }) => id).filter((id) => done.has(id));
  if (lost.length > 0 && !force) return { kind: 'refused', code: 'REBASE_COMPLETED_TASKS_REMOVED', task_ids: lost };
  const redefined = findRedefinedPhases(before, after);
  const affected = new Set([...findAffectedPhases(after, diff), ...redefined, ...phasesOf(after, new Set(skipped))]);
  const retyped = new Set(diff.tasks.retyped);
  const remaining = after.phases.flatMap(({ id: phase_id, tasks }) =>
    tasks
      .filter(({ id }) => done.has(id))
      .map((task) => ({
        id: task.id,
        stays: !retyped.has(task.id) && !(isVerifyTask(task) && affected.has(phase_id)),
      })),
  );
  const gates = new Set(satisfied);
  const stillSatisfied = after.phases.map(({ id }) => id).filter((id) => gates.has(id) && !affected.has(id));
  return {
    kind: isSameStructure(diff) && redefined.length === 0 ? 'no_change' : 'plan',
    plan: {
      structure_hash: structureHash(after),
      diff,
      completed: remaining.filter(({ stays: isKept }) => isKept).map(({ id }) => id),
      reopened: remaining.filter(({ stays: isKept }) => !isKept).map(({ id }) => id),
      lost,
      satisfied: stillSatisfied,
      cleared: before.phases.map(({ id }) => id).filter((id) => gates.has(id) && !stillSatisfied.includes(id)),
    },
  };
}

/** Phases with a structural change, including phases that only one of the specs has. */
const findAffectedPhases = (after: SessionSpec, { phases, tasks }: StructureDiff): readonly string[] => [
  ...phases.added,
  ...phases.removed,
  ...phases.moved,
  ...[...tasks.added, ...tasks.removed].map(({ phase_id }) => phase_id),
  ...tasks.moved.flatMap(({ from, to }) => [from, to]),
  ...phasesOf(after, new Set(tasks.retyped)),
];

const phasesOf = ({ phases }: SessionSpec, task_ids: ReadonlySet<string>): readonly string[] =>
  phases.filter(({ tasks }) => tasks.some(({ id }) => task_ids.has(id))).map(({ id }) => id);

/** Phases of both specs whose instructions or checks have changed. */
function findRedefinedPhases(before: SessionSpec, after: SessionSpec): readonly string[] {
  const old = new Map(before.phases.map((phase) => [phase.id, phase]));
  return after.phases.flatMap((phase) => {
    const oldPhase = old.get(phase.id);
    return oldPhase === undefined || hasSameDefinition(oldPhase, phase) ? [] : [phase.id];
  });
}

/** Tasks that only one spec has belong to the structure and are not compared here. */
function hasSameDefinition(oldPhase: SpecPhase, newPhase: SpecPhase): boolean {
  if (canonicalJson(oldPhase.gate ?? null) !== canonicalJson(newPhase.gate ?? null)) return false;
  const old = new Map(oldPhase.tasks.map((task) => [task.id, task]));
  return newPhase.tasks.every((task) => {
    const before = old.get(task.id);
    return before === undefined || definitionOf(before) === definitionOf(task);
  });
}

/** The parts of a task that a reviewer judges or a verification runs: not its title, hints, lane or dependencies. */
const definitionOf = (task: SpecTask): string =>
  canonicalJson(
    isVerifyTask(task)
      ? [task.command, task.cwd ?? VERIFY_CWD, task.timeout_seconds ?? VERIFY_TIMEOUT_SECONDS]
      : [task.instruction, task.acceptance ?? []],
  );
