// What every ledger store refuses, and how it continues afterwards.

import { expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { SealedEntry } from '../../../src/core/contract/run/entry.js';
import type { Batch, EntryPlace, TreeAppend } from '../../../src/engine/ports/ledger/ledger-store.js';
import { answered, audited, content, opening, proposalId } from '../../fixtures/entries.js';
import { proposalOf } from '../../fixtures/marks.js';
import { A, B, brought, code, mark, stepOf, type Bench } from './ledger-bench.js';

/** The same batch, with its only append changed. */
const changed =
  (change: (append: TreeAppend) => Partial<TreeAppend>) =>
  (batch: Batch): Batch => ({ ...batch, trees: batch.trees.map((append) => ({ ...append, ...change(append) })) });

export function refusalContract(bench: Bench): void {
  test.each<[string, (batch: Batch) => Batch]>([
    ['begins after the end of its tree', renumbered(1)],
    ['begins before the end of its tree', renumbered(-1)],
    ['is of an earlier epoch', ({ epoch, trees }) => ({ epoch: epoch - 1, trees })],
    ['is of a future epoch', ({ epoch, trees }) => ({ epoch: epoch + 1, trees })],
  ])('S4-86: a batch that %s is LEDGER_CONFLICT: nothing is written, and the store continues', async (_what, wrong) => {
    await bench.scribe.write(bench.store, [opening(A), audited(A)]);
    const batch = bench.scribe.prepare(stepOf(A), { proposals: [mark(1)] });
    await expect(bench.store.commit(wrong(batch))).rejects.toEqual(code('LEDGER_CONFLICT'));
    await bench.checkLedger(2);
    expect(await proposalOf(bench.store, A, proposalId(1))).toBeNull();
    await bench.scribe.write(bench.store, stepOf(A), { proposals: [mark(1)] });
    await bench.checkLedger(11);
  });

  test.each<[string, (batch: Batch) => Batch]>([
    ['repeats a proposal id', changed(() => ({ proposals: [mark(2), mark(7)] }))],
    ['contains a proposal id twice', changed(() => ({ proposals: [mark(2), mark(2)] }))],
    ['repeats an input id', changed(() => ({ inputs: [{ tree_id: A, input_id: 'mine', seq: 9 }] }))],
  ])('S4-86: a batch that %s is refused as a whole, and so is every one after it', async (_what, wrong) => {
    const first = { proposals: [mark(7)], inputs: [{ tree_id: A, input_id: 'mine', seq: 0 }] };
    await bench.scribe.write(bench.store, [opening(A)], first);
    const batch = bench.scribe.prepare([audited(A), answered(A, content('result', 'r'))]);
    await expect(bench.store.commit(wrong(batch))).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await expect(bench.store.commit(batch)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await bench.checkLedger(1);
    expect(await proposalOf(bench.store, A, proposalId(2))).toBeNull();
    expect(await bench.store.artifact('case-0001', sha256('r'))).toBeNull();
  });

  test.each<readonly [string, (batch: Batch) => Batch]>([
    ['an append without entries', changed(() => ({ entries: [] }))],
    ['two appends of one tree', (batch) => ({ ...batch, trees: [...batch.trees, ...batch.trees] })],
    ['an entry of another tree', changed(({ entries }) => ({ entries: moved(entries, { tree_id: B }) }))],
    ['a gap between its entries', changed(({ entries }) => ({ entries: [...entries, ...moved(entries, { seq: 2 })] }))],
    ['a new tree without `opened`', changed(() => ({ opened: null }))],
    [
      'a tree that is opened in the middle',
      changed(({ entries }) => ({ from: 1, entries: moved(entries, { seq: 1 }) })),
    ],
    ['a mark of an input of another tree', changed(() => ({ inputs: [{ tree_id: B, input_id: 'x', seq: 0 }] }))],
    ['content of a missing entry', changed(() => ({ artifacts: [brought(9, content('result', 'r'))] }))],
    ['a case id that is a path', changed(() => ({ artifacts: [brought(0, content('result', 'r', '../../etc'))] }))],
    ...['_system', 'a.b', 'x'.repeat(81)].map((case_id): readonly [string, (batch: Batch) => Batch] => [
      `the case id ${case_id}`,
      changed(() => ({ artifacts: [brought(0, content('result', 'r', case_id))] })),
    ]),
    [
      'a hash in capitals',
      changed(() => ({ artifacts: [{ ...brought(0, content('result', 'r')), sha256: 'A'.repeat(64) }] })),
    ],
    [
      'a hash cut short',
      changed(() => ({ artifacts: [{ ...brought(0, content('result', 'r')), sha256: 'a'.repeat(63) }] })),
    ],
    [
      'a text with a newline',
      changed(({ entries }) => ({
        entries: entries.map((sealed) => ({ ...sealed, text: sealed.text.replace(',', ',\n') })),
      })),
    ],
    [
      'a proposal id in capitals',
      changed(() => ({ proposals: [{ ...mark(1), proposal_id: proposalId(10).toUpperCase() }] })),
    ],
    ['a proposal id that is not a UUID', changed(() => ({ proposals: [{ ...mark(1), proposal_id: 'p1' }] }))],
  ])('%s is a bug of the caller: nothing is written, and the store continues', async (_what, wrong) => {
    const batch = bench.scribe.prepare([opening(A)]);
    await expect(bench.store.commit(wrong(batch))).rejects.toEqual(code('INVARIANT'));
    await bench.checkLedger(0);
    await bench.scribe.write(bench.store, [opening(A)]);
    await bench.checkLedger(1);
  });
}

/** The same entries at other positions. */
const moved = (entries: readonly SealedEntry[], place: Partial<EntryPlace>): readonly SealedEntry[] =>
  entries.map((sealed) => ({ ...sealed, entry: { ...sealed.entry, ...place } }));

/** The same batch, later or earlier in its tree. */
const renumbered = (by: number) =>
  changed(({ from, entries }) => ({
    from: from + by,
    entries: entries.map((sealed) => ({ ...sealed, entry: { ...sealed.entry, seq: sealed.entry.seq + by } })),
  }));
