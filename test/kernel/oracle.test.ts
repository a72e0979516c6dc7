// XState's own interpreter is the oracle for ours: the same machines and inputs must give the same bytes.

import { describe, expect, test } from '@jest/globals';
import { TABLE_DRIVEN } from '../../src/kernel/interpreter/interpreter.js';
import { restoreTree, Tree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { sized } from '../fixtures/campaign.js';
import { randomTree } from '../fixtures/random-tree.js';
import { essence, TreeDriver } from '../fixtures/tree.js';
import { xstateInterpretation } from '../../src/kernel/interpreter/xstate-actors.js';

const XSTATE = xstateInterpretation();
const underXState = (tree_id: string): Tree => new Tree(tree_id, XSTATE);
const underTables = (tree_id: string): Tree => new Tree(tree_id, TABLE_DRIVEN);
/** A snapshot as the store gets it. */
const textOf = (tree: Tree): string => JSON.stringify(tree.snapshot());
const stored = (tree: Tree): TreeSnapshot => JSON.parse(textOf(tree)) as TreeSnapshot;

/** Whether both trees decide every input of this history as recorded, and have the same state after each. */
function differs(d: TreeDriver, ours: Tree, theirs: Tree, between: () => readonly [Tree, Tree]): string | null {
  let [a, b] = [ours, theirs];
  for (const [i, input] of d.inputs.entries()) {
    const [decided, expected] = [a.decide(input), b.decide(input)].map(essence);
    if (decided !== expected || decided !== essence(d.decisions[i]!))
      return `input ${i} of ${d.tree_id} is decided otherwise`;
    if (textOf(a) !== textOf(b)) return `input ${i} of ${d.tree_id} leaves another state`;
    [a, b] = between();
    [ours, theirs] = [a, b];
  }
  return null;
}

/** How many random trees both decide, and how many change interpreters. */
const [BOTH, EXCHANGED] = [sized(20, 300), sized(8, 100)];

describe('U-01 U-06: our interpreter and XState over the same machines', () => {
  test(`decide the same and have the same state after every input of ${BOTH} random trees`, () => {
    let inputs = 0;
    for (let seed = 1; seed <= BOTH; seed += 1) {
      const d = randomTree(seed);
      const trees = [underTables(d.tree_id), underXState(d.tree_id)] as const;
      expect(differs(d, ...trees, () => trees)).toBeNull();
      inputs += d.inputs.length;
    }
    expect(inputs).toBeGreaterThan(11 * BOTH);
  }, 180_000);

  test(`D16: each continues from the other's snapshot, after every input of ${EXCHANGED} random trees`, () => {
    for (let seed = 5_001; seed <= 5_000 + EXCHANGED; seed += 1) {
      const d = randomTree(seed);
      let [ours, theirs] = [underTables(d.tree_id), underXState(d.tree_id)];
      const exchange = (): readonly [Tree, Tree] => {
        const { policies } = d;
        [ours, theirs] = [
          restoreTree(stored(theirs), policies, TABLE_DRIVEN),
          restoreTree(stored(ours), policies, XSTATE),
        ];
        return [ours, theirs];
      };
      expect(differs(d, ours, theirs, exchange)).toBeNull();
    }
  }, 180_000);

  test("an inspected tree shows XState's actors, any other tree has none", () => {
    const seen = new Set<string>();
    const watched = new TreeDriver({ watch: ({ type }) => void seen.add(type) }).ready();
    expect(seen).toContain('@xstate.microstep');
    const plain = new TreeDriver().ready();
    expect(plain.decisions.map(essence)).toEqual(watched.decisions.map(essence));
  });
});
