// What a session keeps when its spec changes. Completed work stays completed, a changed phase is reviewed again, and no
// completed task is lost without `force`.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  isVerifyTask,
  type SessionSpec,
  type SpecPhase,
} from '../../../../src/features/sessions/contract/session-spec.js';
import {
  planRebase,
  type RebaseResult,
  type RebasePlan,
  type RebaseRequest,
} from '../../../../src/features/sessions/rules/rebase-session.js';
import { structureHash } from '../../../../src/features/sessions/rules/spec/spec-structure.js';
import { sized } from '../../../fixtures/campaign.js';
import { make, phase, reversed, similarSpec, spec, verify } from '../../../fixtures/spec.js';

const GATE = { reviewer: 'callback' } as const;
const A = phase('a', [make('a1'), make('a2'), verify('a3')], GATE);
const B = phase('b', [make('b1'), verify('b2')], GATE);
const C = phase('c', [make('c1'), verify('c2')], GATE);
const before = spec(A, B, C);

const ALL = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'c2'];
const rebase = (after: SessionSpec, over: Partial<RebaseRequest> = {}): RebaseResult =>
  planRebase({ before, after, completed: ALL, skipped: [], satisfied: ['a', 'b', 'c'], force: false, ...over });

function planOf(result: RebaseResult): RebasePlan {
  if (result.kind === 'refused') throw new Error(`no plan: ${JSON.stringify(result)}`);
  return result.plan;
}

test('a spec with the same tasks and checks changes nothing, whatever its spelling', () => {
  const hints = make('a1', ['a2'], { title: 'Other', files: ['x.md'], acceptance: [] });
  const spelt = verify('a3', [], { cwd: '/sandbox/', timeout_seconds: 300, instruction: 'Have it run.' });
  const result = rebase(spec({ ...A, title: 'Other', tasks: [spelt, make('a2'), hints] }, B, C));
  expect(result.kind).toBe('no_change');
  expect(planOf(result)).toMatchObject({ completed: ['a3', 'a2', 'a1', ...ALL.slice(3)], satisfied: ['a', 'b', 'c'] });
});

describe('a changed instruction or check is checked again', () => {
  test.each<readonly [string, SpecPhase]>([
    ['another command', { ...A, tasks: [make('a1'), make('a2'), verify('a3', [], { command: ['make', 'check'] })] }],
    ['another folder', { ...A, tasks: [make('a1'), make('a2'), verify('a3', [], { cwd: '/sandbox/x' })] }],
    ['another time', { ...A, tasks: [make('a1'), make('a2'), verify('a3', [], { timeout_seconds: 299 })] }],
    ['another instruction', { ...A, tasks: [make('a1', [], { instruction: 'x' }), make('a2'), verify('a3')] }],
    ['other criteria', { ...A, tasks: [make('a1', [], { acceptance: ['x'] }), make('a2'), verify('a3')] }],
    ['another reviewer', { ...A, gate: { reviewer: 'manual' } }],
    ['another program that reviews', { ...A, gate: { reviewer: 'command', command: ['review'] } }],
    ['another word to the reviewer', { ...A, gate: { ...GATE, instruction: 'Be strict.' } }],
    ['a gate that is no longer required', { ...A, gate: { ...GATE, required: false } }],
    ['no gate', { id: A.id, title: A.title, tasks: A.tasks }],
  ])('%s', (_what, a) => {
    const result = rebase(spec(a, B, C));
    expect(result.kind).toBe('plan');
    expect(planOf(result)).toMatchObject({
      structure_hash: structureHash(before),
      completed: ['a1', 'a2', 'b1', 'b2', 'c1', 'c2'],
      satisfied: ['b', 'c'],
    });
  });

  test('and so is a phase in which a task is reopened', () => {
    const result = rebase(before, { completed: ALL.filter((id) => id !== 'b1'), skipped: ['b1'] });
    expect(result.kind).toBe('no_change');
    expect(planOf(result)).toMatchObject({ completed: ['a1', 'a2', 'a3', 'c1', 'c2'], satisfied: ['a', 'c'] });
  });
});

describe('completed tasks that the new spec lacks', () => {
  const without = spec(phase('a', [make('a2'), verify('a3')], GATE), C);

  test('prevent the rebase, and are listed', () => {
    expect(rebase(without)).toEqual({
      kind: 'refused',
      code: 'REBASE_COMPLETED_TASKS_REMOVED',
      task_ids: ['a1', 'b1', 'b2'],
    });
  });

  test('do not matter if they were not completed', () => {
    expect(planOf(rebase(without, { completed: ['a2', 'c1'] }))).toMatchObject({ completed: ['a2', 'c1'] });
  });

  test('are lost only with force', () => {
    expect(planOf(rebase(without, { force: true }))).toMatchObject({
      completed: ['a2', 'c1', 'c2'],
      satisfied: ['c'],
    });
  });
});

describe('tasks and gates that stay', () => {
  test.each<readonly [string, SessionSpec, Omit<RebasePlan, 'structure_hash'>]>([
    [
      'a new task: the verification and the gate of its phase come after it again',
      spec(A, phase('b', [...B.tasks, make('b3')], GATE), C),
      { completed: ['a1', 'a2', 'a3', 'b1', 'c1', 'c2'], satisfied: ['a', 'c'] },
    ],
    [
      'a new phase before all others: nothing that was judged has changed',
      spec(phase('n', [make('n1')], GATE), A, B, C),
      { completed: ALL, satisfied: ['a', 'b', 'c'] },
    ],
    [
      'a task that has moved: both its phases are affected',
      spec(phase('a', [make('a1'), verify('a3')], GATE), phase('b', [make('a2'), ...B.tasks], GATE), C),
      { completed: ['a1', 'a2', 'b1', 'c1', 'c2'], satisfied: ['c'] },
    ],
    ['phases that have changed places', spec(A, C, B), { completed: ['a1', 'a2', 'a3', 'c1', 'b1'], satisfied: ['a'] }],
    [
      'a task that became a verification has not run as one',
      spec(phase('a', [make('a1'), verify('a2'), verify('a3')], GATE), B, C),
      { completed: ['a1', 'b1', 'b2', 'c1', 'c2'], satisfied: ['b', 'c'] },
    ],
    [
      'a verification that became work is not done',
      spec(phase('a', [make('a1'), make('a2'), make('a3')], GATE), B, C),
      { completed: ['a1', 'a2', 'b1', 'b2', 'c1', 'c2'], satisfied: ['b', 'c'] },
    ],
    [
      'a new gate has no verdict yet',
      spec({ ...A, gate: { reviewer: 'manual' } }, B, phase('c', [...C.tasks, make('c3')], GATE)),
      { completed: ['a1', 'a2', 'b1', 'b2', 'c1'], satisfied: ['b'] },
    ],
    [
      'a removed phase, whose tasks moved to another',
      spec(A, phase('b', [...B.tasks, ...C.tasks], GATE)),
      { completed: ['a1', 'a2', 'a3', 'b1', 'c1'], satisfied: ['a'] },
    ],
  ])('%s', (_what, after, expected) => {
    const plan = planOf(rebase(after));
    expect(plan).toEqual({ ...expected, structure_hash: structureHash(after) });
  });
});

describe('for any two specs', () => {
  const drawn = fc.record({
    one: similarSpec,
    other: similarSpec,
    isReversed: fc.boolean(),
    done: fc.infiniteStream(fc.boolean()),
    force: fc.boolean(),
  });
  const idsOf = ({ phases }: SessionSpec): string[] => phases.flatMap(({ tasks }) => tasks.map(({ id }) => id));
  /** What a gate judges of a phase: its tasks with their types. */
  const workOf = ({ tasks }: SpecPhase): string =>
    JSON.stringify(tasks.map((task) => [task.id, isVerifyTask(task)] as const).sort());

  /** The instructions and checks of a phase. */
  const wordsOf = ({ tasks, gate }: SpecPhase): string => {
    const words = tasks.map((task) => [task.id, isVerifyTask(task) ? task.command : task.instruction] as const);
    return JSON.stringify([words.sort(), gate]);
  };
  const wordsIn = ({ phases }: SessionSpec): string => JSON.stringify(phases.map((each) => wordsOf(each)));

  test('completed work stays completed, is lost only with force, and gates stay only for unchanged phases', () => {
    const seen = { no_change: 0, refused: 0, plan: 0 };
    fc.assert(
      fc.property(drawn, ({ one, other, isReversed, done, force }) => {
        const two = isReversed ? reversed(one) : other;
        const completed = idsOf(one).filter(() => done.next().value!);
        const satisfied = one.phases.map(({ id }) => id).filter(() => done.next().value!);
        const result = planRebase({ before: one, after: two, completed, skipped: [], satisfied, force });
        seen[result.kind] += 1;
        const gone = completed.filter((id) => !idsOf(two).includes(id));
        const isSame = structureHash(one) === structureHash(two) && wordsIn(one) === wordsIn(two);
        expect(result.kind === 'no_change').toBe(isSame);
        if (result.kind === 'refused') expect({ force, gone }).toEqual({ force: false, gone: result.task_ids });
        if (result.kind === 'refused') return;
        const { plan } = result;
        expect(force || gone.length === 0).toBe(true);
        const made = ({ phases }: SessionSpec): string[] =>
          phases.flatMap(({ tasks }) => tasks.flatMap((task) => (isVerifyTask(task) ? [] : [task.id])));
        const kept = made(two).filter((id) => made(one).includes(id) && completed.includes(id));
        expect(plan.completed).toEqual(expect.arrayContaining(kept));
        expect(completed).toEqual(expect.arrayContaining([...plan.completed]));
        expect(satisfied).toEqual(expect.arrayContaining([...plan.satisfied]));
        for (const id of plan.satisfied) {
          const works = [one, two].map(({ phases }) => workOf(phases.find((each) => each.id === id)!));
          expect(works[0]).toBe(works[1]);
          const words = [one, two].map(({ phases }) => wordsOf(phases.find((each) => each.id === id)!));
          expect(words[0]).toBe(words[1]);
        }
      }),
      { numRuns: sized(300, 1_000), seed: 1 },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(10);
  });

  test('no phase has completed verifications and pending work, unless it had before', () => {
    const unfinishedButVerified = ({ phases }: SessionSpec, done: ReadonlySet<string>): string[] =>
      phases
        .filter(({ tasks }) => tasks.some((task) => isVerifyTask(task) && done.has(task.id)))
        .filter(({ tasks }) => tasks.some((task) => !isVerifyTask(task) && !done.has(task.id)))
        .map(({ id }) => id);
    fc.assert(
      fc.property(drawn, ({ one, other: two, done }) => {
        const completed = idsOf(one).filter(() => done.next().value!);
        fc.pre(unfinishedButVerified(one, new Set(completed)).length === 0);
        const result = planRebase({ before: one, after: two, completed, skipped: [], satisfied: [], force: true });
        fc.pre(result.kind !== 'refused');
        expect(unfinishedButVerified(two, new Set(planOf(result).completed))).toEqual([]);
      }),
      { numRuns: sized(250, 500), seed: 1 },
    );
  });
});
