// npm run campaign -- one-path [--policies N] [--requests N] [--seed N]
//
// N policies with N random requests each, decided by a decision table, a live tree, its simulation and its explanation.
// Exit code 1 when two of them differ anywhere.

import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../../fixtures/whole-number.js';
import { compareWays } from './one-path.js';

const { values } = parseArgs({
  options: {
    policies: { type: 'string', default: '400' },
    requests: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
  },
});

const PROGRESS_EVERY = 20;

const [seed, policies, requests] = [
  wholeNumber(values.seed),
  wholeNumber(values.policies),
  wholeNumber(values.requests),
];
const started = performance.now();
const seconds = (): string => `${((performance.now() - started) / 1_000).toFixed(0)} s`;
let done = 0;
const { differences, decisions } = await compareWays({
  ...{ seed, policies, requests, explainedEvery: 50 },
  onPolicy: (found) => {
    done += 1;
    if (done % PROGRESS_EVERY === 0)
      process.stdout.write(`${seconds()}  ${done * requests} requests, ${found} differences\n`);
  },
});
for (const [rule, times] of [...decisions].sort(([, a], [, b]) => b - a))
  process.stdout.write(`${rule.padEnd(50)} ${times}\n`);
for (const difference of differences.slice(0, 8)) process.stdout.write(`${JSON.stringify(difference)}\n`);
process.stdout.write(`${policies * requests} requests, ${differences.length} differences, ${seconds()}\n`);
if (differences.length > 0) process.exitCode = 1;
