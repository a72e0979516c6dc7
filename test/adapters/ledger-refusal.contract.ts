// What every ledger store refuses, and what then becomes of it.

import { expect, test } from '@jest/globals';
import { sha256 } from '../../src/contract/hash.js';
import type { Batch } from '../../src/ports/ledger-store.js';
import { all, answered, audited, content, opening, proposalId, treeId } from '../fixtures/entries.js';
import { A, brought, code, mark, stepOf, type Bench } from './ledger-bench.js';

export function refusalContract(bench: Bench): void {
  test.each<[string, (batch: Batch) => Partial<Batch>]>([
    ['begins after the end', ({ from }) => ({ from: from + 1 })],
    ['begins before the end', ({ from }) => ({ from: from - 1 })],
    ['is of an epoch that is over', ({ epoch }) => ({ epoch: epoch - 1 })],
    ['is of an epoch that never was', ({ epoch }) => ({ epoch: epoch + 1 })],
  ])('S4-86: a batch that %s is LEDGER_CONFLICT: nothing is written, and the store goes on', async (_what, wrong) => {
    await bench.scribe.write(bench.store, [opening(A)]);
    const batch = bench.scribe.prepare(stepOf(A), { proposals: [mark(1)] });
    const changed = { ...batch, ...wrong(batch) };
    const refused = { ...changed, head: { ...batch.head, size: changed.from + 9 } };
    await expect(bench.store.commit(refused)).rejects.toEqual(code('LEDGER_CONFLICT'));
    await bench.checkLedger(1);
    expect(await bench.store.proposal(A, proposalId(1))).toBeNull();
    await bench.scribe.write(bench.store, stepOf(A), { proposals: [mark(1)] });
    await bench.checkLedger(10);
  });

  test.each<[string, (batch: Batch) => Partial<Batch>]>([
    ['leaves a gap in a tree', (batch) => renumbered(batch, (seq) => seq + 1)],
    ['repeats an entry of a tree', (batch) => renumbered(batch, (seq) => seq - 1)],
    ['repeats a proposal id', () => ({ proposals: [mark(2), mark(7)] })],
    ['repeats a proposal id in itself', () => ({ proposals: [mark(2), mark(2)] })],
    ['marks an input of a tree without entries', () => ({ inputs: [{ tree_id: treeId(9), input_id: 'x', seq: 0 }] })],
    ['ends a tree without entries', () => ({ ended: [treeId(9)] })],
    ['opens a tree without entries', () => ({ trees: [{ tree_id: treeId(9), state: 'opened' }] })],
    ['repeats an input id', () => ({ inputs: [{ tree_id: A, input_id: 'mine', seq: 9 }] })],
  ])('S4-86: a batch that %s is refused as a whole, and so is every one after it', async (_what, wrong) => {
    const first = { proposals: [mark(7)], inputs: [{ tree_id: A, input_id: 'mine', seq: 0 }] };
    await bench.scribe.write(bench.store, [opening(A)], first);
    const batch = bench.scribe.prepare([audited(A), answered(A, content('result', 'r'))]);
    await expect(bench.store.commit({ ...batch, ...wrong(batch) })).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await expect(bench.store.commit(batch)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await bench.checkLedger(1);
    expect(await bench.store.proposal(A, proposalId(2))).toBeNull();
    expect(await bench.store.artifact('case-0001', sha256('r'))).toBeNull();
  });

  test.each<readonly [string, (batch: Batch) => Partial<Batch>]>([
    ['a head of another size', ({ head }) => ({ head: { ...head, size: head.size + 1 } })],
    ['content of an entry that is not there', () => ({ artifacts: [brought(9, content('result', 'r'))] })],
    ['a case id that is a path', () => ({ artifacts: [brought(0, content('result', 'r', '../../etc'))] })],
    ...['_system', 'a.b', 'x'.repeat(81)].map((case_id): readonly [string, (batch: Batch) => Partial<Batch>] => [
      `the case id ${case_id}`,
      () => ({ artifacts: [brought(0, content('result', 'r', case_id))] }),
    ]),
    ['a hash in capitals', () => ({ artifacts: [{ ...brought(0, content('result', 'r')), sha256: 'A'.repeat(64) }] })],
    ['a hash cut short', () => ({ artifacts: [{ ...brought(0, content('result', 'r')), sha256: 'a'.repeat(63) }] })],
    [
      'a text with a newline',
      ({ entries }) => ({ entries: entries.map((sealed) => ({ ...sealed, text: sealed.text.replace(',', ',\n') })) }),
    ],
    ['a proposal id in capitals', () => ({ proposals: [{ ...mark(1), proposal_id: proposalId(10).toUpperCase() }] })],
    ['a proposal id that is none', () => ({ proposals: [{ ...mark(1), proposal_id: 'p1' }] })],
  ])('%s is a bug of the caller: nothing is written, and the store goes on', async (_what, wrong) => {
    const batch = bench.scribe.prepare([opening(A)]);
    await expect(bench.store.commit({ ...batch, ...wrong(batch) })).rejects.toEqual(code('INVARIANT'));
    await bench.checkLedger(0);
    await bench.store.commit(batch);
    await bench.checkLedger(1);
  });

  test('a commit that fails is LEDGER_UNAVAILABLE; nothing is written until the ledger is opened anew', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    bench.ledger.breakCommits();
    await expect(bench.scribe.write(bench.store, stepOf(A), { proposals: [mark(1)] })).rejects.toEqual(
      code('LEDGER_UNAVAILABLE'),
    );
    bench.ledger.repair();
    await expect(bench.scribe.write(bench.store, stepOf(A))).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await expect(bench.store.acquire()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    expect(await bench.store.head()).toMatchObject({ size: 1 });
    await bench.store.close();
    await bench.checkLedger(1);
    const second = bench.keep(bench.ledger.open());
    bench.scribe.epoch = await second.acquire();
    await bench.scribe.write(second, stepOf(A), { proposals: [mark(1)] });
    await bench.checkLedger(10);
  });

  test('a store that was closed answers nothing, and can be closed again', async () => {
    const batch = await bench.scribe.write(bench.store, [opening(A)]);
    const iteration = bench.store.log()[Symbol.asyncIterator]();
    await bench.store.close();
    await bench.store.close();
    for (const answer of [
      () => bench.store.acquire(),
      () => bench.store.head(),
      () => bench.store.commit(batch),
      () => iteration.next(),
      () => all(bench.store.tree(A)),
      () => all(bench.store.trees()),
      () => bench.store.artifactsOf(0),
      () => bench.store.artifact(null, sha256('')),
      () => bench.store.proposal(A, proposalId(1)),
      () => bench.store.input(A, 'mine'),
    ]) {
      await expect(answer()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    }
    await bench.checkLedger(1);
  });
}

function renumbered(batch: Batch, place: (seq: number) => number): Partial<Batch> {
  const entries = batch.entries.map((sealed) => ({
    ...sealed,
    entry: { ...sealed.entry, seq: place(sealed.entry.seq) },
  }));
  return { entries };
}
