// Processor time of `turnpike help` and `turnpike version` above that of an empty program, in interleaved runs.
// `npm run bench -- startup [--runs 20]`

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { runs: { type: 'string', default: '20' } } });
const main = fileURLToPath(new URL('../../dist/src/interfaces/cli/main.js', import.meta.url));
const PROGRAMS = {
  'node -e 0': ['-e', '0'],
  'turnpike version': [main, 'version'],
  'turnpike help': [main, 'help'],
  'turnpike help serve': [main, 'help', 'serve'],
  'turnpike completion bash': [main, 'completion', 'bash'],
};

/** Milliseconds of processor time of one process, user and system. */
function costOf(argv) {
  const program = ['-c', 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>/dev/null', 'bash', process.execPath, ...argv];
  const { stderr, status } = spawnSync('bash', program, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${argv.join(' ')} failed`);
  const [user, system] = stderr.trim().split(' ').map(Number);
  return (user + system) * 1000;
}

const costs = Object.fromEntries(Object.keys(PROGRAMS).map((name) => [name, []]));
for (let run = 0; run < Number(values.runs); run += 1) {
  for (const [name, argv] of Object.entries(PROGRAMS)) costs[name].push(costOf(argv));
}
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
const base = median(costs['node -e 0']);
console.table(
  Object.entries(costs).map(([program, each]) => ({
    program,
    'ms of processor time': Math.round(median(each)),
    'above node -e 0': Math.round(median(each) - base),
  })),
);
