import { expect, test } from '@jest/globals';
import type { SealedEntry } from '../../../../src/core/contract/run/entry.js';
import { SharedCopy } from '../../../../src/features/conditions/counters/shared-copy.js';

const FACT = { name: 'steps', used: 0, since: null, adds: 1 };

/** The facts of the first step of a tree, which count over it. */
const factsOf = (tree_id: string): SealedEntry =>
  ({
    leaf_hash: tree_id,
    entry: {
      type: 'input',
      seq: 0,
      body: {
        kind: 'facts',
        run_id: tree_id,
        time: '2026-01-05T10:00:00.000Z',
        counters: [{ ...FACT, key: `tree:${tree_id}` }],
      },
    },
  }) as unknown as SealedEntry;

test('accounts of trees that another worker has ended are forgotten, and those of open trees stay', async () => {
  const open = new Set<string>();
  const nothing = async function* () {
    // The log has nothing new.
  };
  const store = {
    log: nothing,
    tree: nothing,
    pending: () => Promise.resolve([]),
    openTrees: async function* () {
      for (const tree_id of await Promise.resolve(open)) yield { tree_id };
    },
    archives: { parts: () => Promise.resolve([]) },
  } as unknown as Parameters<(typeof SharedCopy)['read']>[0];
  const copy = await SharedCopy.read(store);
  const add = (from: number, to: number): void => {
    for (let i = from; i < to; i += 1) {
      copy.add(`run_${i}`, factsOf(`run_${i}`));
      if (i > 0) copy.settle(`run_${i}`, 1);
      open.add(`run_${i}`);
    }
  };
  add(0, 1_024);
  open.clear();
  await copy.catchUp();
  expect(copy.book.treeCount).toBe(1_024);
  add(1_024, 1_030);
  await copy.catchUp();
  // What is not committed yet stays too.
  expect(copy.book.treeCount).toBe(7);
  const usedOf = (tree_id: string) =>
    copy.book.read([{ name: 'steps', key: `tree:${tree_id}`, adds: 1 }], '2026-01-05T10:00:01.000Z')[0]?.used;
  expect(['run_0', 'run_1', 'run_1024'].map(usedOf)).toEqual([1, 0, 1]);
});
