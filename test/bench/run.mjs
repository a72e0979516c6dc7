// Steps per second compared with the floor, in the same run: only the ratios count, because machines differ.
// `npm run bench -- steps [--rounds N] [--json]`

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { patientContract } from './contract.mjs';
import { Floor } from './floor.mjs';
import { KINDS, payload } from './payloads.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    ms: { type: 'string', default: '700' },
    warm: { type: 'string', default: '3000' },
    json: { type: 'boolean' },
  },
});
const rounds = Number(values.rounds);
const roundMs = Number(values.ms);
const warmMs = Number(values.warm);

const folder = mkdtempSync(join(tmpdir(), 'turnpike-bench-'));
const caseDir = join(folder, 'home/sandbox/case-local/a/b');
const turnpike = await openTurnpike({
  home: join(folder, 'home'),
  contract: patientContract(join(folder, 'contract')),
  log: winstonLog('error'),
});
mkdirSync(caseDir, { recursive: true });
writeFileSync(join(caseDir, 'note.txt'), 'n'.repeat(1024));
const floor = new Floor(folder, join(folder, 'home/sandbox/case-local'));

/** Steps per second of `callers` loops, each waiting for its own response. */
async function rate(callers, step, ms = roundMs) {
  const end = performance.now() + ms;
  const start = performance.now();
  let steps = 0;
  await Promise.all(
    callers.map(async (caller) => {
      while (performance.now() < end) {
        await step(caller);
        steps += 1;
      }
    }),
  );
  return (steps * 1000) / (performance.now() - start);
}

class Caller {
  #agent = null;
  async step(kind) {
    this.#agent ??= await turnpike.startAgent({ case: 'case-local' });
    return this.#agent.respond(payload(kind));
  }
  async end() {
    await this.#agent?.end();
  }
}

async function lifecycle() {
  const agent = await turnpike.startAgent({ case: 'case-local' });
  await agent.end();
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

const rows = [];
for (const kind of Object.keys(KINDS)) {
  for (const trees of [1, 64]) {
    const callers = Array.from({ length: trees }, () => new Caller());
    // Until the code is compiled: a service that runs for hours does not pay for that.
    await rate(callers, () => floor.step(payload(kind)), warmMs);
    await rate(callers, (caller) => caller.step(kind), warmMs);
    const ours = [];
    const theirs = [];
    for (let round = 0; round < rounds; round += 1) {
      theirs.push(await rate(callers, () => floor.step(payload(kind))));
      ours.push(await rate(callers, (caller) => caller.step(kind)));
    }
    await Promise.all(callers.map((caller) => caller.end()));
    rows.push({ step: kind, trees, ours: median(ours), floor: median(theirs) });
  }
}
for (const trees of [1, 64]) {
  const callers = Array.from({ length: trees }, (_, index) => index);
  const ours = [];
  for (let round = 0; round < rounds; round += 1) ours.push(await rate(callers, lifecycle));
  rows.push({ step: 'run lifecycle', trees, ours: median(ours), floor: null });
}

const verdict = await turnpike.ledger.verify();
await turnpike.close();
floor.close();
rmSync(folder, { recursive: true, force: true });
if (!verdict.ok) throw new Error('the ledger of the benchmark does not verify');

const table = rows.map(({ step, trees, ours, floor: limit }) => ({
  step,
  trees,
  'steps/s': Math.round(ours),
  'floor/s': limit === null ? null : Math.round(limit),
  ratio: limit === null ? null : Number((ours / limit).toFixed(3)),
}));
if (values.json) console.log(JSON.stringify({ node: process.version, cpu: cpus()[0]?.model, rounds, rows: table }));
else {
  console.log(
    `Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model}; median of ${rounds} rounds of ${roundMs} ms`,
  );
  console.table(table);
}
