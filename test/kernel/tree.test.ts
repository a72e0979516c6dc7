import { expect, test } from '@jest/globals';
import { randomTree } from '../fixtures/random-tree.js';
import { Fold } from '../../src/kernel/fold.js';
import { restoreTree, Tree } from '../../src/kernel/tree.js';

test('measure', () => {
  const N = 200;
  let t0 = performance.now();
  const trees = Array.from({ length: N }, (_, i) => randomTree(i + 1));
  const gen = performance.now() - t0;
  t0 = performance.now();
  const count: Record<string, number> = {};
  for (const d of trees) for (const s of d.story()) {
    const k = s.replace(/@.*/, '').replace(/[0-9]/g, '');
    count[k] = (count[k] ?? 0) + 1;
  }
  console.log(Object.entries(count).sort((a, b) => b[1] - a[1]).map((x) => x.join(' ')).join('\n'));
  const inputs = trees.reduce((n, t) => n + t.inputs.length, 0);
  const entries = trees.reduce((n, t) => n + t.entries.length, 0);
  const outcomes: Record<string, number> = {};
  for (const d of trees) for (const t of d.traces) { const k = `${t.action} ${t.outcome} ${t.rule_id} replay=${t.replay_of !== null}`; outcomes[k] = (outcomes[k] ?? 0) + 1; }
  console.log(Object.entries(outcomes).sort((a, b) => b[1] - a[1]).map((x) => x.join(' ')).join('\n'));
  t0 = performance.now();
  for (const d of trees) {
    const fold = new Fold(d.tree_id);
    for (const dec of d.decisions) for (const [i, e] of dec.entries.entries()) {
      const r = fold.take({ seq: e.entry.seq, text: e.text }, i === 0 ? dec.artifacts : []);
      if ('difference' in r) throw new Error(JSON.stringify(r));
    }
  }
  const foldMs = performance.now() - t0;
  t0 = performance.now();
  for (const d of trees.slice(0, 300)) {
    let tree = new Tree(d.tree_id);
    for (const [i, input] of d.inputs.entries()) {
      const dec = tree.decide(input);
      if (JSON.stringify(dec.entries) !== JSON.stringify(d.decisions[i]!.entries)) throw new Error('differs ' + d.tree_id + ' ' + i);
      tree = restoreTree(JSON.parse(JSON.stringify(tree.snapshot())), d.policies);
    }
  }
  const restoreMs = (performance.now() - t0) * N / 300;
  console.log({ gen, foldMs, restoreMs, inputs, entries, ended: trees.filter((t) => t.tree.ended).length });
  expect(1).toBe(1);
});
