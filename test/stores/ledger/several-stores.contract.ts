// What every ledger store must do that several stores can open, one after another or at once.

import { expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import { all, audited, opening, proposalId } from '../../fixtures/entries.js';
import { inputOf, proposalOf } from '../../fixtures/marks.js';
import { A, at, code, type Bench } from './ledger-bench.js';

export function severalStoresContract(bench: Bench): void {
  test('D13: while one store writes, another gets LEDGER_LOCKED; after its close it can write', async () => {
    const second = bench.keep(bench.ledger.open());
    await expect(second.acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
    await bench.scribe.write(bench.store, [opening(A)]);
    await bench.store.close();
    expect(await second.acquire()).toBeGreaterThan(bench.scribe.epoch);
  });

  test('D13: a writer whose lock was taken by another one can write nothing more', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    bench.ledger.loseLock();
    const second = bench.keep(bench.ledger.open());
    const epoch = await second.acquire();
    await expect(bench.scribe.write(bench.store, [audited(A)])).rejects.toEqual(code('LEDGER_CONFLICT'));
    await bench.checkLedger(1);
    bench.scribe.epoch = epoch;
    await bench.scribe.write(second, [audited(A)]);
    await bench.checkLedger(2);
  });

  test('a store that is not the writer cannot commit, with any epoch', async () => {
    const second = bench.keep(bench.ledger.open());
    await expect(second.commit(bench.scribe.prepare([opening(A)]))).rejects.toEqual(code('LEDGER_CONFLICT'));
    await bench.checkLedger(0);
  });

  test('a store that is not the writer, or was closed, cannot be reopened', async () => {
    await expect(bench.keep(bench.ledger.open()).reopen()).rejects.toEqual(code('LEDGER_CONFLICT'));
    await bench.store.close();
    await expect(bench.store.reopen()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
  });

  test('a closed store answers no call, and can be closed again', async () => {
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
      () => bench.store.artifactsOf(at(A, 0)),
      () => bench.store.artifact(null, sha256('')),
      () => proposalOf(bench.store, A, proposalId(1)),
      () => inputOf(bench.store, A, 'mine'),
    ]) {
      await expect(answer()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    }
    await bench.checkLedger(1);
  });

  test('only the writer erases', async () => {
    const other = bench.keep(bench.ledger.openReader());
    const erasure = { case_id: 'case-1', tree_ids: [], at: '', by: '' };
    await expect(other.erase(erasure)).rejects.toEqual(code('LEDGER_CONFLICT'));
  });

  test('only the writer writes run records', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    await bench.scribe.write(bench.store, [audited(A)], { ended: [A] });
    const other = bench.keep(bench.ledger.open());
    const batch = { records: [{ tree_id: A, run_id: A, text: '{}' }], trees: [] };
    await expect(other.runRecords.save(batch)).rejects.toEqual(code('LEDGER_CONFLICT'));
    expect(await bench.store.runRecords.count(A)).toBe(0);
  });
}
