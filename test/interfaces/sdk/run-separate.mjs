// npm run test:sdks [-- JEST-ARGUMENTS]: tests governed tools with the SDKs that need a later Node than Turnpike. Node
// and the packages come from the registry, into build/node; they are no dependencies. No install script of theirs is
// run.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutFor, environmentOf, FOLDER, nodeOf, run, UnavailableError } from '../../node/checkouts.mjs';

const VERSION = '22';
/** `ai7` is the package `ai`. */
const PACKAGES = { '@mastra/core': '1.71.0', '@openai/agents': '0.20.0', ai7: 'npm:ai@7.0.173', zod: '4.6.7' };

/** The exit code if Node or the packages cannot be had here. */
const UNAVAILABLE = 3;

try {
  process.exitCode = runTests();
} catch (error) {
  if (!(error instanceof UnavailableError)) throw error;
  console.error(`skipped: the SDKs that need Node ${VERSION}: ${error.message.split('\n')[0]}`);
  process.exitCode = UNAVAILABLE;
}

function runTests() {
  const node = nodeOf(VERSION);
  const env = { ...environmentOf(node), TURNPIKE_SDKS: installPackages(node) };
  const words = [
    '--selectProjects',
    'sdks',
    '--ci',
    `--cacheDirectory=${join(FOLDER, VERSION, 'jest')}`,
    ...process.argv.slice(2),
  ];
  const { status } = spawnSync(node, ['node_modules/jest/bin/jest.js', ...words], {
    cwd: checkoutFor(VERSION, node),
    env,
    stdio: 'inherit',
  });
  return status ?? 1;
}

/** Returns the folder that has them. */
function installPackages(node) {
  const folder = join(FOLDER, 'sdks');
  const wanted = JSON.stringify({ private: true, dependencies: PACKAGES }, null, 2);
  const file = join(folder, 'package.json');
  if (existsSync(file) && readFileSync(file, 'utf8') === wanted) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, wanted);
  const how = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--no-save'];
  run('npm', ['install', ...how], { cwd: folder, env: environmentOf(node) });
  return folder;
}
