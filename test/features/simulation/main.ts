// npm run campaign -- policies [--requests N] [--seed N]
//
// Random trees under random policies, until N decisions were simulated under their own policy and N were also made by a
// live tree under another one. Exit code 1 when simulation and live engine differ anywhere.

import fc from 'fast-check';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { PLOT } from '../../trees/turns.js';
import { compare, newTally } from './agreement.js';
import { policyPool } from './random-policies.js';

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
});
const [requests, seed] = [Number(values.requests), Number(values.seed)];
const started = performance.now();
const tally = newTally();
// A pool is as large as the kernel's cache of policies.
const POOL = 48;
const TREES = 400;
let trees = 0;
for (let round = 0; tally.compared < requests && tally.faults.length === 0; round += 1) {
  const pool = policyPool(seed + round, POOL);
  for (const [i, plot] of fc.sample(PLOT, { seed: seed + round, numRuns: TREES }).entries()) {
    const [a, b] = [pool[i % POOL], pool[(i * 7 + 3) % POOL]];
    if (a !== undefined && b !== undefined) compare(plot, a, b, tally);
    trees += 1;
  }
}
const rows: (readonly [string, string | number])[] = [
  ['seed', seed],
  ['trees', trees],
  ['decisions again under their own policy', tally.same],
  ['decisions held against a live tree under another', tally.compared],
  ['of them flipped', tally.flipped],
  ['of them denied by the overlay', tally.overlaid],
  ['undecidable', tally.undecidable],
  ['rules seen', tally.rules.size],
  ['differences', tally.faults.length],
  ['elapsed', `${((performance.now() - started) / 1_000).toFixed(0)} s`],
];
for (const [name, value] of rows) process.stdout.write(`${name.padEnd(50)} ${value}\n`);
for (const fault of tally.faults.slice(0, 8)) process.stdout.write(`${fault}\n`);
if (tally.faults.length > 0) process.exitCode = 1;
