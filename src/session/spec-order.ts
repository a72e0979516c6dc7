// Can the tasks of a spec be worked through at all? Phases come one after another, and in each of them what is to be
// made comes before what is to be verified: a task that waits for something behind it waits for ever.

import { inQuotes } from '../contract/finding-text.js';
import { isVerifyTask, type SessionSpec, type SpecTask } from '../contract/session-spec.js';
import type { SpecFindings } from './spec-finding.js';

/** Task ids told of one cycle. */
const CYCLE_IDS_MAX = 8;

interface Place {
  readonly task: SpecTask;
  readonly phase: number;
  readonly path: string;
  /** Tasks of the same phase that it may wait for, and does. */
  readonly waitsFor: string[];
}

/** Finds dependencies that cannot be met, and cycles. Of a spec whose task ids are unique. */
export function findOrderMistakes({ phases }: SessionSpec, findings: SpecFindings): void {
  const places = new Map<string, Place>();
  phases.forEach(({ tasks }, phase) => {
    tasks.forEach((task, index) => {
      places.set(task.id, { task, phase, path: `/phases/${phase}/tasks/${index}`, waitsFor: [] });
    });
  });
  for (const place of places.values()) {
    place.task.depends_on?.forEach((id, index) => {
      findDependencyMistake(place, { id, to: places.get(id), path: `${place.path}/depends_on/${index}` }, findings);
    });
  }
  for (const cycle of cyclesOf(places)) {
    findings.add('task.cycle', `${places.get(cycle[0] ?? '')?.path ?? ''}/depends_on`, cycleText(cycle));
    if (findings.isFull()) return;
  }
}

interface Dependency {
  readonly id: string;
  readonly to: Place | undefined;
  readonly path: string;
}

function findDependencyMistake(from: Place, { id, to, path }: Dependency, findings: SpecFindings): void {
  const waits = `task ${inQuotes(from.task.id)} depends on ${inQuotes(id)}`;
  if (to === undefined) findings.add('task.unknown_dependency', path, `${waits}, which is no task of this spec`);
  else if (to.phase > from.phase) findings.add('task.later_dependency', path, `${waits}, which is in a later phase`);
  else if (to.phase === from.phase && isVerifyTask(to.task) && !isVerifyTask(from.task)) {
    const why = 'a verification of the same phase, which comes after all that the phase makes';
    findings.add('task.waits_for_verification', path, `${waits}, ${why}`);
  } else if (to.phase === from.phase) from.waitsFor.push(id);
}

/**
 * Cycles, one at least of every knot of tasks that wait for one another; each begins with its first task in the order
 * of the spec. Depth first without recursion: a chain may be as long as a spec.
 */
function* cyclesOf(places: ReadonlyMap<string, Place>): Generator<readonly string[]> {
  const told = new Set<string>();
  const finished = new Set<string>();
  for (const start of places.keys()) {
    if (finished.has(start)) continue;
    // The way from `start`, with the number of the dependency that is looked at next.
    const way: { readonly id: string; next: number }[] = [{ id: start, next: 0 }];
    const onWay = new Map([[start, 0]]);
    for (let here = way.at(-1); here !== undefined; here = way.at(-1)) {
      const id = places.get(here.id)?.waitsFor[here.next++];
      if (id === undefined) {
        finished.add(here.id);
        onWay.delete(here.id);
        way.pop();
        continue;
      }
      const at = onWay.get(id);
      if (at === undefined && !finished.has(id)) {
        onWay.set(id, way.length);
        way.push({ id, next: 0 });
      } else if (at !== undefined && !told.has(id)) {
        const cycle = way.slice(at).map((step) => step.id);
        for (const member of cycle) told.add(member);
        yield fromFirst(cycle, places);
      }
    }
  }
}

function fromFirst(cycle: readonly string[], places: ReadonlyMap<string, Place>): readonly string[] {
  const members = new Set(cycle);
  const first = [...places.keys()].find((id) => members.has(id)) ?? '';
  const at = cycle.indexOf(first);
  return [...cycle.slice(at), ...cycle.slice(0, at)];
}

function cycleText(cycle: readonly string[]): string {
  const [first = ''] = cycle;
  if (cycle.length === 1) return `task ${inQuotes(first)} depends on itself`;
  const told = cycle.slice(0, CYCLE_IDS_MAX).map(inQuotes);
  const rest = cycle.length - told.length;
  const way = [...told, ...(rest > 0 ? [`... (${rest} more)`] : []), inQuotes(first)].join(' -> ');
  return `tasks depend on one another in a circle: ${way}`;
}
