// `npm run campaign -- counters`: many short histories of counters that several workers change, with faults. Prints
// what it found.

import { parseArgs } from 'node:util';
import { countHistories } from './counter-histories.js';

const { values } = parseArgs({
  options: { histories: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' } },
});
const started = performance.now();
const report = await countHistories({
  histories: Number(values.histories),
  seed: Number(values.seed),
  onProgress: (done) => process.stdout.write(`${done} histories\n`),
});
const seconds = ((performance.now() - started) / 1_000).toFixed(0);
process.stdout.write(
  `${report.histories} histories, ${report.counted} values, ${report.results.unknown} unknown outcomes, ` +
    `${report.faults} faults, ${report.differences.length} values that differ from a recount, ${seconds} s\n`,
);
for (const problem of [...report.differences, ...report.violations]) process.stdout.write(`${problem}\n`);
process.exitCode = report.differences.length + report.violations.length > 0 ? 1 : 0;
