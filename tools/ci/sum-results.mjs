// Sums what jest has written: `node tools/ci/sum-results.mjs FOLDER STATUS`, after both runs of `.ci/run`. Prints the
// slowest suites of each and all tests that failed, then `N passed, N failed`. STATUS is the exit code of the runs.

import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const [folder, status] = process.argv.slice(2);
const SLOWEST = 25;
// A run whose teardown fails writes no results.
const NONE = { numPassedTests: 0, numFailedTests: 1, numFailedTestSuites: 1, numPendingTests: 0, testResults: [] };

const runs = ['tests', 'campaigns'].map((name) => {
  const file = join(folder, `${name}.json`);
  return { name, ...(existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : NONE) };
});
const sum = (countOf) => runs.reduce((total, run) => total + countOf(run), 0);

for (const { name, testResults } of runs) {
  const suites = testResults.map(({ name: file, startTime, endTime }) => ({
    file: relative('.', file),
    seconds: Math.round((endTime - startTime) / 1000),
  }));
  const total = suites.reduce((seconds, suite) => seconds + suite.seconds, 0);
  console.log(`${name}: ${suites.length} suites, ${total} s of all workers; the slowest:`);
  const slowest = suites.sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  for (const { file, seconds } of slowest) console.log(`${String(seconds).padStart(6)} s  ${file}`);
}

for (const { testResults } of runs) {
  for (const { name, status: result, assertionResults, message } of testResults) {
    if (result !== 'failed') continue;
    const titles = assertionResults.filter((test) => test.status === 'failed').map((test) => test.fullName);
    // A suite that could not even be loaded has no results, but a message.
    for (const title of titles.length > 0 ? titles : [message]) console.log(`failed: ${relative('.', name)}: ${title}`);
  }
}

const passed = sum(({ numPassedTests }) => numPassedTests);
// A suite that could not even be loaded has no failed tests of its own.
const failed = sum(({ numFailedTests, numFailedTestSuites }) => Math.max(numFailedTests, numFailedTestSuites));
const skipped = sum(({ numPendingTests }) => numPendingTests);
if (skipped > 0) console.log(`${skipped} skipped: what this machine cannot do`);
console.log(`${passed} passed, ${failed} failed`);
const ranAll = runs.every(({ numPassedTests }) => numPassedTests > 0);
process.exitCode = failed > 0 || !ranAll ? 1 : Number(status);
