// npm run campaign -- tamper [--runs 200] [--seed N] [--every N]
//
// Exits with 1 if an attack was not found, not found at its place, or reported as another kind.

import { parseArgs } from 'node:util';
import { tableOf } from '../crash/tally.js';
import { tamper } from './campaign.js';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    every: { type: 'string', default: '1' },
  },
});
const tallies = await tamper({
  runs: Number(values.runs),
  seed: Number(values.seed),
  every: Number(values.every),
  say: (line) => void process.stderr.write(`${line}\n`),
});
process.stdout.write(`seed ${values.seed}\n${tableOf(tallies)}\n`);
process.exitCode = tallies.some(({ violations }) => violations.length > 0) ? 1 : 0;
