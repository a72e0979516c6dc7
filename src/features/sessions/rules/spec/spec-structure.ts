// The structure of a spec: its phases in order, and the tasks in each of them. Only a rebase may change the structure
// of a session. The texts, commands and dependencies of a pending task may be edited without one.

import { canonicalJson } from '../../../../core/contract/json.js';
import { sha256 } from '../../../../core/contract/hash.js';
import { isVerifyTask, type SessionSpec } from '../../contract/session-spec.js';

/** SHA-256 of the structure in canonical JSON. The order of tasks within a phase does not count. */
export function structureHash(spec: SessionSpec): string {
  const phases = spec.phases.map(({ id }, index) => [id, index] as const).toSorted(byId);
  const tasks = [...taskSlots(spec)].map(([id, { phase_id, type }]) => [id, phase_id, type] as const).toSorted(byId);
  return sha256(canonicalJson({ spec_version: spec.spec_version, phases, tasks }));
}

/** How the phases and tasks of two specs differ. It is empty exactly when both have the same structure hash. */
export interface StructureDiff {
  readonly phases: {
    readonly added: readonly string[];
    readonly removed: readonly string[];
    /** Phases in both specs whose position among the common phases has changed. */
    readonly moved: readonly string[];
  };
  readonly tasks: {
    readonly added: readonly TaskPlace[];
    readonly removed: readonly TaskPlace[];
    /** Tasks that are now in another phase. */
    readonly moved: readonly { readonly id: string; readonly from: string; readonly to: string }[];
    /** Tasks that have changed from work to a verification, or the reverse. */
    readonly retyped: readonly string[];
  };
}

export interface TaskPlace {
  readonly id: string;
  readonly phase_id: string;
}

/** Removed, moved and retyped items are in the order of the old spec, added items in the order of the new one. */
export function diffStructure(before: SessionSpec, after: SessionSpec): StructureDiff {
  const [old, now] = [taskSlots(before), taskSlots(after)];
  const common = [...old].flatMap(([id, from]) => {
    const to = now.get(id);
    return to === undefined ? [] : [{ id, from, to }];
  });
  return {
    phases: diffPhases(idsOf(before), idsOf(after)),
    tasks: {
      added: missingPlaces(now, old),
      removed: missingPlaces(old, now),
      moved: common
        .filter(({ from, to }) => from.phase_id !== to.phase_id)
        .map(({ id, from, to }) => ({ id, from: from.phase_id, to: to.phase_id })),
      retyped: common.filter(({ from, to }) => from.type !== to.type).map(({ id }) => id),
    },
  };
}

export const isSameStructure = ({ phases, tasks }: StructureDiff): boolean =>
  [...Object.values(phases), ...Object.values(tasks)].every((changes: readonly unknown[]) => changes.length === 0);

interface TaskSlot {
  readonly phase_id: string;
  readonly type: 'implement' | 'verify';
}

/** The phase and type of every task, in spec order. */
const taskSlots = ({ phases }: SessionSpec): ReadonlyMap<string, TaskSlot> =>
  new Map(
    phases.flatMap(({ id: phase_id, tasks }) =>
      tasks.map((task) => [task.id, { phase_id, type: isVerifyTask(task) ? 'verify' : 'implement' }] as const),
    ),
  );

function diffPhases(before: readonly string[], after: readonly string[]): StructureDiff['phases'] {
  const [old, now] = [new Set(before), new Set(after)];
  const commonIds = after.filter((id) => old.has(id));
  return {
    added: after.filter((id) => !old.has(id)),
    removed: before.filter((id) => !now.has(id)),
    moved: before.filter((id) => now.has(id)).filter((id, index) => commonIds[index] !== id),
  };
}

/** The tasks that are in `slots` and not in `otherSlots`. */
const missingPlaces = (slots: ReadonlyMap<string, TaskSlot>, otherSlots: ReadonlyMap<string, TaskSlot>): TaskPlace[] =>
  [...slots].filter(([id]) => !otherSlots.has(id)).map(([id, { phase_id }]) => ({ id, phase_id }));

const idsOf = ({ phases }: SessionSpec): string[] => phases.map(({ id }) => id);

/** By UTF-16 code unit, like the keys of canonical JSON. */
const byId = ([a]: readonly [string, ...unknown[]], [b]: readonly [string, ...unknown[]]): number =>
  a < b ? -1 : a > b ? 1 : 0;
