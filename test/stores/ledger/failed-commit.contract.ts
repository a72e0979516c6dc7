// What every ledger store must do after a failed commit.

import { expect, test } from '@jest/globals';
import { audited, opening, proposalId } from '../../fixtures/entries.js';
import { A, B, code, ledgerBench, mark, stepOf, type LedgerUnderTest } from './ledger-bench.js';

/** Runs the tests of failed commits over one kind of store, as part of the whole contract or alone. */
export function failedCommitContract(makeLedger: () => LedgerUnderTest): void {
  const bench = ledgerBench(makeLedger);

  test('a failed commit is LEDGER_UNAVAILABLE; nothing is written until the ledger is reopened', async () => {
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

  test('a store is reopened after a failed commit: it keeps the lock, and continues in a new epoch', async () => {
    await bench.scribe.write(bench.store, [opening(A)], { proposals: [mark(1)] });
    bench.ledger.breakCommits();
    await expect(bench.scribe.write(bench.store, stepOf(A))).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    const reading = bench.store.log()[Symbol.asyncIterator]();
    bench.ledger.repair();
    await bench.store.reopen();
    const second = bench.keep(bench.ledger.open());
    await expect(second.acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
    await expect(bench.scribe.write(bench.store, stepOf(A))).rejects.toEqual(code('LEDGER_CONFLICT'));
    await bench.store.reopen();
    const { epoch } = bench.scribe;
    bench.scribe.epoch = await bench.store.acquire();
    expect(bench.scribe.epoch).toBeGreaterThan(epoch);
    expect(await bench.store.head()).toMatchObject({ size: 1 });
    await bench.scribe.write(bench.store, stepOf(A), { proposals: [mark(2)] });
    const keys = [1, 2].map((n) => ({ root_run_id: A, proposal_id: proposalId(n) }));
    expect(await bench.store.marks(keys)).toEqual([mark(1), mark(2)]);
    // An open iteration continues where it was.
    expect(await reading.next()).toMatchObject({ value: { log_index: 0 } });
    expect(await reading.next()).toMatchObject({ value: { log_index: 1 } });
    await bench.checkLedger(10);
  });

  test('D2: after a failed commit no run record is written', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    await bench.scribe.write(bench.store, [audited(A)], { ended: [A] });
    bench.ledger.breakCommits();
    await expect(bench.scribe.write(bench.store, [opening(B)])).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    bench.ledger.repair();
    const late = { records: [{ tree_id: A, run_id: A, text: '{}' }], trees: [] };
    await expect(bench.store.runRecords.save(late)).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
  });
}
