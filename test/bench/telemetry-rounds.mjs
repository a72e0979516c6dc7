// Steps with telemetry and without it, in one process: one Turnpike for each variant, whose short rounds alternate.
// A child process of telemetry.mjs: one line of JSON on stdout, with the microseconds of processor time per step of
// each round, by variant.
// `node test/bench/telemetry-rounds.mjs --package DIR --kind think --shares 0.1 --rounds N --steps N --warm N
// --turn N`

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { tracedBy } from './collector.mjs';
import { patientContract } from './contract.mjs';
import { payload } from './payloads.mjs';

const CALLERS = 64;
const names = ['package', 'kind', 'shares', 'rounds', 'steps', 'warm', 'turn'];
const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) });
const dist = join(resolve(values.package), 'dist/src');
const { openTurnpike, winstonLog } = await import(join(dist, 'index.js'));
const log = winstonLog('error');
const folder = mkdtempSync(join(tmpdir(), 'turnpike-telemetry-cost-'));

/** @param share of the trees that is traced; null: without telemetry */
async function open(share, index) {
  const home = join(folder, `home-${index}`);
  const traced = share === null ? null : await tracedBy(dist, log, share);
  const turnpike = await openTurnpike({
    home,
    contract: patientContract(join(folder, `contract-${index}`)),
    log,
    ...(traced === null ? {} : { telemetry: traced.telemetry }),
  });
  const caseDir = join(home, 'sandbox/case-local/a/b');
  mkdirSync(caseDir, { recursive: true });
  writeFileSync(join(caseDir, 'note.txt'), 'n'.repeat(1024));
  const callers = await Promise.all(Array.from({ length: CALLERS }, () => turnpike.startAgent({ case: 'case-local' })));
  const close = async () => {
    await Promise.all(callers.map((agent) => agent.end()));
    await turnpike.close();
    await traced?.close();
  };
  return { callers, close, costs: [] };
}

/** @returns microseconds of processor time per step; each caller waits for its own response */
async function cost({ callers }, steps) {
  let left = steps;
  const before = process.cpuUsage();
  const work = async (agent) => {
    while (left > 0) {
      left -= 1;
      await agent.respond(payload(values.kind));
    }
  };
  await Promise.all(callers.map(work));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / steps;
}

const shares = [null, ...values.shares.split(',')];
const variants = new Array(shares.length);
// Another one is opened first in each process: the first one took some 3 % more for reads.
for (const place of shares.keys()) {
  const index = (place + Number(values.turn)) % shares.length;
  variants[index] = await open(shares[index], index);
}
for (const variant of [...variants, ...variants]) await cost(variant, Number(values.warm) / 2);
for (let round = 0; round < Number(values.rounds); round += 1) {
  // Each variant comes first, and last, equally often.
  const order = variants.map((_, place) => variants[(place + (round >> 1)) % variants.length]);
  if (round % 2 === 1) order.reverse();
  for (const variant of order) variant.costs.push(await cost(variant, Number(values.steps)));
}
for (const { close } of variants) await close();
rmSync(folder, { recursive: true, force: true });
console.log(JSON.stringify(variants.map(({ costs }) => costs)));
