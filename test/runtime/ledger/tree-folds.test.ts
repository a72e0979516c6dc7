// Run trees that are read again while they grow: each entry is folded once, and the result equals a fold from the first
// entry.

import { afterEach, expect, test } from '@jest/globals';
import { RunTreeFold } from '../../../src/runtime/ledger/run-tree.js';
import { TreeFolds } from '../../../src/runtime/ledger/tree-folds.js';
import type { LedgerStore, TreeEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { Bench } from '../../fixtures/bench.js';
import { FaultyStore } from '../../fixtures/faulty-store.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { systemPace } from '../../../src/system/system-pace.js';
import { proposal } from '../../fixtures/tree.js';

/** Counts the entries that are read of trees, and may fail in the middle. */
class Counting extends FaultyStore {
  read = 0;
  failsAfter = Infinity;
  override tree = (tree_id: string, fromSeq?: number) => this.#counted(this.inner.tree(tree_id, fromSeq));

  async *#counted(entries: AsyncIterable<TreeEntry>): AsyncIterable<TreeEntry> {
    for await (const entry of entries) {
      if (this.read >= this.failsAfter) throw new Error('the disk is gone');
      this.read += 1;
      yield entry;
    }
  }
}

const pace = systemPace();
const foldsOf = (store: LedgerStore, keptMax = 100) =>
  new TreeFolds({ store, pace }, (id) => new RunTreeFold(id), keptMax);

let bench: Bench;
afterEach(() => bench.close());

async function working(): Promise<{
  store: LedgerStore;
  tree_id: string;
  step: () => Promise<unknown>;
  end: () => Promise<unknown>;
}> {
  const store = memoryStore();
  bench = await Bench.open({ store });
  const run = await bench.turnpike.startAgent();
  let n = 0;
  const step = () => {
    const path = `/sandbox/${(n += 1)}.txt`;
    return run.respond(JSON.stringify(proposal('WRITE_FILE', { path, content: 'x' })));
  };
  return { store, tree_id: run.run_id.split('.', 1)[0] ?? '', step, end: () => run.end() };
}

test('S4-08: a live tree is folded on from its last position, once for all concurrent readers, with equal results', async () => {
  const { store: inner, tree_id, step } = await working();
  const store = new Counting(inner);
  const folds = foldsOf(store);
  for (let round = 0; round < 4; round += 1) {
    await step();
    const trees = await Promise.all([1, 2, 3].map(() => folds.get(tree_id)));
    const whole = await foldsOf(inner).get(tree_id);
    for (const tree of trees) expect(tree).toEqual(whole);
  }
  let entries = 0;
  for await (const { seq } of inner.tree(tree_id)) entries = seq + 1;
  expect(store.read).toBe(entries);
});

test('a returned tree is not changed by later entries', async () => {
  const { store, tree_id, step } = await working();
  const folds = foldsOf(store);
  await step();
  const before = await folds.get(tree_id);
  const text = JSON.stringify(before.runs);
  await step();
  expect((await folds.get(tree_id)).runs.length).toBeGreaterThan(before.runs.length);
  expect(JSON.stringify(before.runs)).toBe(text);
});

test('a failed read returns no partial tree, and the next read returns the complete one', async () => {
  const { store: inner, tree_id, step } = await working();
  await step();
  const store = new Counting(inner);
  const folds = foldsOf(store);
  store.failsAfter = 5;
  const reads = await Promise.allSettled([folds.get(tree_id), folds.get(tree_id)]);
  expect(reads.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  store.failsAfter = Infinity;
  expect(await folds.get(tree_id)).toEqual(await foldsOf(inner).get(tree_id));
});

test('an ended tree is not cached: it may be archived', async () => {
  const { store: inner, tree_id, end } = await working();
  await end();
  const store = new Counting(inner);
  const folds = foldsOf(store);
  const first = await folds.get(tree_id);
  const { read } = store;
  expect(await folds.get(tree_id)).toEqual(first);
  expect(store.read).toBe(2 * read);
});

test('the cache is limited and keeps the most recently used trees', async () => {
  const { store: inner, tree_id, step } = await working();
  await step();
  const store = new Counting(inner);
  const folds = foldsOf(store, 1);
  await folds.get(tree_id);
  const { read } = store;
  await folds.get(tree_id);
  expect(store.read).toBe(2 * read);
});

test('a cancelled read ends alone: other readers get the tree, and continue from its position', async () => {
  const { store: inner, tree_id, step } = await working();
  for (let n = 0; n < 3; n += 1) await step();
  const store = new Counting(inner);
  const folds = foldsOf(store);
  const leave = new AbortController();
  let read = 0;
  const control = {
    signal: leave.signal,
    pause: () => {
      read += 1;
      if (read === 5) leave.abort();
      leave.signal.throwIfAborted();
      return undefined;
    },
  };
  const cancelled = folds.get(tree_id, control);
  const other = folds.get(tree_id);
  await expect(cancelled).rejects.toThrow('aborted');
  expect(await other).toEqual(await foldsOf(inner).get(tree_id));
  let entries = 0;
  for await (const { seq } of inner.tree(tree_id)) entries = seq + 1;
  expect(store.read).toBe(entries);
  // No entry is read for a caller that had cancelled before its turn.
  await expect(folds.get(tree_id, control)).rejects.toThrow('aborted');
  expect(store.read).toBe(entries);
});
