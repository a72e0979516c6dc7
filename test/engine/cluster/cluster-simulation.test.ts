// Nothing that was answered is lost, nothing happens twice, and the ledger contradicts nothing, whatever fails. Titles
// name invariants: V of shared-counters.ts, W of shared-writer.ts, Q of shared-reservations.ts.

import { describe, expect, test } from '@jest/globals';
import { sized } from '../../fixtures/campaign.js';
import { simulateCluster } from './cluster-simulation.js';

/** `npm run campaign -- cluster-histories` runs 60 of each, and 1,000 short ones. */
const ALL_SEEDS = Array.from({ length: 5 }, (_, index) => index + 1);
const SEEDS = sized(1, ALL_SEEDS.length);
const SHORT_SEEDS = sized(12, 60);
const INPUTS = sized(120, 400);
/** A client gives up after eight tries. A history with fewer answers would check little. */
const ANSWERS_MIN = INPUTS / 4;

describe('workers of one ledger that fail', () => {
  test.each(ALL_SEEDS.slice(0, SEEDS))('S4-80, D4: clients, ledger and effects agree, seed %i', async (seed) => {
    const report = await simulateCluster({ seed, inputs: INPUTS });
    expect(report.violations).toEqual([]);
    expect(report.operations.ok).toBeGreaterThan(ANSWERS_MIN);
    expect(report.effects).toBeGreaterThan(5);
  });
});

/** Finds a poll that goes on after a restart, and settles effects a second time. */
const SLOW_POLL_SEED = 14;

describe('workers of one ledger that fail, near the quota of a case', () => {
  test.each([SLOW_POLL_SEED, ...ALL_SEEDS.filter((seed) => seed !== SLOW_POLL_SEED)].slice(0, SEEDS))(
    'S0-50, C82: the quota is never exceeded, and nothing stays reserved, seed %i',
    async (seed) => {
      const report = await simulateCluster({ seed, inputs: INPUTS, hasQuota: true });
      expect(report.violations).toEqual([]);
      expect(report.operations.ok).toBeGreaterThan(ANSWERS_MIN);
      expect(report.effects).toBeGreaterThan(5);
    },
  );
});

describe('workers of one ledger that fail, with counters that all of them change', () => {
  test.each(ALL_SEEDS.slice(0, SEEDS))('every recorded value is that of a recount, seed %i', async (seed) => {
    const report = await simulateCluster({ seed, inputs: INPUTS, hasCounters: true });
    expect(report.violations).toEqual([]);
    expect(report.differences).toEqual([]);
    expect(report.counted).toBeGreaterThan(40);
  });
});

describe('workers of one ledger that fail while they ask decision points', () => {
  test.each(ALL_SEEDS.slice(0, SEEDS))('every step is decided and has an outcome, seed %i', async (seed) => {
    const report = await simulateCluster({ seed, inputs: INPUTS, hasDecisionPoints: true });
    expect(report.violations).toEqual([]);
    expect(report.operations.ok).toBeGreaterThan(ANSWERS_MIN);
    expect(report.effects).toBeGreaterThan(5);
  });

  test('also in short histories', async () => {
    for (let seed = 1; seed <= SHORT_SEEDS; seed += 1) {
      const options = { inputs: 10, trees: 3, workers: 2 + (seed % 2), hasDecisionPoints: true };
      const { violations } = await simulateCluster({ ...options, seed });
      expect([seed, violations]).toEqual([seed, []]);
    }
  });
});

describe('short histories of workers that fail', () => {
  const SHORT = { inputs: 10, trees: 3, workers: 2 } as const;

  test('W2: a batch that was sent twice and refused may be written later, and its effects have outcomes', async () => {
    for (const seed of [55_614, 55_737, 61_372]) {
      const report = await simulateCluster({ ...SHORT, seed, workers: 2 + (seed % 2), hasCounters: true });
      expect([seed, report.violations, report.differences]).toEqual([seed, [], []]);
    }
  });

  test('V3: what another worker has written of a tree is counted once, wherever the log was read up to', async () => {
    for (const seed of [400_069, 400_371]) {
      const report = await simulateCluster({ ...SHORT, seed, workers: 2 + (seed % 2), hasCounters: true });
      expect([seed, report.violations, report.differences]).toEqual([seed, [], []]);
    }
  });

  test('Q6: a worker that releases what another one has made measures the usage again', async () => {
    expect((await simulateCluster({ ...SHORT, seed: 1_528, hasQuota: true })).violations).toEqual([]);
  });

  test('S0-50, C82: the quota is never exceeded', async () => {
    for (let seed = 1; seed <= SHORT_SEEDS; seed += 1) {
      const { violations } = await simulateCluster({ ...SHORT, seed, workers: 2 + (seed % 2), hasQuota: true });
      expect([seed, violations]).toEqual([seed, []]);
    }
  });
});
