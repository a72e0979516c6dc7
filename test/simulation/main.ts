// npm run campaign -- simulate [--seed N] [--seeds N] [--steps N] [--planted NAME] [--yields N] [--paces]
// [--interpreter NAME] Prints one line per seed. Exits with 1 after a violation, with seed, step and invariant, and how
// to reproduce it.

import { parseArgs } from 'node:util';
import { DEFAULT_INTERPRETATION } from '../../src/kernel/interpreter/default-interpreter.js';
import { INTERPRETERS, type Interpreter } from '../../src/kernel/interpreter/interpreter.js';
import { count } from './faults.js';
import type { Yields } from './pace.js';
import { besideBusyLoops, BUSY_LOOPS, simulatePaces, YIELDS } from './paces.js';
import { MORE_PLANTS, PLANTS } from './planted.js';
import { simulate, type Report } from './simulate.js';
import { QUOTA, type Plant } from './world.js';

const SEEDS = 200;
const STEPS = 5_000;
/** With `--paces`, each seed runs six times. */
const PACED_SEEDS = 50;
const PACED_STEPS = 600;

const USAGE = `simulate [--seed N] [--seeds N] [--steps N] [--planted NAME] [--yields N] [--paces] [--interpreter NAME]
  --seed N        the first seed (default 1); alone, it is the only one
  --seeds N       how many seeds, one after another (default ${SEEDS})
  --steps N       steps of each seed (default ${STEPS})
  --planted NAME  with a bug on purpose: ${[...PLANTS, ...MORE_PLANTS].map(({ name }) => name).join(', ')}
  --yields N      paced work yields at every N-th call, 0: never (default: where chance says so)
  --paces         each seed at each pace, alone and in parallel with ${BUSY_LOOPS} busy loops: the digests must be equal
                  (default ${PACED_SEEDS} seeds of ${PACED_STEPS} steps)
  --interpreter   ${INTERPRETERS.join(' or ')} (default ${DEFAULT_INTERPRETATION.interpreter})`;

interface Task {
  readonly first: number;
  readonly seeds: number;
  readonly steps: number;
  readonly plant: Plant | undefined;
  readonly yields: Yields;
  readonly paces: boolean;
  readonly interpreter: Interpreter;
}

/** @returns null for invalid arguments */
function taskOf(args: readonly string[]): Task | null {
  const [text, flag] = [{ type: 'string' }, { type: 'boolean' }] as const;
  const named = { seed: text, seeds: text, steps: text, planted: text, yields: text, interpreter: text };
  const options = { ...named, paces: flag };
  try {
    const { values } = parseArgs({ args: [...args], options });
    const plant = [...PLANTS, ...MORE_PLANTS].find(({ name }) => name === values.planted);
    const first = Number(values.seed ?? 1);
    const paces = values.paces === true;
    const all = paces ? PACED_SEEDS : SEEDS;
    const seeds = Number(values.seeds ?? (values.seed === undefined ? all : 1));
    const steps = Number(values.steps ?? (paces ? PACED_STEPS : STEPS));
    const interpreter = INTERPRETERS.find(
      (name) => name === (values.interpreter ?? DEFAULT_INTERPRETATION.interpreter),
    );
    const yields = values.yields === undefined ? 'drawn' : Number(values.yields);
    const numbers = [first, seeds, steps, 1 + (yields === 'drawn' ? 0 : yields)];
    const isWhole = numbers.every((number) => Number.isSafeInteger(number) && number >= 1);
    if (!isWhole || interpreter === undefined || (values.planted !== undefined && plant === undefined)) return null;
    return { first, seeds, steps, plant, interpreter, yields, paces };
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

function sayViolation({ seed, steps, violation, tail }: Report, { plant, interpreter }: Task): void {
  if (violation === null) return;
  for (const line of tail) say(`  | ${line}`);
  say(`VIOLATED in step ${steps} of seed ${seed}: ${violation.invariant}: ${violation.detail}`);
  const planted = plant === undefined ? '' : ` --planted ${plant.name}`;
  const under = interpreter === DEFAULT_INTERPRETATION.interpreter ? '' : ` --interpreter ${interpreter}`;
  say(`again: npm run campaign -- simulate --seed ${seed} --steps ${steps}${planted}${under}`);
}

/** The calls and faults of each port: a port that was never called, or never failed, was not tested. */
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
  return task.paces ? comparePaces(task) : simulateAll(task);
}

async function simulateAll(task: Task): Promise<number> {
  const reports: Report[] = [];
  for (let seed = task.first; seed < task.first + task.seeds; seed += 1) {
    const { steps, plant, interpreter, yields } = task;
    // A quarter of the seeds has a small quota, and only agents that write.
    const quota = plant === undefined ? seed % 4 === 0 : plant.quota === true;
    const planted = plant === undefined ? {} : { plant };
    const report = await simulate({ seed, steps, interpreter, yields, ...planted, quota: quota ? QUOTA : null });
    reports.push(report);
    sayLine(report);
    sayViolation(report, task);
  }
  saySummary(reports);
  return reports.some(({ violation }) => violation !== null) ? 1 : 0;
}

/** @returns 1 if a digest depends on the pace or on other load, or an invariant was violated */
async function comparePaces(task: Task): Promise<number> {
  let differing = 0;
  for (let seed = task.first; seed < task.first + task.seeds; seed += 1) {
    const simulated = (): Promise<readonly Report[]> => simulatePaces(seed, task.steps);
    const reports = [...(await simulated()), ...(await besideBusyLoops(BUSY_LOOPS, simulated))];
    for (const report of reports) sayViolation(report, task);
    const digests = new Set(reports.map(({ digest }) => digest));
    const isSame = digests.size === 1 && reports.every(({ violation }) => violation === null);
    if (!isSame) differing += 1;
    say(`seed ${seed}: ${isSame ? 'the same' : 'DIFFERENT'} at each pace, sha256 ${[...digests].join(' ')}`);
  }
  say(
    `${task.seeds} seeds at ${YIELDS.length} paces, alone and in parallel with ${BUSY_LOOPS} busy loops: ${differing} differ`,
  );
  return differing > 0 ? 1 : 0;
}

// No code inside may ignore a rejected promise; one that does is a finding like any other.
process.on('unhandledRejection', (error) => {
  say(`VIOLATED: an unhandled rejection: ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
  process.exit(1);
});
process.exitCode = await main();
