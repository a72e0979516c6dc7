// Growth: memory over a long run, the cost of a step in a long ledger, the time to load a long tree, and the cost of
// idle live runs.
// `npm run bench -- growth [--steps 100000] [--entries 1000000] [--runs 10000]`

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { patientContract } from './contract.mjs';
import { payload } from './payloads.mjs';

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '100000' },
    entries: { type: 'string', default: '1000000' },
    runs: { type: 'string', default: '10000' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'turnpike-growth-'));
const contract = patientContract(join(folder, 'contract'));
const megabytes = () => {
  globalThis.gc?.();
  return Math.round(process.memoryUsage.rss() / 1e6);
};
/** The budgets are for agents that run wild; this one runs for a long time on purpose. */
const storage = { runBytes: 2 ** 40, caseBytes: 2 ** 40, actorBytes: 2 ** 40 };
const open = (home) =>
  openTurnpike({ home: join(folder, home), contract, storage, log: winstonLog('error'), control: false });

function withNote(home) {
  const place = join(folder, home, 'sandbox/case-local/a/b');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'note.txt'), 'n'.repeat(1024));
}

/** Microseconds per read step, of 64 callers who take `each` steps. */
async function stepCost(agents, each) {
  const begin = performance.now();
  await Promise.all(
    agents.map(async (agent) => {
      for (let step = 0; step < each; step += 1) await agent.respond(payload('read'));
    }),
  );
  return ((performance.now() - begin) * 1000) / (agents.length * each);
}

const sixtyFour = (turnpike) =>
  Promise.all(Array.from({ length: 64 }, () => turnpike.startAgent({ case: 'case-local' })));
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const sizeOf = async (turnpike) => (await turnpike.ledger.verify()).entries ?? 0;

async function idleRuns() {
  const turnpike = await open('idle');
  const before = megabytes();
  for (let started = 0; started < Number(values.runs); started += 100) {
    await Promise.all(Array.from({ length: 100 }, () => turnpike.startAgent({ case: 'case-local', link: 'remote' })));
  }
  const busy = megabytes();
  // When the process is idle, V8 frees the memory that the start used.
  for (let waits = 0; waits < 5; waits += 1) await pause(3_000).then(megabytes);
  console.log(
    `${values.runs} live runs: ${before} MB resident before them, ${busy} when the last was started, ` +
      `${megabytes()} when they had been idle for 15 s`,
  );
  await turnpike.close();
}

async function longRun() {
  let turnpike = await open('long');
  withNote('long');
  const agent = await turnpike.startAgent({ case: 'case-local', link: 'remote' });
  const residents = [];
  const steps = Number(values.steps);
  for (let step = 1; step < steps; step += 1) {
    await agent.respond(payload('read'));
    if (step % (steps / 10) === 0) residents.push(megabytes());
  }
  residents.push(megabytes());
  console.log(`${steps} read steps in one run: MB resident after each tenth ${residents.join(' ')}`);
  await turnpike.close();
  const begin = performance.now();
  turnpike = await open('long');
  const opened = performance.now();
  await turnpike.submit(agent.run_id, payload('read')).catch((error) => error);
  console.log(
    `after a restart: home open with its tree in memory in ${Math.round(opened - begin)} ms, ` +
      `its next step answered ${Math.round(performance.now() - opened)} ms later`,
  );
  return turnpike;
}

async function longLedger(big) {
  const others = await sixtyFour(big);
  const had = await sizeOf(big);
  const missing = Math.max(0, Number(values.entries) - had);
  await stepCost(others, Math.ceil(missing / 9 / 64));
  const [short, long] = [[], []];
  for (let round = 0; round < 7; round += 1) {
    const small = await open(`small-${round}`);
    withNote(`small-${round}`);
    const agents = await sixtyFour(small);
    short.push(await stepCost(agents, 4));
    long.push(await stepCost(others, 4));
    await small.close();
  }
  const ratio = median(long) / median(short);
  console.log(
    `a read step of 64 callers: ${Math.round(median(long))} us in a ledger of ${had + missing} entries, ` +
      `${Math.round(median(short))} us in one of about 1000: ${ratio.toFixed(2)} x`,
  );
}

try {
  await idleRuns();
  const big = await longRun();
  await longLedger(big);
  await big.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
