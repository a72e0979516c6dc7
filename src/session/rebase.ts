// A session takes up a spec whose structure has changed. What was done stays done where the new spec still has it;
// what was judged is judged again wherever the phase that it was said of has changed.

import { canonicalJson } from '../contract/canonical-json.js';
import { isVerifyTask, type SessionSpec, type SpecPhase } from '../contract/session-spec.js';
import { diffStructure, isSameStructure, structureHash, type StructureDiff } from './spec-structure.js';

export interface RebaseRequest {
  readonly before: SessionSpec;
  /** Checked already. */
  readonly after: SessionSpec;
  /** Ids of tasks of `before`. */
  readonly completed: Iterable<string>;
  /** Ids of phases of `before` whose gate has passed or was waived. */
  readonly satisfied: Iterable<string>;
  /** Lose completed tasks that the new spec no longer has. */
  readonly force: boolean;
}

export type Rebase =
  /** Both specs have one structure. Their words and commands may still differ. */
  | { readonly kind: 'no_change' }
  | {
      readonly kind: 'refused';
      readonly code: 'REBASE_COMPLETED_TASKS_REMOVED';
      /** In the order of the old spec. */
      readonly task_ids: readonly string[];
    }
  | { readonly kind: 'plan'; readonly plan: RebasePlan };

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
 * moved into it or out of it, or became a verification, or when its gate is another. In an affected phase gates
 * are cleared and verifications are to be run again, since both come after everything else that the phase makes. Tasks
 * that were made stay made, unless they have become verifications or were ones.
 */
export function planRebase({ before, after, completed, satisfied, force }: RebaseRequest): Rebase {
  const diff = diffStructure(before, after);
  if (isSameStructure(diff)) return { kind: 'no_change' };
  const done = new Set(completed);
  const lost = diff.tasks.removed.map(({ id }) => id).filter((id) => done.has(id));
  if (lost.length > 0 && !force) return { kind: 'refused', code: 'REBASE_COMPLETED_TASKS_REMOVED', task_ids: lost };
  const affected = affectedPhases(before, after, diff);
  const retyped = new Set(diff.tasks.retyped);
  const still = after.phases.flatMap(({ id: phase_id, tasks }) =>
    tasks
      .filter(({ id }) => done.has(id))
      .map((task) => ({
        id: task.id,
        stays: !retyped.has(task.id) && !(isVerifyTask(task) && affected.has(phase_id)),
      })),
  );
  const gates = new Set(satisfied);
  const kept = after.phases.map(({ id }) => id).filter((id) => gates.has(id) && !affected.has(id));
  return {
    kind: 'plan',
    plan: {
      structure_hash: structureHash(after),
      diff,
      completed: still.filter(({ stays }) => stays).map(({ id }) => id),
      reopened: still.filter(({ stays }) => !stays).map(({ id }) => id),
      lost,
      satisfied: kept,
      cleared: before.phases.map(({ id }) => id).filter((id) => gates.has(id) && !kept.includes(id)),
    },
  };
}

/** Also those that only one of the specs has. */
function affectedPhases(
  before: SessionSpec,
  after: SessionSpec,
  { phases, tasks }: StructureDiff,
): ReadonlySet<string> {
  const retyped = new Set(tasks.retyped);
  const holds = ({ tasks: own }: SpecPhase): boolean => own.some(({ id }) => retyped.has(id));
  const gates = new Map(before.phases.map(({ id, gate }) => [id, gateText(gate)]));
  return new Set([
    ...phases.added,
    ...phases.removed,
    ...phases.moved,
    ...[...tasks.added, ...tasks.removed].map(({ phase_id }) => phase_id),
    ...tasks.moved.flatMap(({ from, to }) => [from, to]),
    ...after.phases.filter((phase) => holds(phase) || gates.get(phase.id) !== gateText(phase.gate)).map(({ id }) => id),
  ]);
}

const gateText = (gate: SpecPhase['gate']): string => canonicalJson(gate ?? null);
