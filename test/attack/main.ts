// npm run campaign -- attack [--operations 100000] [--seed N]
// Prints a line for each scene and operation. Exits with 1 after an escape, or if the control did not escape.

import { parseArgs } from 'node:util';
import { attack, tableOf } from './campaign.js';

const { values } = parseArgs({
  options: { operations: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
});
const [operations, seed] = [Number(values.operations), Number(values.seed)];
if (!Number.isSafeInteger(operations) || operations < 1 || !Number.isSafeInteger(seed)) {
  process.stderr.write('usage: npm run campaign -- attack [--operations 100000] [--seed N]\n');
  process.exit(2);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(`seed ${seed}`);
const report = await attack({ operations, seed, progress: say });
say(tableOf(report));

const sum = (count: (cell: (typeof report.cells)[number]) => number): number =>
  report.cells.reduce((total, cell) => total + count(cell), 0);
const escapes = sum((cell) => cell.escapes);
const control = sum((cell) => cell.control?.escapes ?? 0);
for (const line of [...report.escapes, ...report.problems]) say(`WRONG  ${line}`);
say(
  `${sum((cell) => cell.operations)} attacked operations, ${sum((cell) => cell.meetings.met)} met the attacker's, ` +
    `${escapes} escapes; the control escaped ${control} of ${sum((cell) => cell.control?.operations ?? 0)} times`,
);
process.exitCode = escapes > 0 || control === 0 || report.problems.length > 0 ? 1 : 0;
