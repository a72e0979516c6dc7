// npm run campaign -- trees [--trees N] [--seed N] [--path P]
//
// Exit code 0: every rule held in every tree, and every rule was exercised. 1: prints the smallest tree that violates a
// rule, with the seed and the path that reproduce it.

import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { campaign } from './campaign.js';

const PROGRESS_EVERY = 1_000;

const { values } = parseArgs({
  options: {
    trees: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    path: { type: 'string' },
  },
});

function number(text: string): number {
  if (!/^-?\d{1,10}$/.test(text)) throw new Error(`not a number: ${text}`);
  return Number(text);
}

const started = performance.now();
const seconds = (): string => `${((performance.now() - started) / 1_000).toFixed(0)} s`;
const { path } = values;
const [trees, seed] = [number(values.trees), number(values.seed)];
const { tally, violation } = campaign({
  seed,
  trees,
  ...(path === undefined ? {} : { path }),
  onTree: (done) => {
    if (done % PROGRESS_EVERY === 0) process.stdout.write(`${seconds()}  ${done} trees\n`);
  },
});

const rows: (readonly [string, string | number])[] = [
  ['seed', seed],
  ['trees', tally.trees],
  ...tally.counts,
  ['violations', violation === null ? 0 : 1],
  ['elapsed', seconds()],
];
const width = Math.max(...rows.map(([name]) => name.length));
process.stdout.write(`\n${rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')}\n`);
if (violation !== null) {
  process.stdout.write(`\n${violation}\n\nagain:  npm run campaign -- trees --seed ${seed} --trees ${trees}\n`);
  process.exitCode = 1;
} else if (tally.missing.length > 0 && path === undefined) {
  process.stdout.write(`\nnever seen: ${tally.missing.join(', ')}\n`);
  process.exitCode = 1;
}
