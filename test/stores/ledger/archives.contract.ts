// How every ledger store removes an archived prefix.

import { expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import { extendHead } from '../../../src/core/ledger/proof/merkle.js';
import type { ArchiveRemoval } from '../../../src/engine/ports/ledger/archives.js';
import type { LogHead } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, answered, audited, content, opening, proposalId, treeId } from '../../fixtures/entries.js';
import { A, at, B, bytesOf, C, code, mark, stepOf, type Bench } from './ledger-bench.js';
import { inputOf, proposalOf } from '../../fixtures/marks.js';
import { requireContent } from '../../../src/core/ledger/require-content.js';

const D = treeId(4);
const LARGE = new Uint8Array(300_000).fill(7);

/** The removal of everything below `size`, from the current content of the store. */
export async function archivingOf(bench: Bench, size: number): Promise<ArchiveRemoval> {
  const [former = { size: 0, root: '', frontier: [] }] = (await bench.store.archives.parts()).slice(-1);
  const trees = new Map<string, number>();
  const leaves: string[] = [];
  for (const { log_index, tree_id, leaf_hash } of await all(bench.store.log())) {
    if (log_index >= size) continue;
    leaves.push(leaf_hash);
    trees.set(tree_id, (trees.get(tree_id) ?? 0) + 1);
  }
  const head: LogHead = extendHead(former, leaves);
  return {
    epoch: bench.scribe.epoch,
    part: { ...head, sha256: sha256(`file ${size}`), note: null },
    trees: [...trees].map(([tree_id, entries]) => ({ tree_id, entries })),
    cases: ['case-0001'],
  };
}

export async function remove(bench: Bench, size: number): Promise<ArchiveRemoval> {
  const archiving = await archivingOf(bench, size);
  bench.scribe.epoch = await bench.store.archives.remove(archiving);
  await bench.store.archives.tidy();
  return archiving;
}

/** Two trees that have ended, and two that have not: entries 0 to 10, 11 and 12, 13 to 15. */
const lay = async (bench: Bench): Promise<void> => {
  await bench.scribe.write(bench.store, [opening(A), ...stepOf(A), answered(A, content('result', LARGE))], {
    ended: [A],
    proposals: [mark(1)],
    inputs: [{ tree_id: A, input_id: 'mine', seq: 1 }],
  });
  await bench.scribe.write(bench.store, [opening(B, null), audited(B)], { ended: [B] });
  await bench.scribe.write(bench.store, [opening(C), answered(C, content('result', 'of C'))]);
  await bench.scribe.write(bench.store, [audited(C)]);
};

const testNewLedger = (bench: Bench): void =>
  test('a new ledger has no archived entries', async () => {
    const { archives } = bench.store;
    expect([await archives.parts(), await archives.treeCount()]).toEqual([[], 0]);
    expect([await archives.tree(A), await archives.hasCase('case-0001')]).toEqual([null, false]);
  });

/** The contract of a store that keeps all entries. */
export function unarchivedContract(bench: Bench): void {
  testNewLedger(bench);

  test('a removal is refused with LEDGER_UNAVAILABLE, and nothing is removed', async () => {
    await lay(bench);
    await expect(remove(bench, 11)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    expect(await all(bench.store.log())).toHaveLength(16);
    expect(await bench.store.archives.parts()).toEqual([]);
    await bench.scribe.write(bench.store, [audited(C)]);
    await bench.checkLedger(17);
  });
}

export function archivesContract(bench: Bench): void {
  testNewLedger(bench);

  test('the archived prefix is removed, the rest stays unchanged, and the head does not move', async () => {
    await lay(bench);
    const before = await all(bench.store.log());
    const head = await bench.store.head();
    expect(before).toHaveLength(16);
    const { part } = await remove(bench, 11);
    for (const store of [bench.store, bench.keep(bench.ledger.openReader())]) {
      expect(await all(store.log())).toEqual(before.slice(11));
      expect(await all(store.log(12))).toEqual(before.slice(12));
      expect(await store.head()).toEqual(head);
      expect(await all(store.trees())).toMatchObject([{ tree_id: B }, { tree_id: C }]);
      expect(await all(store.tree(C))).toHaveLength(3);
      expect(await store.archives.parts()).toEqual([part]);
      expect([await store.archives.tree(A), await store.archives.tree(B)]).toEqual([11, null]);
      expect(await store.archives.treeCount()).toBe(1);
      expect(await store.artifactsOf(at(B, 0))).toHaveLength(4);
      expect(bytesOf(requireContent(await store.artifactsOf(at(C, 1))))).toEqual(['of C']);
      expect(await store.snapshots.load(A)).toBeNull();
    }
  });

  test('every query for archived data is LEDGER_ARCHIVED, and never answered partly', async () => {
    await lay(bench);
    await remove(bench, 11);
    const archived = code('LEDGER_ARCHIVED');
    for (const store of [bench.store, bench.keep(bench.ledger.openReader())]) {
      for (const from of [0, 10]) await expect(all(store.log(from))).rejects.toEqual(archived);
      for (const from of [0, 3, 99]) await expect(all(store.tree(A, from))).rejects.toEqual(archived);
      for (const seq of [0, 10]) await expect(store.artifactsOf(at(A, seq))).rejects.toEqual(archived);
      await expect(store.artifact('case-0001', sha256('result 0'))).rejects.toEqual(archived);
      await expect(store.artifact(null, sha256('unknown'))).rejects.toEqual(archived);
      expect(await store.artifact('case-9999', sha256('unknown'))).toBeNull();
      expect(await all(store.tree(D))).toEqual([]);
      // Policies are attached to the remaining trees too.
      expect(await store.artifact(null, sha256('lanes: of the tests'))).not.toBeNull();
    }
  });

  test('marks stay: an id that was used is never new again', async () => {
    await lay(bench);
    await remove(bench, 11);
    expect(await proposalOf(bench.store, A, proposalId(1))).toEqual(mark(1));
    expect(await inputOf(bench.store, A, 'mine')).toBe(1);
  });

  test('the ledger continues: new trees, contents that were there before, another archive', async () => {
    await lay(bench);
    await remove(bench, 11);
    const again = content('result', LARGE);
    await bench.scribe.write(bench.store, [audited(C), opening(D), answered(D, again)], {
      ended: [C, D],
    });
    expect(await all(bench.store.log())).toHaveLength(8);
    expect(sha256(requireContent(await bench.store.artifactsOf(at(D, 1)))[0]!.bytes)).toBe(sha256(LARGE));
    expect(sha256((await bench.store.artifact('case-0001', sha256(LARGE)))!)).toBe(sha256(LARGE));
    const second = await remove(bench, 17);
    expect((await bench.store.archives.parts()).map(({ size }) => size)).toEqual([11, 17]);
    expect(second.trees).toEqual([
      { tree_id: B, entries: 2 },
      { tree_id: C, entries: 4 },
    ]);
    expect((await all(bench.store.log())).map(({ log_index }) => log_index)).toEqual([17, 18]);
    await remove(bench, 19);
    expect(await all(bench.store.log())).toEqual([]);
    expect(await bench.store.head()).toEqual(bench.scribe.head);
    await bench.scribe.write(bench.store, [opening(treeId(5)), answered(treeId(5), again)]);
    expect((await all(bench.store.log())).map(({ log_index }) => log_index)).toEqual([19, 20]);
    expect(sha256((await bench.store.artifact('case-0001', sha256(LARGE)))!)).toBe(sha256(LARGE));
    expect(await all(bench.store.trees())).toMatchObject([{ tree_id: treeId(5), log_index: 19 }]);
  });

  test('an archived tree cannot be opened again', async () => {
    await lay(bench);
    await remove(bench, 11);
    const batch = bench.scribe.prepare([opening(D)]);
    const [append] = batch.trees;
    const [opened] = append!.entries;
    const forged = { ...opened!, entry: { ...opened!.entry, tree_id: A } };
    const trees = [{ ...append!, tree_id: A, entries: [forged] }];
    await expect(bench.store.commit({ ...batch, trees })).rejects.toEqual(code('LEDGER_ARCHIVED'));
  });

  test('a reader during archiving either gets LEDGER_ARCHIVED or continues', async () => {
    await lay(bench);
    const reader = bench.keep(bench.ledger.openReader());
    expect(await all(reader.tree(A))).toHaveLength(11);
    await remove(bench, 11);
    await expect(all(reader.tree(A))).rejects.toEqual(code('LEDGER_ARCHIVED'));
    expect(await all(reader.tree(C))).toHaveLength(3);
    await bench.scribe.write(bench.store, [audited(C)]);
    expect(await all(reader.tree(C))).toHaveLength(4);
  });
}

/** The same for a ledger that several stores can open. */
export function reopenedArchivesContract(bench: Bench): void {
  test('a boundary inside a tree is refused, and nothing is removed', async () => {
    for (const size of [5, 12, 14]) {
      bench.scribe.epoch = await bench.store.acquire();
      if (size === 5) await lay(bench);
      await expect(remove(bench, size)).rejects.toThrow();
      const reader = bench.keep(bench.ledger.openReader());
      expect(await all(reader.log())).toHaveLength(16);
      expect(await reader.archives.parts()).toEqual([]);
      await bench.reopen();
    }
  });

  test('D13: only the writer removes anything, and only in its epoch', async () => {
    await lay(bench);
    const archiving = await archivingOf(bench, 11);
    const other = bench.keep(bench.ledger.open());
    await expect(other.archives.remove(archiving)).rejects.toEqual(code('LEDGER_CONFLICT'));
    const epoch = await bench.store.acquire();
    await expect(bench.store.archives.remove(archiving)).rejects.toEqual(code('LEDGER_CONFLICT'));
    expect(await all(bench.store.log())).toHaveLength(16);
    expect(await bench.store.archives.remove({ ...archiving, epoch })).toBeGreaterThan(epoch);
    await expect(bench.store.commit({ ...bench.scribe.prepare([audited(C)]), epoch })).rejects.toEqual(
      code('LEDGER_CONFLICT'),
    );
  });
}
