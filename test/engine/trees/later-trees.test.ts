import { expect, test } from '@jest/globals';
import { LATER_TREES_MAX, LaterTrees } from '../../../src/engine/trees/live-trees.js';
import { LedgerError } from '../../../src/core/errors.js';

const later = new LedgerError({ code: 'LEDGER_OF_LATER_VERSION', message: '' });

test('remembers only what this process cannot evaluate', () => {
  const trees = new LaterTrees();
  trees.note('run_a', later);
  trees.note('run_a', later);
  trees.note('run_b', new LedgerError({ code: 'LEDGER_UNSUPPORTED', message: '' }));
  trees.note('run_c', new LedgerError({ code: 'LEDGER_TAMPERED', message: '' }));
  trees.note('run_d', new Error('x'));
  expect(trees.ids).toEqual(['run_a', 'run_b']);
});

test('forgets the first tree for one past the limit', () => {
  const trees = new LaterTrees();
  for (let number = 0; number < LATER_TREES_MAX; number += 1) trees.note(`run_${number}`, later);
  expect([trees.count, trees.ids[0]]).toEqual([LATER_TREES_MAX, 'run_0']);
  trees.note('run_last', later);
  expect([trees.count, trees.ids[0], trees.ids.at(-1)]).toEqual([LATER_TREES_MAX, 'run_1', 'run_last']);
});
