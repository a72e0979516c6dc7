// The structure of a spec: when two structures are equal, and how a change is described.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { SessionSpec } from '../../../../../src/features/sessions/contract/session-spec.js';
import {
  diffStructure,
  isSameStructure,
  structureHash,
} from '../../../../../src/features/sessions/rules/spec/spec-structure.js';
import { make, phase, reversed, similarSpec, spec, verify } from '../../../../fixtures/spec.js';

const before = spec(
  phase('a', [make('a1'), make('a2', ['a1']), verify('a3')], { reviewer: 'manual' }),
  phase('b', [make('b1'), verify('b2')]),
);

/** An empty diff with these differences. */
const diff = (over: { phases?: object; tasks?: object }) => ({
  phases: { added: [], removed: [], moved: [], ...over.phases },
  tasks: { added: [], removed: [], moved: [], retyped: [], ...over.tasks },
});

test('the hash belongs to this literal text, because sessions store it for years', () => {
  const one = spec(phase('b', [verify('x')]), phase('a', [make('y')]));
  // sha256 of {"phases":[["a",1],["b",0]],"spec_version":1,"tasks":[["x","b","verify"],["y","a","implement"]]}
  expect(structureHash(one)).toBe('56d05da402cf6b4da2cc0de1b828d1f199b70be2d03539a274355e02c46b5bf4');
});

describe('not part of the structure', () => {
  test.each<readonly [string, SessionSpec]>([
    ['titles', { ...before, title: 'Other', phases: before.phases.map((each) => ({ ...each, title: 'Other' })) }],
    ['the id of the spec', { ...before, id: 'other' }],
    [
      'instructions, commands, dependencies, lanes and files',
      spec(
        phase('a', [make('a1'), make('a2', [], { instruction: 'Other.', lane: 'L', files: ['f'] }), verify('a3')]),
        phase('b', [
          make('b1', ['a1'], { acceptance: ['x'] }),
          verify('b2', [], { command: ['true'], cwd: '/sandbox/' }),
        ]),
      ),
    ],
    ['the order of tasks in a phase', spec(phase('a', [verify('a3'), make('a2'), make('a1')]), before.phases[1]!)],
    ['an explicit task type', spec(phase('a', [make('a1', [], { type: 'implement' }), make('a2'), verify('a3')]), before.phases[1]!)], // prettier-ignore
  ])('%s', (_what, after) => {
    expect(structureHash(after)).toBe(structureHash(before));
    expect(diffStructure(before, after)).toEqual(diff({}));
  });
});

describe('part of the structure', () => {
  const [a, b] = [before.phases[0]!, before.phases[1]!];
  test.each<readonly [string, SessionSpec, ReturnType<typeof diff>]>([
    [
      'a new task',
      spec(a, phase('b', [...b.tasks, make('b3')])),
      diff({ tasks: { added: [{ id: 'b3', phase_id: 'b' }] } }),
    ],
    [
      'a removed task',
      spec(phase('a', [make('a1'), verify('a3')]), b),
      diff({ tasks: { removed: [{ id: 'a2', phase_id: 'a' }] } }),
    ],
    [
      'a task in another phase',
      spec(phase('a', [make('a1'), verify('a3')]), phase('b', [make('a2'), ...b.tasks])),
      diff({ tasks: { moved: [{ id: 'a2', from: 'a', to: 'b' }] } }),
    ],
    [
      'a task that became a verification',
      spec(phase('a', [make('a1'), verify('a2'), verify('a3')]), b),
      diff({ tasks: { retyped: ['a2'] } }),
    ],
    [
      'a new phase, which moves no other',
      spec(phase('n', [make('n1')]), a, b),
      diff({ phases: { added: ['n'] }, tasks: { added: [{ id: 'n1', phase_id: 'n' }] } }),
    ],
    [
      'a removed phase',
      spec(b),
      diff({
        phases: { removed: ['a'] },
        tasks: { removed: ['a1', 'a2', 'a3'].map((id) => ({ id, phase_id: 'a' })) },
      }),
    ],
    ['phases in another order', spec(b, a), diff({ phases: { moved: ['a', 'b'] } })],
    [
      'a phase with another name: its tasks have moved',
      spec(a, phase('c', b.tasks)),
      diff({
        phases: { added: ['c'], removed: ['b'] },
        tasks: {
          moved: [
            { id: 'b1', from: 'b', to: 'c' },
            { id: 'b2', from: 'b', to: 'c' },
          ],
        },
      }),
    ],
  ])('%s', (_what, after, expected) => {
    expect(diffStructure(before, after)).toEqual(expected);
    expect(structureHash(after)).not.toBe(structureHash(before));
  });
});

describe('for any two specs', () => {
  test('the diff is empty exactly if the hashes are equal', () => {
    const same = { yes: 0, no: 0 };
    fc.assert(
      fc.property(similarSpec, similarSpec, fc.boolean(), (one, other, isReversed) => {
        const two = isReversed ? reversed(one) : other;
        const isSame = structureHash(one) === structureHash(two);
        same[isSame ? 'yes' : 'no'] += 1;
        expect(isSameStructure(diffStructure(one, two))).toBe(isSame);
      }),
      { numRuns: 1_000, seed: 1 },
    );
    expect(Math.min(same.yes, same.no)).toBeGreaterThan(200);
  });

  test('the diff of the reverse direction swaps added and removed, and reverses moves', () => {
    fc.assert(
      fc.property(similarSpec, similarSpec, (one, two) => {
        const [there, back] = [diffStructure(one, two), diffStructure(two, one)];
        expect(back.phases.added).toEqual(there.phases.removed);
        expect(back.tasks.added).toEqual(there.tasks.removed);
        expect(back.phases.moved.length === 0).toBe(there.phases.moved.length === 0);
        expect(back.tasks.moved.map(({ id, from, to }) => `${id} ${to} ${from}`).sort()).toEqual(
          there.tasks.moved.map(({ id, from, to }) => `${id} ${from} ${to}`).sort(),
        );
        expect(back.tasks.retyped.toSorted()).toEqual(there.tasks.retyped.toSorted());
      }),
    );
  });
});
