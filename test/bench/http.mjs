// Steps per second over HTTP, from 64 connections, compared with the library with 64 callers in the same run of this
// program.
// `npm run bench -- http [--seconds N] [--rounds N]`

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { serveTurnpike, singleTokenBook } from '../../dist/src/interfaces/http/index.js';
import { patientContract } from './contract.mjs';
import { payload } from './payloads.mjs';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '5' }, rounds: { type: 'string', default: '3' } },
});
const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
const CONNECTIONS = 64;
const folder = mkdtempSync(join(tmpdir(), 'turnpike-http-'));
const log = winstonLog('error');
const token = 'a-token-of-the-bench';
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Steps per second of as many callers as there are connections, each waiting for its own response. */
async function library(runs) {
  const begin = performance.now();
  const cpu = process.cpuUsage();
  const end = begin + seconds * 1000;
  let steps = 0;
  await Promise.all(
    runs.map(async (run) => {
      while (performance.now() < end) {
        await run.respond(payload('read'));
        steps += 1;
      }
    }),
  );
  return { rate: (steps * 1000) / (performance.now() - begin), cpu: spent(cpu) / steps };
}

/** Microseconds of this process since then: those of the other measurement's client are not included. */
function spent(since) {
  const { user, system } = process.cpuUsage(since);
  return user + system;
}

/** The same over HTTP, from a separate process. */
async function overHttp(url, runs) {
  const client = fileURLToPath(new URL('./http-client.mjs', import.meta.url));
  const child = spawn(process.execPath, [client, JSON.stringify({ url, token, runs, seconds })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const cpu = process.cpuUsage();
  let text = '';
  for await (const chunk of child.stdout) text += chunk;
  const result = JSON.parse(text);
  return { ...result, cpu: spent(cpu) / (result.rate * seconds) };
}

try {
  const contract = patientContract(join(folder, 'contract'));
  const turnpike = await openTurnpike({ home: join(folder, 'home'), contract, log, control: false });
  const box = join(folder, 'home/sandbox/case-local/a/b');
  mkdirSync(box, { recursive: true });
  writeFileSync(join(box, 'note.txt'), 'n'.repeat(1024));
  const who = { actor: 'bench', role: 'SANDBOX_AGENT', rights: ['act'] };
  const clock = { now: () => Date.now(), wake: () => () => undefined };
  const server = await serveTurnpike({
    turnpike,
    host: '127.0.0.1',
    port: 0,
    storedTokens: false,
    tokens: singleTokenBook(token, who, clock),
    log,
  });
  const start = () => turnpike.startAgent({ case: 'case-local', actor: who.actor, role: who.role, link: 'remote' });
  const inside = await Promise.all(Array.from({ length: CONNECTIONS }, start));
  const outside = await Promise.all(Array.from({ length: CONNECTIONS }, start));
  const runs = outside.map(({ run_id }) => run_id);
  // Until the code is compiled: a service that runs for hours does not pay for that.
  await library(inside);
  await overHttp(server.url, runs);
  const ours = [];
  const theirs = [];
  let errors = 0;
  for (let round = 0; round < rounds; round += 1) {
    theirs.push(await library(inside));
    const result = await overHttp(server.url, runs);
    ours.push(result);
    errors += result.errors;
  }
  const [over, within] = [ours, theirs].map((all) => ({
    rate: median(all.map((one) => one.rate)),
    cpu: median(all.map((one) => one.cpu)),
  }));
  for (const [what, { rate, cpu }] of Object.entries({ library: within, HTTP: over })) {
    console.log(`${what}: ${Math.round(rate)} steps/s, ${Math.round(cpu)} us of processor a step`);
  }
  console.log(`ratio: ${(over.rate / within.rate).toFixed(2)} (${rounds} rounds of ${seconds} s), ${errors} errors`);
  await server.close();
  await Promise.all([...inside, ...outside].map((run) => run.end()));
  const verdict = await turnpike.ledger.verify();
  await turnpike.close();
  if (errors > 0 || !verdict.ok) throw new Error('there were errors, or the ledger does not verify');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
