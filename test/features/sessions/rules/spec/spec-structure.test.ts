// The structure of a spec: when two structures are equal.

import { describe, expect, test } from '@jest/globals';
import type { SessionSpec } from '../../../../../src/features/sessions/contract/session-spec.js';
import { structureHash } from '../../../../../src/features/sessions/rules/spec/spec-structure.js';
import { make, phase, spec, verify } from '../../../../fixtures/spec.js';

const before = spec(
  phase('a', [make('a1'), make('a2', ['a1']), verify('a3')], { reviewer: 'manual' }),
  phase('b', [make('b1'), verify('b2')]),
);

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
  });
});

describe('part of the structure', () => {
  const [a, b] = [before.phases[0]!, before.phases[1]!];
  test.each<readonly [string, SessionSpec]>([
    ['a new task', spec(a, phase('b', [...b.tasks, make('b3')]))],
    ['a removed task', spec(phase('a', [make('a1'), verify('a3')]), b)],
    ['a task in another phase', spec(phase('a', [make('a1'), verify('a3')]), phase('b', [make('a2'), ...b.tasks]))],
    ['a task that became a verification', spec(phase('a', [make('a1'), verify('a2'), verify('a3')]), b)],
    ['a new phase', spec(phase('n', [make('n1')]), a, b)],
    ['a removed phase', spec(b)],
    ['phases in another order', spec(b, a)],
    ['a phase with another name', spec(a, phase('c', b.tasks))],
  ])('%s', (_what, after) => {
    expect(structureHash(after)).not.toBe(structureHash(before));
  });
});
