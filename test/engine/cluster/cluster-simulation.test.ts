// Nothing that was answered is lost, nothing happens twice, and the ledger contradicts nothing, whatever fails.

import { describe, expect, test } from '@jest/globals';
import { sized } from '../../fixtures/campaign.js';
import { simulateCluster } from './cluster-simulation.js';

const ALL_SEEDS = Array.from({ length: 60 }, (_, index) => index + 1);
const SEEDS = sized(1, ALL_SEEDS.length);
const INPUTS = sized(120, 400);

describe('workers of one ledger that fail', () => {
  test.each(ALL_SEEDS.slice(0, SEEDS))('S4-80, D4: clients, ledger and effects agree, seed %i', async (seed) => {
    const report = await simulateCluster({ seed, inputs: INPUTS });
    expect(report.violations).toEqual([]);
    expect(report.operations.unknown).toBeLessThan(report.operations.ok);
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
      expect(report.operations.unknown).toBeLessThan(report.operations.ok);
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
