import { describe, expect, test } from '@jest/globals';
import { memoryStore } from '../../../src/index.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, opening, scribeOf } from '../../fixtures/entries.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import { A, code, mark, stepOf } from '../ledger/ledger-bench.js';
import { ledgerStoreContract } from '../ledger/ledger-store.contract.js';

/** A second handle to the ledger, whose end leaves the ledger open. */
class Reader extends ForwardingStore {
  override close: LedgerStore['close'] = () => Promise.resolve();
}

const impossible = (): never => {
  throw new Error('the ledger ends with its store');
};

ledgerStoreContract(
  'memory',
  () => {
    const store = memoryStore();
    return {
      open: () => store,
      openReader: () => new Reader(store),
      loseLock: impossible,
      breakCommits: impossible,
      repair: impossible,
      remove: () => undefined,
    };
  },
  { opensAgain: false },
);

describe('the store in memory', () => {
  test('has no records, and no keys of cases', () => {
    const { records, caseKeys } = memoryStore();
    expect([records, caseKeys]).toEqual([null, undefined]);
  });

  test('two stores are two ledgers', async () => {
    const [one, other] = [memoryStore(), memoryStore()];
    await (await scribeOf(one)).write(one, [opening(A)]);
    expect([await one.head(), await other.head()]).toMatchObject([{ size: 1 }, { size: 0 }]);
  });

  test('after a failed commit nothing is written until it is reopened; what was committed is still there', async () => {
    const store = memoryStore();
    const scribe = await scribeOf(store);
    await scribe.write(store, [opening(A)], { proposals: [mark(1)] });
    await expect(store.commit(scribe.prepare(stepOf(A), { proposals: [mark(1)] }))).rejects.toEqual(
      code('LEDGER_UNAVAILABLE'),
    );
    await expect(store.acquire()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    const { epoch } = scribe;
    await store.reopen();
    await expect(store.commit(scribe.prepare(stepOf(A)))).rejects.toEqual(code('LEDGER_CONFLICT'));
    scribe.epoch = await store.acquire();
    expect(scribe.epoch).toBeGreaterThan(epoch);
    await scribe.write(store, stepOf(A), { proposals: [mark(2)] });
    expect(await all(store.log())).toHaveLength(10);
  });
});
