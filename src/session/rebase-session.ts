// Continues a paused or failed session with another version of its spec. `planRebase` decides what stays completed and
// which phases must be checked again; `rebaseSession` applies the plan to the session.

import { canonicalJson } from '../contract/canonical-json.js';
import type { CommandOf } from '../contract/session/session-command.js';
import {
  isVerifyTask,
  VERIFY_CWD,
  VERIFY_TIMEOUT_SECONDS,
  type SessionSpec,
  type SpecPhase,
  type SpecTask,
} from '../contract/session/session-spec.js';
import { sessionAnswer, rejectionAnswer } from './session-answer.js';
import { revokeStep } from './issue-step.js';
import { gateOf, isBlockedByGate, isPhaseFinished } from './progress.js';
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
 * Whatever was reviewed and has not passed is to be reviewed again before anybody says something to it, or mends what
 * was found by the words of before.
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

/** Phases whose gate has been looked at, and does not hold the session up. */
const phasesNotBlocked = (state: SessionState): string[] =>
  state.spec.phases
    .filter(
      (phase) =>
        phase.gate !== undefined && gateOf(state, phase).status !== 'pending' && !isBlockedByGate(state, phase),
    )
    .map(({ id }) => id);

export interface RebaseRequest {
  readonly before: SessionSpec;
  /** Checked already. */
  readonly after: SessionSpec;
  /** Ids of tasks of `before`. */
  readonly completed: Iterable<string>;
  /** Ids of tasks of `before` that are opened again, in whatever phase they are now. */
  readonly skipped: Iterable<string>;
  /** Ids of phases of `before` whose gate has passed, was waived, or was looked at and need not pass. */
  readonly satisfied: Iterable<string>;
  /** Lose completed tasks that the new spec no longer has. */
  readonly force: boolean;
}

export type RebaseResult =
  /** `no_change`: both specs have one structure, and ask and check the same. Titles and hints may still differ. */
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
  /** Completed tasks that the new spec has, and that are to be done again, in its order. */
  readonly reopened: readonly string[];
  /** Completed tasks that are gone: only where force said so. */
  readonly lost: readonly string[];
  /** Phases whose gate stays satisfied. */
  readonly satisfied: readonly string[];
  /** Phases whose gate was satisfied, and has to be satisfied again or is gone. */
  readonly cleared: readonly string[];
}

/**
 * What a session keeps when it is rebased. A phase is affected when it is new or moved, when a task came or went, was
 * moved into it or out of it, became a verification or is opened again, and when what it asks for or is checked by is
 * not what it was. In an affected phase gates are cleared and verifications are to be run again, since both come after
 * everything else that the phase makes. Tasks that were made stay made, unless they have become verifications or were
 * ones.
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

/** Those whose structure is another. Also ones that only one of the specs has. */
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

/** Phases of both specs that ask for something else now, or are checked by something else. */
function findRedefinedPhases(before: SessionSpec, after: SessionSpec): readonly string[] {
  const old = new Map(before.phases.map((phase) => [phase.id, phase]));
  return after.phases.flatMap((phase) => {
    const oldPhase = old.get(phase.id);
    return oldPhase === undefined || hasSameDefinition(oldPhase, phase) ? [] : [phase.id];
  });
}

/** Tasks that only one of them has are a matter of structure. */
function hasSameDefinition(oldPhase: SpecPhase, newPhase: SpecPhase): boolean {
  if (canonicalJson(oldPhase.gate ?? null) !== canonicalJson(newPhase.gate ?? null)) return false;
  const old = new Map(oldPhase.tasks.map((task) => [task.id, task]));
  return newPhase.tasks.every((task) => {
    const before = old.get(task.id);
    return before === undefined || definitionOf(before) === definitionOf(task);
  });
}

/** What a reviewer judges a task by, and what a verification runs: not its title, hints, lane or dependencies. */
const definitionOf = (task: SpecTask): string =>
  canonicalJson(
    isVerifyTask(task)
      ? [task.command, task.cwd ?? VERIFY_CWD, task.timeout_seconds ?? VERIFY_TIMEOUT_SECONDS]
      : [task.instruction, task.acceptance ?? []],
  );
