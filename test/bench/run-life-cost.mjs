// The cost of a run's life, in microseconds of processor time (user and system): start, three governed reads, end.
// A child process of pairs.mjs: one line of JSON on stdout.
// `node test/bench/run-life-cost.mjs --package DIR [--steps RUNS] [--warm RUNS]`

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { payload } from './payloads.mjs';

/** How many runs live at once, and reads of each. */
const CALLERS = 64;
const READS = 3;

const { values } = parseArgs({
  options: {
    package: { type: 'string', default: '.' },
    steps: { type: 'string', default: '1280' },
    warm: { type: 'string', default: '1280' },
  },
});
const { openTurnpike, winstonLog } = await import(join(resolve(values.package), 'dist/src/index.js'));
const { patientContract } = await import('./contract.mjs');

const folder = mkdtempSync(join(tmpdir(), 'turnpike-run-life-'));
const turnpike = await openTurnpike({
  home: join(folder, 'home'),
  contract: patientContract(join(folder, 'contract')),
  log: winstonLog('error'),
});
const caseDir = join(folder, 'home/sandbox/case-local/a/b');
mkdirSync(caseDir, { recursive: true });
writeFileSync(join(caseDir, 'note.txt'), 'n'.repeat(1024));

/** @returns microseconds of processor time per run */
async function cost(runs) {
  let left = runs;
  const before = process.cpuUsage();
  const live = async () => {
    while (left > 0) {
      left -= 1;
      const agent = await turnpike.startAgent({ case: 'case-local' });
      for (let read = 0; read < READS; read += 1) await agent.respond(payload('read'));
      await agent.end();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, live));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / runs;
}

await cost(Number(values.warm));
const costs = { [`life of a run, ${CALLERS} callers`]: await cost(Number(values.steps)) };
await turnpike.close();
rmSync(folder, { recursive: true, force: true });
console.log(JSON.stringify(costs));
