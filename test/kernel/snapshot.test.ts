import { describe, expect, test } from '@jest/globals';
import { canonicalJson } from '../../src/core/contract/json.js';
import { restoreTree, Tree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { sized } from '../fixtures/campaign.js';
import { randomTree, REASONING } from '../fixtures/random-tree.js';
import { AGENT, essence, proposal, SHIPPED, TreeDriver } from '../fixtures/tree.js';

/** A snapshot after it was serialized and parsed. */
const stored = (tree: Tree): TreeSnapshot => JSON.parse(JSON.stringify(tree.snapshot())) as TreeSnapshot;

const TREES = sized(25, 300);
/** How many trees the other tests use. */
const LOOKED_AT = sized(25, 60);

describe('D16: a tree that is restored from a snapshot after every single input', () => {
  test(`S2-06 S2-18: continues as if nothing had happened, for ${TREES} random trees`, () => {
    let inputs = 0;
    for (let seed = 1; seed <= TREES; seed += 1) {
      const d = randomTree(seed);
      let tree = new Tree(d.tree_id);
      for (const [i, input] of d.inputs.entries()) {
        expect(essence(tree.decide(input)) === essence(d.decisions[i]!)).toBe(true);
        tree = restoreTree(stored(tree), d.policies);
        inputs += 1;
      }
      expect(tree.head).toEqual(d.tree.head);
      expect(tree.pending).toEqual(d.tree.pending);
      expect(tree.timers).toEqual(d.tree.timers);
      expect(tree.runs).toEqual(d.tree.runs);
      expect(tree.hasEnded).toBe(d.tree.hasEnded);
    }
    expect(inputs).toBeGreaterThan(12 * TREES);
  }, 180_000);
});

test('a snapshot is plain JSON: serializing and parsing it changes nothing', () => {
  for (let seed = 1; seed <= LOOKED_AT; seed += 1) {
    const { tree } = randomTree(seed, { close: false });
    expect(canonicalJson(stored(tree))).toBe(canonicalJson(tree.snapshot()));
    expect(tree.snapshot()).toEqual(restoreTree(stored(tree), randomTree(seed).policies).snapshot());
  }
});

test('S0-67: no snapshot ever contains the reasoning of a proposal, or its text', () => {
  for (let seed = 1; seed <= LOOKED_AT; seed += 1) {
    const d = randomTree(seed);
    const tree = new Tree(d.tree_id);
    for (const input of d.inputs) {
      tree.decide(input);
      expect(JSON.stringify(tree.snapshot())).not.toContain(REASONING);
    }
  }
});

describe('a restored tree', () => {
  const midway = (): TreeDriver => {
    const d = new TreeDriver().ready();
    d.act('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });
    d.startAgent();
    d.propose(proposal('READ_FILE', { path: '/sandbox/a.txt' }), null, 'run_testtree.2');
    return d;
  };

  test('has its live runs, pending work, policy and head', () => {
    const { tree, inputs } = midway();
    const again = restoreTree(stored(tree), inputs[0]!.materials);
    expect(again.isLive(AGENT)).toBe(true);
    expect(again.isLive(`${AGENT}.1.1`)).toBe(true);
    expect(again.isLive('run_nobody')).toBe(false);
    expect(again.pending.map(({ kind, run_id }) => [kind, run_id])).toEqual([
      ['perform', `${AGENT}.1.1`],
      ['gather', 'run_testtree.2'],
    ]);
    // Policies are cached by their bytes.
    expect(again.policy).toBe(tree.policy);
    expect(again.head).toEqual(tree.head);
  });

  test('has the same end, and accepts nothing more', () => {
    const d = new TreeDriver().ready();
    d.cancel('run_testtree', 'user');
    const again = restoreTree(stored(d.tree), SHIPPED);
    expect(again.hasEnded).toBe(true);
    expect(again.ending).toEqual({ state: 'cancelled', reason: 'by_caller' });
    const [input] = d.inputs.slice(-1);
    expect(again.decide(input!)).toMatchObject({ refused: true, ended: [] });
  });
});

test('an unopened tree has no snapshot, and a live one has no end', () => {
  expect(() => new Tree('run_testtree').snapshot()).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  expect(() => midEnding()).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
});

const midEnding = () => new TreeDriver().ready().tree.ending;
