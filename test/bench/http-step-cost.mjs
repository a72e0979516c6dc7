// The cost of one governed step over HTTP, in microseconds of processor time of the service (user and system): from one
// connection, and from 64, all with one token. A child process of pairs.mjs: one line of JSON on stdout.
// `node test/bench/http-step-cost.mjs --package DIR [--steps N] [--warm N] [--telemetry SHARE]
// [--only 'read over HTTP, 1 connection']`

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    package: { type: 'string', default: '.' },
    steps: { type: 'string', default: '6400' },
    warm: { type: 'string', default: '6400' },
    only: { type: 'string' },
    telemetry: { type: 'string' },
  },
});
const dist = join(resolve(values.package), 'dist/src');
const { openTurnpike, winstonLog } = await import(join(dist, 'index.js'));
// By its name: another version has it in another folder.
const { exports } = JSON.parse(readFileSync(join(resolve(values.package), 'package.json'), 'utf8'));
const { serveTurnpike, singleTokenBook } = await import(join(resolve(values.package), exports['./http'].default));
const { patientContract } = await import('./contract.mjs');

const folder = mkdtempSync(join(tmpdir(), 'turnpike-http-step-cost-'));
const log = winstonLog('error');
const token = 'a-token-of-the-bench';
// With `--telemetry`, this share of the trees is traced, and a collector gets the spans.
const traced =
  values.telemetry === undefined ? null : await (await import('./collector.mjs')).tracedBy(dist, log, values.telemetry);
const observed = traced === null ? {} : { telemetry: traced.telemetry };
const turnpike = await openTurnpike({
  home: join(folder, 'home'),
  contract: patientContract(join(folder, 'contract')),
  log,
  control: false,
  ...observed,
});
const box = join(folder, 'home/sandbox/case-local/a/b');
mkdirSync(box, { recursive: true });
writeFileSync(join(box, 'note.txt'), 'n'.repeat(1_024));
const who = { actor: 'bench', role: 'SANDBOX_AGENT', rights: ['act'] };
const clock = { now: () => Date.now(), wake: () => () => undefined };
const tokens = singleTokenBook(token, who, clock);
const server = await serveTurnpike({
  turnpike,
  host: '127.0.0.1',
  port: 0,
  storedTokens: false,
  tokens,
  log,
  ...observed,
});

const client = fileURLToPath(new URL('./http-steps.mjs', import.meta.url));

/** @returns microseconds of processor time of this process per step; another process sends the steps */
async function cost(runs, kind, steps) {
  const child = spawn(process.execPath, [client, JSON.stringify({ url: server.url, token, runs, kind, steps })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let result = '';
  let before = process.cpuUsage();
  for await (const chunk of child.stdout) {
    // The client reports its start, so that its startup is not in the measurement.
    if (result === '') before = process.cpuUsage();
    result += chunk;
  }
  const { user, system } = process.cpuUsage(before);
  const { failures } = JSON.parse(result.trim().split('\n').at(-1));
  if (failures > 0) throw new Error(`${failures} steps failed`);
  return (user + system) / steps;
}

const costs = {};
for (const kind of ['read', 'think']) {
  for (const connections of [1, 64]) {
    const name = `${kind} over HTTP, ${connections} connection${connections === 1 ? '' : 's'}`;
    if (values.only !== undefined && values.only !== name) continue;
    const start = () => turnpike.startAgent({ case: 'case-local', actor: who.actor, role: who.role, link: 'remote' });
    const agents = await Promise.all(Array.from({ length: connections }, start));
    const runs = agents.map(({ run_id }) => run_id);
    const share = connections === 1 ? 4 : 1;
    await cost(runs, kind, Math.ceil(Number(values.warm) / share));
    costs[name] = await cost(runs, kind, Math.ceil(Number(values.steps) / share));
    await Promise.all(agents.map((agent) => agent.end()));
  }
}
await server.close();
await turnpike.close();
await traced?.close();
rmSync(folder, { recursive: true, force: true });
console.log(JSON.stringify(costs));
