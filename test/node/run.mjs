// Runs the tests on several versions of Node: `npm run test:node -- [VERSION...] [-- JEST-ARGUMENTS]`, by default on
// 20, 22 and 24 (checkouts.mjs).

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutFor, environmentOf, FOLDER, nodeOf, UnavailableError } from './checkouts.mjs';

const VERSIONS = ['20', '22', '24'];
const argv = process.argv.slice(2);
const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
const versions = end === 0 ? VERSIONS : argv.slice(0, end);

let failed = false;
for (const version of versions) {
  try {
    const { line, isOk } = runTests(version, argv.slice(end + 1));
    console.log(line);
    failed ||= !isOk;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    console.log(`node ${version}: skipped: ${error.message.split('\n')[0]}`);
  }
}
process.exitCode = failed ? 1 : 0;

/** Runs the tests on a version. @throws UnavailableError */
function runTests(version, args) {
  const node = nodeOf(version);
  const checkout = checkoutFor(version, node);
  const results = join(FOLDER, version, 'results.json');
  rmSync(results, { force: true });
  const which = ['--selectProjects', 'tests', '--ci', '--json', `--outputFile=${results}`];
  const { status } = spawnSync(node, ['node_modules/jest/bin/jest.js', ...which, ...args], {
    cwd: checkout,
    env: environmentOf(node),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exact = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  if (!existsSync(results)) return { line: `node ${exact}: jest ended with ${status} and no results`, isOk: false };
  const found = JSON.parse(readFileSync(results, 'utf8'));
  const broken = found.testResults.filter((suite) => suite.status === 'failed').map(({ name }) => name);
  const counts = `${found.numPassedTests} passed, ${found.numFailedTests} failed, ${found.numPendingTests} skipped`;
  const suites = broken.map((name) => `\n  ${name.slice(checkout.length + 1)}`).join('');
  return { line: `node ${exact}: ${counts}${suites}`, isOk: status === 0 };
}
