// npm run simulate -- [--seed N] [--seeds N] [--steps N] [--planted NAME]
// One line a seed; 1 with seed, step and invariant when something was violated, and how to see it again.

import { parseArgs } from 'node:util';
import { count } from './faults.js';
import { MORE_PLANTS, PLANTS } from './planted.js';
import { simulate, type Report } from './simulate.js';
import type { Plant } from './world.js';

const SEEDS = 200;
const STEPS = 5_000;

const USAGE = `simulate [--seed N] [--seeds N] [--steps N] [--planted NAME]
  --seed N        the first seed (default 1); alone, it is the only one
  --seeds N       how many seeds, one after another (default ${SEEDS})
  --steps N       steps of each seed (default ${STEPS})
  --planted NAME  with a bug on purpose: ${[...PLANTS, ...MORE_PLANTS].map(({ name }) => name).join(', ')}`;

interface Task {
  readonly first: number;
  readonly seeds: number;
  readonly steps: number;
  readonly plant: Plant | undefined;
}

/** @returns null for arguments that make no sense */
function taskOf(args: readonly string[]): Task | null {
  const text = { type: 'string' } as const;
  const options = { seed: text, seeds: text, steps: text, planted: text };
  try {
    const { values } = parseArgs({ args: [...args], options });
    const plant = [...PLANTS, ...MORE_PLANTS].find(({ name }) => name === values.planted);
    const first = Number(values.seed ?? 1);
    const seeds = Number(values.seeds ?? (values.seed === undefined ? SEEDS : 1));
    const steps = Number(values.steps ?? STEPS);
    const isWhole = [first, seeds, steps].every((number) => Number.isSafeInteger(number) && number >= 1);
    return isWhole && (values.planted === undefined || plant !== undefined) ? { first, seeds, steps, plant } : null;
  } catch {
    return null;
  }
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

function sayLine({ seed, steps, entries, trees, proposals, crashes, closes, restarts, faults, digest }: Report): void {
  const injected = [...faults.values()].reduce((sum, times) => sum + times, 0);
  say(
    `seed ${seed}: ${steps} steps, ${trees} trees, ${proposals} proposals, ${entries} entries, ${crashes} crashes, ` +
      `${closes} closes, ${restarts} restarts, ${injected} faults, sha256 ${digest}`,
  );
}

function sayViolation({ seed, steps, violation, tail }: Report, { plant }: Task): void {
  if (violation === null) return;
  for (const line of tail) say(`  | ${line}`);
  say(`VIOLATED in step ${steps} of seed ${seed}: ${violation.invariant}: ${violation.detail}`);
  const planted = plant === undefined ? '' : ` --planted ${plant.name}`;
  say(`again: npm run simulate -- --seed ${seed} --steps ${steps}${planted}`);
}

/** What was called, and what went wrong there: a port that was never called, or never failed, was not tested. */
function saySummary(reports: readonly Report[]): void {
  const calls = new Map<string, number>();
  const faults = new Map<string, number>();
  const outcomes = new Map<string, number>();
  for (const report of reports) {
    for (const [port, times] of report.calls) count(calls, port, times);
    for (const [fault, times] of report.faults) count(faults, fault, times);
    for (const [outcome, times] of report.outcomes) count(outcomes, outcome, times);
  }
  for (const [port, times] of [...calls].sort()) {
    const wrong = [...faults].filter(([fault]) => fault.startsWith(`${port}: `)).sort();
    const how = wrong.map(([fault, often]) => `${fault.slice(port.length + 2)} ${often}`).join(', ');
    say(`${port.padEnd(20)} ${String(times).padStart(9)} calls  ${how}`);
  }
  say(
    `answers: ${[...outcomes]
      .sort()
      .map(([outcome, times]) => `${outcome} ${times}`)
      .join(', ')}`,
  );
  const total = (of: (report: Report) => number): number => reports.reduce((sum, report) => sum + of(report), 0);
  const violations = reports.filter(({ violation }) => violation !== null).length;
  say(
    `${total(({ steps }) => steps)} steps over ${reports.length} seeds, ${total(({ proposals }) => proposals)} proposals, ` +
      `${total(({ entries }) => entries)} entries, ${total(({ crashes }) => crashes)} crashes: ${violations} violations`,
  );
}

async function main(): Promise<number> {
  const task = taskOf(process.argv.slice(2));
  if (task === null) {
    say(USAGE);
    return 2;
  }
  const reports: Report[] = [];
  for (let seed = task.first; seed < task.first + task.seeds; seed += 1) {
    const { steps, plant } = task;
    const report = await simulate({ seed, steps, ...(plant === undefined ? {} : { plant }) });
    reports.push(report);
    sayLine(report);
    sayViolation(report, task);
  }
  saySummary(reports);
  return reports.some(({ violation }) => violation !== null) ? 1 : 0;
}

// Nobody inside may leave a promise to itself; one that does is a finding like any other.
process.on('unhandledRejection', (error) => {
  say(`VIOLATED: a rejection that nobody handles: ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
  process.exit(1);
});
process.exitCode = await main();
