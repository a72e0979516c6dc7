// npm run campaign -- conditions [--sets N] [--requests N] [--seed N]
//
// Exit code 0: both evaluators agree on every request. 1: prints the first difference.

import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../../fixtures/whole-number.js';
import { compareEvaluators } from './differential.js';
import { OPERATORS } from './reference/operators.js';

const PROGRESS_EVERY = 50_000;

const { values } = parseArgs({
  options: {
    sets: { type: 'string', default: '1000' },
    requests: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
  },
});

const started = performance.now();
const seconds = (): string => `${((performance.now() - started) / 1_000).toFixed(0)} s`;
const [seed, sets, requestsPerSet] = [wholeNumber(values.seed), wholeNumber(values.sets), wholeNumber(values.requests)];
const { operators, firstDifference, ...counts } = compareEvaluators({
  seed,
  sets,
  requestsPerSet,
  onRequest: ({ requests, differences }) => {
    if (requests % PROGRESS_EVERY !== 0) return;
    process.stdout.write(`${seconds()}  ${requests} requests, ${differences} differences\n`);
  },
});

const missing = Object.keys(OPERATORS).filter((name) => !new Map<string, number>(operators).has(name));
const rows: (readonly [string, string | number])[] = [
  ['seed', seed],
  ['sets', sets],
  ...Object.entries(counts),
  ['operators', `${operators.size} of ${Object.keys(OPERATORS).length}`],
  ['elapsed', seconds()],
];
const width = Math.max(...rows.map(([name]) => name.length));
process.stdout.write(`\n${rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')}\n`);
if (firstDifference !== null) process.stdout.write(`\n${firstDifference}\n`);
if (missing.length > 0) process.stdout.write(`\nnever evaluated: ${missing.join(', ')}\n`);
process.exitCode = firstDifference === null ? 0 : 1;
