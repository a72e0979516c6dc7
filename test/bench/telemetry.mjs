// The cost of telemetry: processor time (user and system) of a step with it, as a ratio to that without it, from 64
// callers. `npm run bench -- telemetry [--processes 20] [--rounds 20] [--shares 0.1] [--kinds think,read] [--steps N]
// [--warm N]`
//
// Each process has one Turnpike for each variant, and their short rounds alternate: what else the machine does affects
// all alike. `--shares 0,0.1,1` measures more than one share of traced trees; 0 is metrics alone. The first steps
// (`--warm`) are not measured: a service runs for longer than the compiler needs.
//
// Prints the ratio of the sums, its 95 % interval from resampled processes, and the median of the ratios of the rounds.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ascending, median } from './statistics.mjs';

const { values } = parseArgs({
  options: {
    package: { type: 'string', default: fileURLToPath(new URL('../..', import.meta.url)) },
    processes: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '20' },
    shares: { type: 'string', default: '0.1' },
    kinds: { type: 'string', default: 'think,read' },
    steps: { type: 'string', default: '640' },
    warm: { type: 'string', default: '19200' },
    json: { type: 'boolean', default: false },
  },
});
const SAMPLES = 10_000;
const script = fileURLToPath(new URL('./telemetry-rounds.mjs', import.meta.url));
const shares = values.shares.split(',');

/** @returns the costs of each round, of the variant without telemetry and then of each share */
function run(kind, turn) {
  const { package: checkout, rounds, steps, warm } = values;
  const options = { package: checkout, shares: values.shares, rounds, steps, warm, kind, turn };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`telemetry-rounds failed: ${stderr}`);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const round = (number, digits) => Number(number.toFixed(digits));

/** @param processes the costs of the rounds of each process, without telemetry and with it */
function compare(figure, processes) {
  const sums = processes.map(([off, on]) => [sum(off), sum(on)]);
  const ratioOf = (some) => sum(some.map(([, on]) => on)) / sum(some.map(([off]) => off));
  const resampled = () => sums.map(() => sums[Math.floor(Math.random() * sums.length)]);
  const ratios = ascending(Array.from({ length: SAMPLES }, () => ratioOf(resampled())));
  const rounds = processes.length * processes[0][0].length;
  return {
    figure,
    without: round(sum(sums.map(([off]) => off)) / rounds, 1),
    with: round(sum(sums.map(([, on]) => on)) / rounds, 1),
    ratio: round(ratioOf(sums), 3),
    low: round(ratios[Math.floor(SAMPLES * 0.025)], 3),
    high: round(ratios[Math.ceil(SAMPLES * 0.975) - 1], 3),
    median: round(median(ascending(processes.flatMap(([off, on]) => on.map((cost, at) => cost / off[at])))), 3),
  };
}

const kinds = values.kinds.split(',');
const found = new Map(kinds.map((kind) => [kind, []]));
for (let index = 0; index < Number(values.processes); index += 1) {
  for (const kind of kinds) found.get(kind).push(run(kind, index));
}
const rows = kinds.flatMap((kind) =>
  shares.map((share, at) => {
    const processes = found.get(kind).map(([off, ...on]) => [off, on[at]]);
    return compare(`${kind}, share ${share}`, processes);
  }),
);
if (values.json)
  console.log(JSON.stringify({ processes: Number(values.processes), rounds: Number(values.rounds), rows }));
else {
  console.log(`${values.processes} processes with ${values.rounds} pairs of rounds each: with / without telemetry`);
  console.table(rows);
}
