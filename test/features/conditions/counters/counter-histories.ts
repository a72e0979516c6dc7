// Short histories of counters: three trees of one case, one to three workers, deaths, cuts, unknown outcomes and lost
// commits. Every recorded value is compared with a recount of the ledger (`recount.ts`).

import type { SharedLedgerStore } from '../../../../src/engine/ports/ledger/shared-store.js';
import { simulateCluster } from '../../../engine/cluster/cluster-simulation.js';

export interface CounterHistoriesOptions {
  readonly histories: number;
  /** The first seed; each history has the next one. */
  readonly seed: number;
  readonly onProgress?: (histories: number) => void;
  /** Replaces a part of the store by a faulty one, to see that the recount finds it. */
  readonly plant?: (store: SharedLedgerStore) => SharedLedgerStore;
}

export interface CounterHistoriesReport {
  readonly histories: number;
  /** Recorded values of counters. */
  readonly counted: number;
  readonly faults: number;
  readonly results: { readonly unknown: number };
  /** The first values that differ from a recount, each with its seed. */
  readonly differences: readonly string[];
  /** What else does not hold, as the simulation of a cluster reports it. */
  readonly violations: readonly string[];
}

const SHOWN_MAX = 20;
const PROGRESS = 5_000;

export async function countHistories(options: CounterHistoriesOptions): Promise<CounterHistoriesReport> {
  const { histories, seed, onProgress, plant } = options;
  let [counted, faults, unknown] = [0, 0, 0];
  const differences: string[] = [];
  const violations: string[] = [];
  for (let index = 0; index < histories && differences.length < SHOWN_MAX; index += 1) {
    const own = seed + index;
    const report = await simulateCluster({
      ...{ seed: own, inputs: 10, trees: 3, workers: 2 + (own % 2), hasCounters: true },
      ...(plant === undefined ? {} : { plant }),
    });
    counted += report.counted;
    faults += Object.values(report.faults).reduce((sum, count) => sum + count, 0);
    for (const [kind, count] of Object.entries(report.results)) if (kind.startsWith('unknown')) unknown += count;
    differences.push(...report.differences.map((difference) => `seed ${own}: ${difference}`));
    violations.push(...report.violations.map((violation) => `seed ${own}: ${violation}`));
    if ((index + 1) % PROGRESS === 0) onProgress?.(index + 1);
  }
  return { histories, counted, faults, results: { unknown }, differences: differences.slice(0, SHOWN_MAX), violations };
}
