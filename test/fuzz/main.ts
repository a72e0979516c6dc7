// npm run campaign -- fuzz [--payloads N] [--seed N] [--workers N] [--replay FILE]
//
// Parts of a campaign run concurrently, each with its own printed seed: one part alone, with its seed, repeats the same
// run. Exit code 0: no violation; 1: a violation, and the output says how to reproduce it.

import { rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../fixtures/whole-number.js';
import { Worker } from 'node:worker_threads';
import { OUTCOMES } from '../../src/core/contract/run/phase.js';
import { corpora } from './corpora.js';
import type { PartOptions, PartMessage } from './part.js';

/** A part without output for this time hangs: a chunk takes some seconds. */
const SILENCE_MS = 300_000;
/** One policy file for this number of payloads. */
const PAYLOADS_PER_POLICY = 100;
const PROGRESS_MS = 10_000;

interface Part {
  readonly options: PartOptions;
  lastMessage: PartMessage | null;
  /** A failure outside of every check: a crash or a hang of the whole part. */
  broken: string | null;
}

function partsOf(): readonly Part[] {
  const { values } = parseArgs({
    options: {
      payloads: { type: 'string', default: '1000000' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: String(Math.min(2, availableParallelism())) },
      replay: { type: 'string' },
    },
  });
  const replay = values.replay ?? null;
  const [payloads, seed, workers] = [
    wholeNumber(values.payloads),
    wholeNumber(values.seed),
    wholeNumber(values.workers),
  ];
  const count = replay === null ? Math.max(1, workers) : 1;
  return Array.from({ length: count }, (_, index) => {
    const share = Math.ceil(payloads / count);
    const own = seed + index;
    const file = join(tmpdir(), `turnpike-fuzz-seed-${own}.txt`);
    const policies = Math.ceil(share / PAYLOADS_PER_POLICY);
    const options = { seed: own, payloads: share, policies, fixtures: index === 0, file, replay };
    return { options, lastMessage: null, broken: null };
  });
}

/** Runs a part to its end, however it ends. */
function run(part: Part): Promise<void> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL('./part.js', import.meta.url), { workerData: part.options });
    const silent = (): void => {
      part.broken = `nothing came back for ${SILENCE_MS / 1_000} s`;
      void worker.terminate();
    };
    let watch = setTimeout(silent, SILENCE_MS);
    worker.on('message', (lastMessage: PartMessage) => {
      part.lastMessage = lastMessage;
      clearTimeout(watch);
      watch = setTimeout(silent, SILENCE_MS);
    });
    worker.on('error', (error) => {
      part.broken = `crashed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    });
    worker.on('exit', () => {
      clearTimeout(watch);
      if (part.lastMessage?.kind !== 'done') part.broken ??= 'ended without a message';
      resolve();
    });
  });
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const largest = (values: readonly number[]): number => Math.max(0, ...values);

function progress(parts: readonly Part[], started: number): string {
  const seconds = Math.round((performance.now() - started) / 1_000);
  const done = sum(parts.map(({ lastMessage }) => lastMessage?.steps.payloads ?? 0));
  const found = sum(parts.map(({ lastMessage }) => lastMessage?.violations.length ?? 0));
  return `${seconds} s  ${done} payloads  ${found} violations`;
}

function table(parts: readonly Part[], started: number): string {
  const steps = parts.flatMap(({ lastMessage }) => (lastMessage === null ? [] : [lastMessage.steps]));
  const policies = parts.flatMap(({ lastMessage }) => (lastMessage?.policies == null ? [] : [lastMessage.policies]));
  const violations = sum(
    parts.map(({ lastMessage, broken }) => (lastMessage?.violations.length ?? 0) + (broken === null ? 0 : 1)),
  );
  const rows: (readonly [string, string | number])[] = [
    ['seeds', parts.map(({ options }) => options.seed).join(', ')],
    ['payloads, one response each', sum(steps.map(({ payloads }) => payloads))],
    ...OUTCOMES.map((outcome) => [`  ${outcome}`, sum(steps.map(({ outcomes }) => outcomes[outcome]))] as const),
    ['traces', sum(steps.map(({ traces }) => traces))],
    ['agent runs', sum(steps.map(({ runs }) => runs))],
    ['refused as RUN_ENDED, then sent again', sum(steps.map(({ late }) => late))],
    ['different behaviours (of one part, at most)', largest(steps.map(({ behaviours }) => behaviours))],
    ['slowest step by itself, ms', largest(steps.map(({ slowestMs }) => slowestMs ?? 0)).toFixed(1)],
    ['policy files', sum(policies.map(({ files }) => files))],
    ['  loaded', sum(policies.map(({ loaded }) => loaded))],
    ['  worked under', sum(policies.map(({ tried }) => tried))],
    ['slowest policy by itself, ms', largest(policies.map(({ slowestMs }) => slowestMs)).toFixed(1)],
    ['violations', violations],
    ['elapsed, s', ((performance.now() - started) / 1_000).toFixed(0)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

/** How to reproduce a violation, and what to do then. */
function complaints({ options, lastMessage, broken }: Part): readonly string[] {
  const again = `npm run campaign -- fuzz --workers 1 --seed ${options.seed} --payloads ${options.payloads}`;
  const lines = (lastMessage?.violations ?? []).map(({ what, payload, file }) => {
    const alone = file === null ? '' : `\n  its chunk:  npm run campaign -- fuzz --replay ${file}`;
    return `VIOLATION ${what}\n  payload (base64): ${payload}${alone}\n  all of it:  ${again}`;
  });
  if (broken !== null) {
    const progress = `npm run campaign -- fuzz --replay ${options.file}`;
    lines.push(`VIOLATION ${broken}\n  in progress: ${progress}\n  all of it:  ${again}`);
  }
  return lines;
}

const parts = partsOf();
const started = performance.now();
process.stdout.write(
  corpora()
    .skipped.map((line) => `${line}\n`)
    .join(''),
);
const ticker = setInterval(() => process.stdout.write(`${progress(parts, started)}\n`), PROGRESS_MS);
await Promise.all(parts.map(run));
clearInterval(ticker);
process.stdout.write(`\n${table(parts, started)}\n`);
const found = parts.flatMap(complaints);
if (found.length > 0) {
  const advice = 'After fixing it, put the payload as a file into test/fuzz/failures/payloads (or policies).';
  process.stdout.write(`\n${found.slice(0, 10).join('\n')}\n\n${advice}\n`);
  process.exitCode = 1;
} else {
  for (const { options } of parts) rmSync(options.file, { force: true });
}
