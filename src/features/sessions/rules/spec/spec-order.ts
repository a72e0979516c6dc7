// Checks whether the tasks of a spec can be completed at all. Phases run one after another, and within a phase the work
// comes before its verifications. A task that depends on a later one can never start.

import { quoteForMessage } from '../../../../core/contract/finding-text.js';
import { isVerifyTask, type SessionSpec, type SpecTask } from '../../contract/session-spec.js';
import type { SpecFindings } from './spec-finding.js';

/** Maximum number of task ids that a message lists of one cycle. */
const CYCLE_IDS_MAX = 8;

interface OrderedTask {
  readonly task: SpecTask;
  readonly phase: number;
  readonly path: string;
  /** The task's dependencies within its phase. */
  readonly dependencies: string[];
}

/** Reports cycles, and dependencies that cannot be met, in a spec whose task ids are unique. */
export function findOrderMistakes({ phases }: SessionSpec, findings: SpecFindings): void {
  const tasksById = new Map<string, OrderedTask>();
  phases.forEach(({ tasks }, phase) => {
    tasks.forEach((task, index) => {
      tasksById.set(task.id, { task, phase, path: `/phases/${phase}/tasks/${index}`, dependencies: [] });
    });
  });
  for (const orderedTask of tasksById.values()) {
    orderedTask.task.depends_on?.forEach((id, index) => {
      findDependencyMistake(
        orderedTask,
        { id, to: tasksById.get(id), path: `${orderedTask.path}/depends_on/${index}` },
        findings,
      );
    });
  }
  for (const cycle of findCycles(tasksById)) {
    findings.add('task.cycle', `${tasksById.get(cycle[0] ?? '')?.path ?? ''}/depends_on`, describeCycle(cycle));
    if (findings.isFull()) return;
  }
}

interface Dependency {
  readonly id: string;
  readonly to: OrderedTask | undefined;
  readonly path: string;
}

function findDependencyMistake(from: OrderedTask, { id, to, path }: Dependency, findings: SpecFindings): void {
  const statement = `task ${quoteForMessage(from.task.id)} depends on ${quoteForMessage(id)}`;
  if (to === undefined) findings.add('task.unknown_dependency', path, `${statement}, which is no task of this spec`);
  else if (to.phase > from.phase)
    findings.add('task.later_dependency', path, `${statement}, which is in a later phase`);
  else if (to.phase === from.phase && isVerifyTask(to.task) && !isVerifyTask(from.task)) {
    const why = 'a verification of the same phase, which comes after all that the phase makes';
    findings.add('task.waits_for_verification', path, `${statement}, ${why}`);
  } else if (to.phase === from.phase) from.dependencies.push(id);
}

/**
 * Finds at least one cycle in every group of tasks that depend on one another. Each cycle begins with its first task in
 * spec order. The search is depth first without recursion, because a chain may be as long as a spec.
 */
function* findCycles(tasksById: ReadonlyMap<string, OrderedTask>): Generator<readonly string[]> {
  const reported = new Set<string>();
  const finished = new Set<string>();
  for (const start of tasksById.keys()) {
    if (finished.has(start)) continue;
    // The path from `start`, with the index of the next dependency to follow.
    const chain: { readonly id: string; next: number }[] = [{ id: start, next: 0 }];
    const chainIndexes = new Map([[start, 0]]);
    for (let current = chain.at(-1); current !== undefined; current = chain.at(-1)) {
      const id = tasksById.get(current.id)?.dependencies[current.next++];
      if (id === undefined) {
        finished.add(current.id);
        chainIndexes.delete(current.id);
        chain.pop();
        continue;
      }
      const at = chainIndexes.get(id);
      if (at === undefined && !finished.has(id)) {
        chainIndexes.set(id, chain.length);
        chain.push({ id, next: 0 });
      } else if (at !== undefined && !reported.has(id)) {
        const cycle = chain.slice(at).map((step) => step.id);
        for (const member of cycle) reported.add(member);
        yield rotateToFirst(cycle, tasksById);
      }
    }
  }
}

function rotateToFirst(cycle: readonly string[], tasksById: ReadonlyMap<string, OrderedTask>): readonly string[] {
  const members = new Set(cycle);
  const first = [...tasksById.keys()].find((id) => members.has(id)) ?? '';
  const at = cycle.indexOf(first);
  return [...cycle.slice(at), ...cycle.slice(0, at)];
}

function describeCycle(cycle: readonly string[]): string {
  const [first = ''] = cycle;
  if (cycle.length === 1) return `task ${quoteForMessage(first)} depends on itself`;
  const reported = cycle.slice(0, CYCLE_IDS_MAX).map(quoteForMessage);
  const rest = cycle.length - reported.length;
  const chain = [...reported, ...(rest > 0 ? [`... (${rest} more)`] : []), quoteForMessage(first)].join(' -> ');
  return `tasks depend on one another in a circle: ${chain}`;
}
