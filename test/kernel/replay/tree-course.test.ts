// The course of every run, as replay computes it: compared with the states of runs, with XState's own actors over the
// same machines, and with a course that is requested in parts.

import { sessionOf } from '../../../src/features/sessions/tree/session-of.js';
import type { EntryPlace } from '../../../src/engine/ports/ledger/ledger-store.js';
import { describe, expect, test } from '@jest/globals';
import type { AnyStateNode, AnyTransitionDefinition, InspectionEvent } from 'xstate';
import { artifactRef, type StoredArtifact } from '../../../src/core/contract/artifact-ref.js';
import type { Course } from '../../../src/core/contract/inspection/inspection.js';
import { stepId } from '../../../machines/agent.js';
import { edgeId } from '../../../src/kernel/interpreter/table-driven-actors.js';
import { Tree } from '../../../src/kernel/tree.js';
import { readDefinitionCharts, TreeCourse } from '../../../src/kernel/replay/tree-course.js';
import { CourseCache, foldUpTo } from '../../../src/kernel/replay/course-cache.js';
import type { ReplayEntry } from '../../../src/kernel/replay/replay.js';
import { sized } from '../../fixtures/campaign.js';
import { RandomSession } from '../../fixtures/random-session.js';
import { randomTree } from '../../fixtures/random-tree.js';
import { SessionDriver } from '../../fixtures/session.js';
import { proposal, TreeDriver } from '../../fixtures/tree.js';
import { xstateInterpretation } from '../../../src/kernel/interpreter/xstate-actors.js';

interface Recorded {
  readonly entries: readonly ReplayEntry[];
  readonly artifacts: ReadonlyMap<number, readonly StoredArtifact[]>;
}

/** What a driver has recorded, in a log with other entries in between. */
function recorded(d: TreeDriver, spread = 3): Recorded {
  const entries: ReplayEntry[] = [];
  const artifacts = new Map<number, readonly StoredArtifact[]>();
  for (const [n, { entries: reasonState }] of d.decisions.entries()) {
    const base = n * spread;
    for (const { entry, text } of reasonState) {
      const { tree_id, seq, type } = entry;
      entries.push({ log_index: base + seq, tree_id, seq, type, text });
    }
    artifacts.set(entries.at(-reasonState.length)?.log_index ?? 0, d.inputs[n]!.materials);
  }
  return { entries, artifacts };
}

function folded({ entries, artifacts }: Recorded, tree_id: string): TreeCourse {
  const tree = new TreeCourse(tree_id);
  for (const entry of entries) tree.take(entry, artifacts.get(entry.log_index) ?? []);
  return tree;
}

const runsIn = ({ entries }: Recorded): string[] =>
  entries.flatMap(({ type, text }) =>
    type === 'run_created' ? [(JSON.parse(text) as { body: { run_id: string } }).body.run_id] : [],
  );

const drivers: TreeDriver[] = [];
function histories(): readonly TreeDriver[] {
  if (drivers.length > 0) return drivers;
  for (let seed = 1; seed <= sized(20, 100); seed += 1) drivers.push(randomTree(seed));
  for (let seed = 1; seed <= sized(4, 15); seed += 1) drivers.push(new RandomSession(seed).live({}).driver);
  return drivers;
}

const nameOf = ({ edges, states }: Course, [, step, edge, to]: Course['moves'][number]): string =>
  `${step === 0 ? 'run' : 'step'} ${edges[edge] ?? '?'} -> ${states[to] ?? '?'}`;

/**
 * XState's own report of taken transitions. The underscore means that it is undocumented; this test ensures that it
 * exists.
 */
function watched(d: TreeDriver): ReadonlyMap<string, string[]> {
  const transitions = new Map<string, string[]>();
  const watch = (event: InspectionEvent): void => {
    if (event.type !== '@xstate.microstep') return;
    const { id } = event.actorRef as unknown as { id: string };
    const path = pathOf((event.snapshot as unknown as { value: unknown }).value);
    const run = id.endsWith(stepId('')) ? id.slice(0, -stepId('').length) : id;
    for (const transition of event._transitions) {
      const name = `${run === id ? 'run' : 'step'} ${idOf(transition)} -> ${path.join('.')}`;
      transitions.set(run, [...(transitions.get(run) ?? []), name]);
    }
  };
  const tree = new Tree(d.tree_id, xstateInterpretation(watch));
  for (const input of d.inputs) tree.decide(input);
  return transitions;
}

function pathOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Object.entries(value as Record<string, unknown>).flatMap(([key, rest]) => [key, ...pathOf(rest)]);
}

function idOf(transition: AnyTransitionDefinition): string {
  const source = transition.source as AnyStateNode;
  const always = source.always?.indexOf(transition as never) ?? -1;
  if (always >= 0) return edgeId(source.path, 'always', always);
  for (const [event, list] of source.transitions) {
    const place = list.indexOf(transition as never);
    if (place >= 0) return edgeId(source.path, event, place);
  }
  throw new Error('a transition of no state');
}

describe('the course of a run', () => {
  test('U-05: is the transitions that XState takes over the same machines, in the same order', () => {
    let moves = 0;
    for (const d of histories()) {
      const record = recorded(d);
      const tree = folded(record, d.tree_id);
      expect(tree.cut).toBeNull();
      for (const [run_id, expected] of watched(d)) {
        const course = tree.course(run_id, 0, 1e9)!;
        expect(course.moves.map((move) => nameOf(course, move))).toEqual(expected);
        moves += expected.length;
      }
    }
    expect(moves).toBeGreaterThan(sized(900, 5_000));
  }, 120_000);

  test('U-05: is connected, by the recorded charts, and ends in the state of the run', () => {
    const shapes = new Map<string, Map<string, { source: string; target: string | null }>>();
    for (const d of histories()) {
      const record = recorded(d);
      const tree = folded(record, d.tree_id);
      const [opening] = record.artifacts.values();
      const machines = opening!.find(({ kind }) => kind === 'machines') as { bytes: Uint8Array };
      const charts = readDefinitionCharts(machines.bytes);
      for (const { hash, edges } of charts) shapes.set(hash, new Map(edges.map((edge) => [edge.id, edge])));
      for (const run_id of runsIn(record)) {
        const course = tree.course(run_id, 0, 1e9)!;
        const initial = (hash: string): string => {
          const chart = charts.find((each) => each.hash === hash)!;
          let at = '';
          for (let node = chart.nodes.find(({ id }) => id === ''); node?.initial != null;) {
            at = node.initial;
            node = chart.nodes.find(({ id }) => id === at);
          }
          return at;
        };
        const rests = new Map<number, string>();
        let [last, lastStep] = [-1, 0];
        for (const [log_index, step, edge, to] of course.moves) {
          const hash = step === 0 ? course.chart : course.step_chart!;
          const { source, target } = shapes.get(hash)!.get(course.edges[edge]!)!;
          const before = rests.get(step) ?? initial(hash);
          const after = course.states[to]!;
          expect(source === '' || before === source || before.startsWith(`${source}.`)).toBe(true);
          expect(target === null ? after === before : after === target || after.startsWith(`${target}.`)).toBe(true);
          rests.set(step, after);
          expect(log_index).toBeGreaterThanOrEqual(last);
          expect(step === 0 || step >= lastStep).toBe(true);
          [last, lastStep] = [log_index, Math.max(step, lastStep)];
        }
        const standing = d.tree.actorState(run_id);
        if (standing !== null) expect(rests.get(0) ?? initial(course.chart)).toBe(standing.path.join('.'));
        const step = d.tree.actorState(stepId(run_id));
        if (step !== null) expect(rests.get(course.steps.length)).toBe(step.path.join('.'));
        const end = stateOf(record, run_id);
        if (end !== 'created' && end !== 'running') expect(rests.get(0)).toBe(end);
      }
    }
  }, 120_000);

  test('U-05: begins every step with the input of its proposal, and has no transition before its entry', () => {
    for (const d of histories()) {
      const record = recorded(d);
      const tree = folded(record, d.tree_id);
      const at = new Map(record.entries.map((entry) => [entry.log_index, entry]));
      for (const run_id of runsIn(record)) {
        const { moves, steps } = tree.course(run_id, 0, 1e9)!;
        for (const begin of steps) expect(at.get(begin)?.text).toContain('"kind":"proposal"');
        for (const [log_index, step] of moves) {
          expect(at.has(log_index)).toBe(true);
          if (step > 0) expect(log_index).toBeGreaterThanOrEqual(steps[step - 1]!);
        }
      }
    }
  }, 120_000);

  test('U-05: is the same when requested in parts, without repetition or gap', async () => {
    const d = randomTree(7, { inputs: 30 });
    const record = recorded(d);
    for (const run_id of runsIn(record)) {
      let size = 0;
      const source = sourceOf(record, () => size);
      const courses = new CourseCache({ source, size: () => Promise.resolve(size), pause: () => undefined });
      const moves: Course['moves'][number][] = [];
      let after = 0;
      for (const end of ends(d, record)) {
        size = end;
        const part = await courseIn(courses, [d.tree_id, run_id], after);
        if (part === null) continue;
        moves.push(...part.moves);
        expect(part.through).toBe(end);
        after = part.through;
      }
      expect(moves).toEqual(folded(record, d.tree_id).course(run_id, 0, 0)!.moves);
    }
  });

  test('the cache folds no tree again for a further request, and keeps only the last trees', async () => {
    const d = randomTree(3);
    const record = recorded(d);
    const read: number[] = [];
    const source = sourceOf(record, () => 1e9, read);
    const size = (): Promise<number> => Promise.resolve(1e9);
    const courses = new CourseCache({ source, size, pause: () => undefined, treesMax: 1 });
    await Promise.all([courseIn(courses, [d.tree_id, d.tree_id], 0), courseIn(courses, [d.tree_id, d.tree_id], 5)]);
    expect(read).toHaveLength(record.entries.length);
    await courseIn(courses, [d.tree_id, d.tree_id], 0);
    expect(read).toHaveLength(record.entries.length);
    expect(await courseIn(courses, ['run_nobody', 'run_nobody'], 0)).toBeNull();
    expect(await courseIn(courses, [d.tree_id, `${d.tree_id}.99`], 0)).toBeNull();
  });
});

async function courseIn(
  courses: CourseCache,
  [tree_id, run_id]: readonly string[],
  after: number,
): Promise<Course | null> {
  const reached = await courses.refresh(tree_id ?? '');
  return reached?.tree.course(run_id ?? '', after, reached.through) ?? null;
}

describe('a course ends early', () => {
  const d = new TreeDriver().ready();
  d.propose(proposal('THINK', {}));
  d.propose(proposal('FINISH', { response: 'done' }));
  const record = recorded(d);
  const proposals = record.entries.filter(({ text }) => text.includes('"kind":"proposal"'));

  test('if content that the fold needs is withheld; the part before stays, and later runs are known', () => {
    const [first] = proposals;
    const artifacts = new Map(record.artifacts);
    const gone = artifacts.get(first!.log_index)!.map((artifact) => {
      const { hash_sha256: sha256, byte_size = 0 } = artifactRef(artifact);
      return { kind: artifact.kind, case_id: artifact.case_id, withheld: 'erased' as const, sha256, byte_size };
    });
    artifacts.set(first!.log_index, gone);
    const agent = `${d.tree_id}.1`;
    const course = folded({ ...record, artifacts }, d.tree_id).course(agent, 0, 9)!;
    expect(course.cut).toEqual({ log_index: first!.log_index, why: 'withheld' });
    expect(course.moves.map((move) => nameOf(course, move))).toEqual(['run created|AUTHORIZE|0 -> running.ready']);
  });

  test('if the machines would not have produced the recorded entry, with nothing from there on', () => {
    const trace = record.entries.findIndex(({ type }) => type === 'step_trace');
    const { log_index } = record.entries[trace]!;
    const entries = record.entries.map((entry, n) =>
      n === trace ? { ...entry, text: entry.text.replace('SUCCESS', 'DENIED') } : entry,
    );
    const tree = folded({ ...record, entries }, d.tree_id);
    const course = tree.course(`${d.tree_id}.1`, 0, 9)!;
    expect(course.cut).toEqual({ log_index, why: 'differs' });
    expect(course.moves.every(([at]) => at < log_index)).toBe(true);
    expect(course.moves.length).toBeGreaterThan(3);
    expect(course.steps).toEqual([proposals[0]!.log_index]);
  });
});

test('U-05: a session has a course of its own, by the chart of sessions', () => {
  const d = new SessionDriver().start();
  d.next();
  const tree = folded(recorded(d), d.tree_id);
  const course = tree.course(d.tree_id, 0, 9)!;
  expect(course.moves.map((move) => nameOf(course, move)).slice(0, 2)).toEqual([
    'run opening|always|0 -> settling',
    'run settling|always|0 -> running',
  ]);
  expect(course.step_chart).toBeNull();
  expect(sessionOf(tree)?.session_id).toBe(d.tree_id);
});

test('a fold of a long tree yields to other work', async () => {
  const record = recorded(randomTree(11));
  let pauses = 0;
  const pause = (): undefined => void (pauses += 1);
  const tree = new TreeCourse(record.entries[0]!.tree_id);
  await foldUpTo(tree, { source: sourceOf(record, () => 1e9), pause }, 1e9);
  expect(pauses).toBe(record.entries.length);
});

/** Possible sizes of the log between two inputs. */
const ends = (d: TreeDriver, { entries }: Recorded): number[] => {
  let seq = 0;
  return d.decisions.map(({ entries: reasonState }) => entries[(seq += reasonState.length) - 1]!.log_index + 1);
};

function sourceOf({ entries, artifacts }: Recorded, size: () => number, read: number[] = []) {
  const all = (): readonly ReplayEntry[] => entries.filter(({ log_index }) => log_index < size());
  return {
    async *log() {
      await Promise.resolve();
      yield* all();
    },
    async *tree(tree_id: string, fromSeq = 0) {
      await Promise.resolve();
      for (const entry of all())
        if (entry.tree_id === tree_id && entry.seq >= fromSeq) {
          read.push(entry.log_index);
          yield entry;
        }
    },
    artifactsOf: ({ log_index }: EntryPlace) => Promise.resolve(artifacts.get(log_index ?? -1) ?? []),
  };
}

function stateOf({ entries }: Recorded, run_id: string): string {
  let state = 'created';
  for (const { type, text } of entries) {
    if (type !== 'audit_event') continue;
    const { body } = JSON.parse(text) as { body: { run_id: string; action_type: string; outcome_reason?: string } };
    const reasonState = body.outcome_reason?.split(':')[0] ?? '';
    const moves = /^(running|completed|failed|denied|cancelled)$/.test(reasonState);
    if (body.run_id === run_id && body.action_type === 'system' && moves) state = reasonState;
  }
  return state;
}
