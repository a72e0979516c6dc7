// The structure of a spec: its phases in order, and the tasks in each of them. Only a rebase may change the structure
// of a session. The texts, commands and dependencies of a pending task may be edited without one.

import { canonicalJson } from '../../../../core/contract/json.js';
import { sha256 } from '../../../../core/contract/hash.js';
import type { SessionSpec } from '../../contract/session-spec.js';

/** SHA-256 of the structure in canonical JSON. The order of tasks within a phase does not count. */
export function structureHash({ spec_version, phases }: SessionSpec): string {
  const places = phases.map(({ id }, index) => [id, index] as const).toSorted(byId);
  const tasks = phases
    .flatMap((phase) => phase.tasks.map(({ id, type = 'implement' }) => [id, phase.id, type] as const))
    .toSorted(byId);
  return sha256(canonicalJson({ spec_version, phases: places, tasks }));
}

/** By UTF-16 code unit, like the keys of canonical JSON. */
const byId = ([a]: readonly [string, ...unknown[]], [b]: readonly [string, ...unknown[]]): number =>
  a < b ? -1 : a > b ? 1 : 0;
