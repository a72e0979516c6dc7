// The cost of one governed step, in microseconds of processor time (user and system), for each kind of step; for a
// single caller also the elapsed time of a step.
// A child process of pairs.mjs. It prints one line of JSON on stdout; with `--slices` it measures one slice for each
// message of its parent, and answers with the cost of a step in it.
// `node test/bench/step-cost.mjs --package DIR [--steps N] [--warm N] [--only 'read, 1 tree'] [--telemetry SHARE]
// [--conditions N] [--counters]`

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { KINDS, payload } from './payloads.mjs';

const { values } = parseArgs({
  options: {
    package: { type: 'string', default: '.' },
    steps: { type: 'string', default: '6400' },
    warm: { type: 'string', default: '6400' },
    only: { type: 'string' },
    telemetry: { type: 'string' },
    conditions: { type: 'string', default: '0' },
    counters: { type: 'boolean', default: false },
    slices: { type: 'boolean', default: false },
  },
});
const dist = join(resolve(values.package), 'dist/src');
const { openTurnpike, winstonLog } = await import(join(dist, 'index.js'));
const { patientContract } = await import('./contract.mjs');

const folder = mkdtempSync(join(tmpdir(), 'turnpike-step-cost-'));
const log = winstonLog('error');
// With `--telemetry`, this share of the trees is traced, and a collector gets the spans.
const traced =
  values.telemetry === undefined ? null : await (await import('./collector.mjs')).tracedBy(dist, log, values.telemetry);
const turnpike = await openTurnpike({
  home: join(folder, 'home'),
  contract: patientContract(join(folder, 'contract'), undefined, {
    conditions: Number(values.conditions),
    counters: values.counters,
  }),
  log,
  ...(traced === null ? {} : { telemetry: traced.telemetry }),
});
const caseDir = join(folder, 'home/sandbox/case-local/a/b');
mkdirSync(caseDir, { recursive: true });
writeFileSync(join(caseDir, 'note.txt'), 'n'.repeat(1024));

/**
 * Runs `steps` steps of the callers, who each wait for their own response.
 * @returns microseconds of processor time per step
 */
async function cost(callers, kind, steps) {
  let left = steps;
  const before = process.cpuUsage();
  await Promise.all(
    callers.map(async (agent) => {
      while (left > 0) {
        left -= 1;
        await agent.respond(payload(kind));
      }
    }),
  );
  const { user, system } = process.cpuUsage(before);
  return (user + system) / steps;
}

const figureOf = (kind, trees) => `${kind}, ${trees} tree${trees === 1 ? '' : 's'}`;

const start = (trees) => Promise.all(Array.from({ length: trees }, () => turnpike.startAgent({ case: 'case-local' })));

async function close() {
  await turnpike.close();
  await traced?.close();
  rmSync(folder, { recursive: true, force: true });
}

async function measureAll() {
  const costs = {};
  for (const kind of Object.keys(KINDS)) {
    for (const trees of [1, 64]) {
      const figure = figureOf(kind, trees);
      if (values.only !== undefined && values.only !== figure) continue;
      const callers = await start(trees);
      // A single caller waits for a flush at each step, so fewer steps suffice.
      const share = trees === 1 ? 4 : 1;
      await cost(callers, kind, Number(values.warm) / share);
      const begin = performance.now();
      costs[figure] = await cost(callers, kind, Number(values.steps) / share);
      if (trees === 1)
        costs[`${figure}, elapsed`] = ((performance.now() - begin) * 1000 * share) / Number(values.steps);
      await Promise.all(callers.map((agent) => agent.end()));
    }
  }
  await close();
  console.log(JSON.stringify(costs));
}

/** Measures what each message names, with the same callers as long as it names the same figure. */
function measureSlices() {
  let figure = '';
  let callers = [];
  process.on('message', async ({ kind, trees, steps }) => {
    if (figure !== figureOf(kind, trees)) {
      await Promise.all(callers.map((agent) => agent.end()));
      callers = await start(trees);
      figure = figureOf(kind, trees);
    }
    process.send(await cost(callers, kind, steps));
  });
  process.on('disconnect', () => void close().then(() => process.exit()));
}

if (values.slices) measureSlices();
else await measureAll();
