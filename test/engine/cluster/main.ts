// npm run campaign -- cluster-histories [--histories N] [--inputs N] [--short N] [--seed N]
//
// N histories of several workers on one ledger in each variant (plain, near the quota of a case, with counters, with
// decision points), and N short ones of each. Exit code 1 when a history shows a violation.

import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../../fixtures/whole-number.js';
import { type ClusterOptions, simulateCluster } from './cluster-simulation.js';

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '60' },
    inputs: { type: 'string', default: '400' },
    short: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
  },
});

const VARIANTS: Readonly<Record<string, Partial<ClusterOptions>>> = {
  plain: {},
  quota: { hasQuota: true },
  counters: { hasCounters: true },
  'decision points': { hasDecisionPoints: true },
};

const [histories, inputs, short, first] = [values.histories, values.inputs, values.short, values.seed].map(
  wholeNumber,
) as [number, number, number, number];
const started = performance.now();
for (const [variant, options] of Object.entries(VARIANTS)) {
  let [ran, violations] = [0, 0];
  const run = async (chosen: ClusterOptions): Promise<void> => {
    const report = await simulateCluster({ ...chosen, ...options });
    const found = [...report.violations, ...report.differences];
    ran += 1;
    violations += found.length;
    for (const one of found) process.stdout.write(`${variant}, ${JSON.stringify(chosen)}: ${one}\n`);
  };
  for (let seed = first; seed < first + histories; seed += 1) await run({ seed, inputs });
  for (let seed = first; seed < first + short; seed += 1)
    await run({ seed, inputs: 10, trees: 3, workers: 2 + (seed % 2) });
  const seconds = ((performance.now() - started) / 1_000).toFixed(0);
  process.stdout.write(`${variant.padEnd(16)} ${ran} histories, ${violations} violations, ${seconds} s\n`);
  if (violations > 0) process.exitCode = 1;
}
