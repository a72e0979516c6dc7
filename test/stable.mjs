// Runs suites many times: `npm run campaign -- stable SUITES --times 50 [--seed N]`. SUITES are patterns as for
// `npm test`. Every run has another seed for the order of its tests, and the runs take turns with one and with three
// workers, and without and with four busy loops beside them. Prints the runs and what failed in each; ends with exit
// code 1 after a failure.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const JEST = 'node_modules/jest/bin/jest.js';
const LOOPS = 4;
/** Ends with the process that started it. */
const BUSY = 'const parent = process.ppid; while (process.ppid === parent);';
const SEED_MAX = 2 ** 31 - 1;
const RUNS = [
  { workers: 1, loops: 0 },
  { workers: 3, loops: LOOPS },
  { workers: 1, loops: LOOPS },
  { workers: 3, loops: 0 },
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { times: { type: 'string', default: '50' }, seed: { type: 'string' } },
});
const times = Number(values.times);
const first = Number(values.seed ?? Math.floor(Math.random() * SEED_MAX));
if (positionals.length === 0 || !(times > 0) || !Number.isInteger(first)) {
  console.error('usage: npm run campaign -- stable SUITES --times 50 [--seed N]');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'stable-'));
const failures = new Map();
const counts = { suites: 0, tests: 0, failedRuns: 0 };
for (let run = 0; run < times; run += 1) {
  const options = { ...RUNS[run % RUNS.length], seed: (first + run) % SEED_MAX };
  const failed = runOnce(options);
  if (failed.length > 0) counts.failedRuns += 1;
  for (const title of failed) failures.set(title, [...(failures.get(title) ?? []), options]);
}
rmSync(folder, { recursive: true, force: true });
for (const [title, runs] of failures) {
  const where = runs.map(({ seed, workers, loops }) => `seed ${seed}, workers ${workers}, busy loops ${loops}`);
  console.log(`${title}\n  failed in ${runs.length} of ${times} runs: ${where.join('; ')}`);
}
console.log(
  `${times} runs from seed ${first}, ${counts.suites / times} suites and ${counts.tests} tests: ` +
    `${counts.failedRuns} runs failed`,
);
process.exitCode = counts.failedRuns > 0 ? 1 : 0;

/** @returns the titles of what failed */
function runOnce({ workers, loops, seed }) {
  const busy = Array.from({ length: loops }, () => spawn(process.execPath, ['--eval', BUSY], { stdio: 'ignore' }));
  const results = join(folder, `${seed}.json`);
  const order = ['--randomize', `--seed=${seed}`, `--maxWorkers=${workers}`];
  const { status, stderr } = spawnSync(
    process.execPath,
    [
      JEST,
      '--selectProjects',
      'tests',
      '--ci',
      '--silent',
      ...order,
      '--json',
      `--outputFile=${results}`,
      ...positionals,
    ],
    { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'], maxBuffer: 2 ** 28 },
  );
  for (const loop of busy) loop.kill('SIGKILL');
  if (!existsSync(results)) return [`jest ended with ${status} and without results: ${stderr.slice(-2_000)}`];
  const found = JSON.parse(readFileSync(results, 'utf8'));
  if (found.numTotalTestSuites === 0) return ['no suite matches'];
  counts.suites += found.numTotalTestSuites;
  counts.tests += found.numPassedTests + found.numFailedTests;
  return found.testResults.flatMap(({ name, status: end, assertionResults, message }) => {
    const path = name.slice(ROOT.length);
    const failed = assertionResults.filter((one) => one.status === 'failed');
    for (const { failureMessages } of failed) console.log(failureMessages.join('\n').slice(0, 1_000));
    if (failed.length === 0 && end === 'failed') return [`${path}: ${message.slice(0, 500)}`];
    return failed.map(({ fullName }) => `${path}: ${fullName}`);
  });
}
