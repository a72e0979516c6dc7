// Reading the entries of a case from its trees: their order, their verification, and its cost.

import '../../fixtures/features.js';
import { describe, expect, test } from '@jest/globals';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { readIntegrated } from '../../../src/runtime/ledger/integrated-log.js';
import type { LedgerStore, StoredEntry, TreeEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { leafHash } from '../../../src/core/ledger/proof/merkle.js';
import { CaseHistory, type TreeLookup } from '../../../src/runtime/case/case-history.js';
import { all, happened, opening, scribeOf, treeId, type Draft } from '../../fixtures/entries.js';
import { CASE, OTHER, payload, readStep, result, treeOf } from '../../features/exports/material.js';

const TAMPERED = expect.objectContaining({ code: 'LEDGER_TAMPERED' }) as unknown;
const TREES = 300;

/** `TREES` trees of the case and a third as many of another case, with interleaved entries. */
function mixed(): readonly Draft[] {
  const trees = Array.from({ length: (TREES * 4) / 3 }, (_, n) => {
    const case_id = n % 4 === 3 ? OTHER : CASE;
    const id = treeId(n + 1);
    return [...treeOf(id, case_id), ...readStep(id, 1, payload(n, case_id), result(n, case_id))];
  });
  const turns = Math.max(...trees.map(({ length }) => length));
  return Array.from({ length: turns }, (_, turn) => trees.flatMap((tree) => tree.slice(turn, turn + 1))).flat();
}

async function ledgerOf(drafts: readonly Draft[]): Promise<LedgerStore> {
  const store = memoryStore();
  const scribe = await scribeOf(store);
  await scribe.write(store, drafts);
  return store;
}

/** A store whose trees are read through `read`. */
const readThrough = (
  store: LedgerStore,
  read: (tree_id: string, entries: AsyncIterable<TreeEntry>) => AsyncIterable<TreeEntry>,
): LedgerStore =>
  new Proxy(store, {
    get: (target, key) => {
      if (key === 'tree') return (id: string, from?: number) => read(id, target.tree(id, from));
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });

const ALL = ['input', 'run_created', 'audit_event', 'step_trace', 'session_event'] as const;

async function placesIn(store: LedgerStore, known: TreeLookup | null = null): Promise<readonly number[]> {
  const history = new CaseHistory(store, { case_id: CASE, head: await store.head() }, known);
  const batches = await all(history.entries(ALL));
  return batches.flat().map(({ log_index }) => log_index);
}

describe('merging the trees of a case', () => {
  test('yields exactly the entries of the case in log order', async () => {
    const store = await ledgerOf(mixed());
    const ofOthers = new Set(Array.from({ length: TREES / 3 }, (_, n) => treeId(4 * n + 4)));
    const expected = (await all(store.log())).filter(({ tree_id }) => !ofOthers.has(tree_id));
    expect(await placesIn(store)).toEqual(expected.map(({ log_index }) => log_index));
    expect(expected.length).toBeGreaterThan(TREES * 10);
  });

  test('reads at most 129 trees concurrently, and closes all cursors', async () => {
    let [open, most] = [0, 0];
    const counted = readThrough(await ledgerOf(mixed()), async function* (_id, entries) {
      open += 1;
      most = Math.max(most, open);
      try {
        yield* entries;
      } finally {
        open -= 1;
      }
    });
    await placesIn(counted);
    expect(most).toBeGreaterThan(100);
    expect(most).toBeLessThanOrEqual(129);
    const history = new CaseHistory(counted, { case_id: CASE, head: await counted.head() });
    const first = history.entries(ALL);
    await first.next();
    expect(open).toBeGreaterThan(0);
    await first.return(undefined);
    expect(open).toBe(0);
  });

  test('yields no entry that was committed after its head', async () => {
    const store = memoryStore();
    const scribe = await scribeOf(store);
    await scribe.write(store, treeOf(treeId(1)));
    const head = await store.head();
    await scribe.write(store, [...readStep(treeId(1), 1, payload(1), result(1)), ...treeOf(treeId(2))]);
    const history = new CaseHistory(store, { case_id: CASE, head });
    expect((await all(history.entries(ALL))).flat()).toHaveLength(head.size);
  });
});

describe('S4-86: rejects an entry of the case', () => {
  const changes: readonly (readonly [string, (entry: StoredEntry) => readonly StoredEntry[]])[] = [
    ['whose text was changed', (entry) => [{ ...entry, text: entry.text.replace('"orchestrator"', '"agent"') }]],
    ['that was sealed again', (entry) => [resealed(entry, entry.text.replace('"orchestrator"', '"agent"'))]],
    ['that is missing', () => []],
    ['that is repeated', (entry) => [entry, entry]],
    ['that names another tree', (entry) => [{ ...entry, tree_id: treeId(9) }]],
    ['whose text names another tree', (entry) => [resealed(entry, entry.text.replaceAll(treeId(1), treeId(9)))]],
    ['with another sequence number', (entry) => [{ ...entry, seq: entry.seq + 1 }]],
    ['with an earlier log index', (entry) => [{ ...entry, log_index: 0 }]],
    ['that is of another type', (entry) => [{ ...entry, type: 'step_trace' }]],
  ];
  const resealed = (entry: StoredEntry, text: string): StoredEntry => ({ ...entry, text, leaf_hash: leafHash(text) });

  test.each(changes)('%s', async (_what, change) => {
    const store = await ledgerOf(treeOf(treeId(1)));
    const changed = readThrough(store, async function* (_id, entries) {
      // The creation of the orchestrator run.
      for await (const entry of readIntegrated(entries)) yield* entry.seq === 1 ? change(entry) : [entry];
    });
    await expect(placesIn(changed)).rejects.toEqual(TAMPERED);
  });

  test('that opens a tree of another case, or opens none', async () => {
    for (const first of [opening(treeId(1), OTHER), happened(treeId(1))]) {
      const store = await ledgerOf([opening(treeId(1))]);
      const other = await ledgerOf([first]);
      // The store lists the tree as one of the case, but returns entries with another case.
      expect(await store.treesOf(CASE)).toMatchObject([{ tree_id: treeId(1) }]);
      let reads = 0;
      const changed = readThrough(store, (id) => {
        reads += 1;
        return other.tree(id);
      });
      await expect(placesIn(changed)).rejects.toEqual(TAMPERED);
      expect(reads).toBe(1);
    }
  });

  test('a tree that has changed since the first pass', async () => {
    const store = await ledgerOf(treeOf(treeId(1)));
    let passes = 0;
    const changed = readThrough(store, async function* (_id, entries) {
      for await (const entry of entries) {
        if (entry.seq === 1) passes += 1;
        if (passes < 2 || entry.seq < 6) yield entry;
      }
    });
    const history = new CaseHistory(changed, { case_id: CASE, head: await store.head() });
    expect((await all(history.entries(ALL))).flat()).toHaveLength(7);
    await expect(all(history.entries(ALL))).rejects.toEqual(TAMPERED);
  });
});

describe('S4-86: detects a tree that lost its last entries', () => {
  const cutAt = (store: LedgerStore, end: number): LedgerStore =>
    readThrough(store, async function* (_id, entries) {
      for await (const entry of entries) if (entry.seq < end) yield entry;
    });
  const tipOf = async (store: LedgerStore) => {
    const entries = await all(store.tree(treeId(1)));
    return { seq: entries.length, prev: entries.at(-1)?.leaf_hash ?? '' };
  };

  test("from the engine's state of a live tree", async () => {
    const store = await ledgerOf(treeOf(treeId(1)));
    const tip = { ...(await tipOf(store)), ended: false };
    expect(await placesIn(store, () => Promise.resolve(tip))).toHaveLength(7);
    await expect(placesIn(cutAt(store, 6), () => Promise.resolve(tip))).rejects.toEqual(TAMPERED);
    // Longer than the engine knows, with another history, or unknown.
    for (const other of [{ ...tip, seq: 6 }, { ...tip, prev: '0'.repeat(64) }, null]) {
      await expect(placesIn(store, () => Promise.resolve(other))).rejects.toEqual(TAMPERED);
    }
  });

  test('from the run records of an ended tree', async () => {
    const store = memoryStore();
    const scribe = await scribeOf(store);
    await scribe.write(store, treeOf(treeId(1)), { ended: [treeId(1)] });
    const [ended] = await all(store.runRecords.unrecorded());
    const tip = { ...(await tipOf(store)), ended: true };
    // Not recorded yet: the fold of its entries shows whether this is the end.
    expect(await placesIn(store, () => Promise.resolve(tip))).toHaveLength(7);
    await expect(placesIn(store, () => Promise.resolve({ ...tip, ended: false }))).rejects.toEqual(TAMPERED);
    await store.runRecords.save({ records: [], trees: [{ ...ended!, seq: 7 }] });
    const noLookup = () => Promise.reject(new Error('the engine is not asked'));
    expect(await placesIn(store, noLookup)).toHaveLength(7);
    await expect(placesIn(cutAt(store, 6), noLookup)).rejects.toEqual(TAMPERED);
  });

  test('also if the tree has grown beyond the head since', async () => {
    const store = memoryStore();
    const scribe = await scribeOf(store);
    await scribe.write(store, treeOf(treeId(1)));
    const head = await store.head();
    await scribe.write(store, readStep(treeId(1), 1, payload(1), result(1)));
    const tip = { ...(await tipOf(store)), ended: false };
    const read = async (from: LedgerStore) => {
      const history = new CaseHistory(from, { case_id: CASE, head }, () => Promise.resolve(tip));
      return (await all(history.entries(ALL))).flat().length;
    };
    expect(await read(store)).toBe(7);
    await expect(read(cutAt(store, tip.seq - 1))).rejects.toEqual(TAMPERED);
  });
});
