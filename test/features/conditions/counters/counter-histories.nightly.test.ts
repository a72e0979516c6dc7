import { expect, test } from '@jest/globals';
import type { SharedBatch, SharedLedgerStore } from '../../../../src/engine/ports/ledger/shared-store.js';
import { FaultySharedStore } from '../../../fixtures/faulty-shared-store.js';
import { countHistories } from './counter-histories.js';

const MS_MAX = 600_000;

test(
  'short histories with faults: every recorded value is that of a recount (npm run campaign -- counters)',
  async () => {
    const report = await countHistories({ histories: 150, seed: 500_001 });
    expect([...report.differences, ...report.violations]).toEqual([]);
    expect(report.counted).toBeGreaterThan(600);
    expect(report.faults).toBeGreaterThan(60);
    expect(report.results.unknown).toBeGreaterThan(2);
  },
  MS_MAX,
);

/** A store that does not compare versions. */
class WithoutVersions extends FaultySharedStore {
  override commitTrees: SharedLedgerStore['commitTrees'] = (batch) => this.inner.commitTrees(without(batch));
}

const without = (batch: SharedBatch): SharedBatch => ({
  ...batch,
  trees: batch.trees.map((append) => ({ ...append, quotas: [] })),
});

test('without the versions of counters, a recount finds other values', async () => {
  const plant = (store: SharedLedgerStore): SharedLedgerStore => new WithoutVersions(store);
  const { differences } = await countHistories({ histories: 100, seed: 1, plant });
  expect(differences.length).toBeGreaterThan(0);
});
