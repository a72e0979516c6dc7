// The store's list of trees, compared with the log.

import { beforeEach, expect, test } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { memoryHeadStore } from '../../../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../../fixtures/ledger-model/model-store.js';
import type { LedgerStore, TreeSummary } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { LedgerReader } from '../../../../src/runtime/ledger/ledger-reader.js';
import { Bench } from '../../../fixtures/bench.js';
import { all as collected } from '../../../fixtures/entries.js';
import { ForwardingStore } from '../../../fixtures/forwarding-store.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';

const FIRST = 'case-0001';
const SECOND = 'case-0002';

let store: LedgerStore;
/** A tree of the first case, which has ended; one of the second, which has not. */
let ended: string;
let living: string;
beforeEach(async () => {
  const folder = tempFolder('trees');
  mkdirSync(join(folder, 'case-local'));
  const state = new LedgerModel();
  const { turnpike } = await Bench.open({ store: modelStore(state), sandbox: folder });
  const one = await turnpike.startAgent({ case: FIRST, link: 'remote' });
  const other = await turnpike.startAgent({ case: SECOND, link: 'remote' });
  await one.end();
  [ended, living] = [one.root_run_id, other.root_run_id];
  await turnpike.close();
  store = modelStore(state);
});

type List = (trees: readonly TreeSummary[]) => readonly TreeSummary[];

/** A store that lists other trees: all of them, and those of a case. */
function listing(all: List, ofCase: (case_id: string) => List): LedgerStore {
  const inner = store;
  return Object.assign(new ForwardingStore(inner), {
    trees: async function* () {
      yield* all(await collected(inner.trees()));
    },
    treesOf: async (case_id: string) => ofCase(case_id)(await inner.treesOf(case_id)),
  });
}

const same: List = (trees) => trees;
const without =
  (tree_id: string): List =>
  (trees) =>
    trees.filter((tree) => tree.tree_id !== tree_id);
const changed =
  (tree_id: string, over: Partial<TreeSummary>): List =>
  (trees) =>
    trees.map((tree) => (tree.tree_id === tree_id ? { ...tree, ...over } : tree));

async function problemsOf(from: LedgerStore): Promise<readonly (readonly [string, string | null])[]> {
  const verdict = await new LedgerReader(from, memoryHeadStore(await store.head())).verify();
  return verdict.ok ? [] : verdict.problems.map(({ rule, tree_id }) => [rule, tree_id] as const);
}

test('S4-86: a list that matches the log is correct', async () => {
  expect(await problemsOf(listing(same, () => same))).toEqual([]);
});

test('S4-86: reports a tree that is hidden from its case', async () => {
  expect(await problemsOf(listing(same, () => without(living)))).toEqual([['tree.listed', living]]);
});

test('S4-86: reports a tree that is listed for another case, for both cases', async () => {
  const [own] = await store.treesOf(SECOND);
  const found = await problemsOf(
    listing(same, (case_id) => (case_id === FIRST ? (trees) => [...trees, own!] : without(living))),
  );
  expect(found).toEqual([
    ['tree.listed', living],
    ['tree.listed', living],
  ]);
});

test('S4-86: reports a tree that is not listed, and one that is listed but does not exist', async () => {
  expect(await problemsOf(listing(without(living), () => same))).toEqual([['tree.listed', living]]);
  const added: TreeSummary = { tree_id: 'run_added0001', ended: false, log_index: 1 };
  expect(
    await problemsOf(
      listing(
        (trees) => [...trees, added],
        () => same,
      ),
    ),
  ).toEqual([['tree.listed', 'run_added0001']]);
});

test('D14: reports a live tree that is listed as ended, and an ended one that is not', async () => {
  expect(await problemsOf(listing(changed(living, { ended: true }), () => same))).toEqual([['tree.listed', living]]);
  expect(await problemsOf(listing(changed(ended, { ended: false }), () => same))).toEqual([['tree.listed', ended]]);
});

test('S4-86: reports a tree that is listed at another place', async () => {
  expect(await problemsOf(listing(changed(living, { log_index: 2 }), () => same))).toEqual([['tree.listed', living]]);
});

test.each([
  ['a live tree as ended', () => changed(living, { ended: true })],
  ['an ended tree as live', () => changed(ended, { ended: false })],
  ['a tree at another place', () => changed(living, { log_index: 2 })],
])('S4-86: reports a case that lists %s, although the whole list is right', async (_what, list) => {
  const found = await problemsOf(listing(same, () => list()));
  expect(found.map(([rule]) => rule)).toEqual(['tree.listed']);
});

test('S4-86: the end of a tree whose entries are not integrated yet may be missing in the log', async () => {
  const listed = listing(
    (trees) => changed(living, { ended: true })(trees),
    () => same,
  );
  expect(await problemsOf(listed)).toEqual([['tree.listed', living]]);
  const pending = [{ commit_no: 1, tree_id: living, seq: 9, leaf_hashes: ['0'.repeat(64)] }];
  expect(await problemsOf(Object.assign(listed, { pending: () => Promise.resolve(pending) }))).toEqual([]);
});
