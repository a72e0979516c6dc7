// Several workers on one ledger in PostgreSQL, compared with one process on SQLite, in the same run: only the ratios
// count, because machines differ. It prints each target and what was measured.
// `npm run bench -- cluster [--only rates,flush,shared,failover,settlement,merge,counters] [--rounds N] [--ms N]`
//
//   rates        64 callers: steps/s and processor time a step of all processes, of reads and synced writes
//   flush        four workers against one, when each flush of the server takes 5 ms (`commit_delay`)
//   shared       two callers on one tree, at two workers
//   failover     SIGKILL of a worker to the next step of its trees, of 5,000 entries each, at other workers
//   settlement   SIGKILL of a worker to the recorded outcome of its effects
//   merge        from a commit to its place in the log, while two workers work
//   counters     writes that are counted for 32 cases: three workers, routed by case, against one, in pairs

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createPostgresStore } from '../../dist/src/stores/postgres/index.js';
import { startPostgres } from '../../docs/examples/cluster/postgres.mjs';
import { patientContract } from './contract.mjs';
import { BenchWorker, serverTime } from './cluster-processes.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'rates,flush,shared,failover,settlement,merge,counters' },
    rounds: { type: 'string', default: '4' },
    ms: { type: 'string', default: '1500' },
  },
});
const CALLERS = 64;
/** Each flush of the server, in microseconds. */
const FLUSH_US = 5_000;
/** The callers at one worker, and at four together. */
const FLUSH_SETTINGS = [
  { kind: 'read', callers: [CALLERS, CALLERS], target: 2.5 },
  { kind: 'read', callers: [4, 16], target: null },
  { kind: 'read', callers: [4, 4], target: null },
  { kind: 'write', callers: [CALLERS, CALLERS], target: null },
  { kind: 'write', callers: [4, 16], target: null },
];
const CORES = availableParallelism();
const ENTRIES = 5_000;
/** A read appends this many entries. */
const READ_ENTRIES = 9;
const TREES = 16;
const EFFECTS = 20;
const KILLS = 3;
const SETTLE_MS = 30_000;
const MERGE_MS = 5_000;
const COUNTED_CASES = 32;
const COUNTING_WORKERS = 3;
const COUNTED_WARM_MS = 4_000;
/** Each process does so many steps before it is measured, because V8 compiles meanwhile, and at most for this time. */
const WARM_STEPS = { read: 12_000, write: 4_000 };
const WARM_MS = 15_000;

const ms = Number(values.ms);
const rounds = Number(values.rounds);
const folder = mkdtempSync(join(tmpdir(), 'turnpike-bench-'));
chmodSync(folder, 0o711);
const server = await startPostgres(folder, ['max_wal_size=2GB']);
const client = new pg.Client({ connectionString: server.url });
client.on('error', () => undefined);
await client.connect();
const contract = patientContract(join(folder, 'contract'));
const service = serviceContract(join(folder, 'service'));
const counted = patientContract(join(folder, 'counted'), undefined, { counters: true });
const living = new Set();
let ledgers = 0;

/** The policy with tools. */
function serviceContract(target) {
  const shipped = fileURLToPath(new URL('../../policies/contract/v1/policy/actions.service.yaml', import.meta.url));
  return patientContract(target, shipped);
}

/** Starts workers on a new ledger, one after the other. */
async function ledgerWith(count, policy = contract) {
  ledgers += 1;
  const schema = `bench_${ledgers}`;
  const own = join(folder, schema);
  await (await createPostgresStore({ url: server.url, schema, caseKeysDir: join(own, 'keys/case-keys') })).close();
  await client.query(`SET search_path TO ${schema}`);
  const add = (name) => startWorker({ url: server.url, schema, folder: own, name, contract: policy });
  const workers = [];
  for (let index = 1; index <= count; index += 1) workers.push(await add(`w${index}`));
  return { workers, add };
}

async function startWorker(options) {
  const worker = await BenchWorker.start(options);
  living.add(worker);
  return worker;
}

async function end(workers) {
  for (const worker of workers) {
    await worker.kill();
    living.delete(worker);
  }
}

/** The callers, divided over the workers, for some time. @returns steps/s, and processor time a step in ms */
async function measure(shares, kind, usesServer) {
  const before = usesServer ? serverTime(server.pid) : 0;
  const done = await Promise.all(shares.map(({ worker, runs }) => worker.ask('run', { runs, kind, ms })));
  const steps = sum(done.map((each) => each.steps));
  const failures = sum(done.map((each) => each.failures));
  if (failures > 0) process.stderr.write(`${failures} steps failed\n`);
  const serverMs = usesServer ? serverTime(server.pid) - before : 0;
  const cpuMs = sum(done.map(({ cpuMs: own }) => own)) + serverMs;
  const rate = (steps * 1_000) / Math.max(...done.map((each) => each.ms));
  return { rate, cpu: cpuMs / steps, server: serverMs / steps };
}

async function warmUp(shares, kind) {
  const warm = ({ worker, runs }) =>
    worker.ask('run', { runs, kind, ms: WARM_MS, steps: Math.ceil(WARM_STEPS[kind] / runs.length) });
  await Promise.all(shares.map(warm));
}

async function sharesOf(workers, callers = CALLERS) {
  const shares = [];
  for (const worker of workers)
    shares.push({ worker, runs: await worker.ask('start', { count: callers / workers.length }) });
  return shares;
}

const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const quantile = (numbers, q) =>
  [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * q))];
const timesText = (times, what) =>
  `p50 ${quantile(times, 0.5).toFixed(0)} ms, p99 ${quantile(times, 0.99).toFixed(0)} ms (${times.length} ${what})`;
const say = (text) => void process.stdout.write(`${text}\n`);
const figure = (name, target, measured, holds) =>
  say(`${holds ? 'ok  ' : 'MISS'}  ${name.padEnd(58)} target ${target.padEnd(12)} measured ${measured}`);

/** Several settings in turn, so that other load on the machine meets all of them. */
async function interleaved(settings, kind, isCold = true) {
  const found = settings.map(() => []);
  if (isCold) for (const { shares } of settings) await warmUp(shares, kind);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, { shares, usesServer }] of settings.entries())
      found[index].push(await measure(shares, kind, usesServer));
  }
  const medianOf = (all, name) => median(all.map((one) => one[name]));
  return found.map((all) => ({
    rate: medianOf(all, 'rate'),
    cpu: medianOf(all, 'cpu'),
    server: medianOf(all, 'server'),
  }));
}

async function rates() {
  const sqlite = [await startWorker({ url: null, folder: join(folder, 'sqlite'), name: 'w0', contract })];
  const one = (await ledgerWith(1)).workers;
  const two = (await ledgerWith(2)).workers;
  const settings = [];
  for (const workers of [sqlite, one, two])
    settings.push({ shares: await sharesOf(workers), usesServer: workers !== sqlite });
  const targets = { read: [0.7, 1], write: [0.85, 1.05] };
  for (const [kind, [first, second]] of Object.entries(targets)) {
    const [base, ...others] = await interleaved(settings, kind);
    say(`      ${kind}s on SQLite: ${base.rate.toFixed(0)} steps/s, ${base.cpu.toFixed(3)} ms of processor a step`);
    for (const [index, { rate, cpu, server: inServer }] of others.entries()) {
      const target = index === 0 ? first : second;
      const most = index === 0 ? 1.5 : 1.75;
      const who = index === 0 ? 'one worker' : 'two workers, routed by tree';
      const [ratio, cost] = [rate / base.rate, cpu / base.cpu];
      const steps = `${ratio.toFixed(2)} (${rate.toFixed(0)} steps/s)`;
      figure(`${kind}s, ${who}, of SQLite`, `>= ${target}`, steps, ratio >= target);
      figure(
        `${kind}s, ${who}, processor time a step`,
        `<= ${most}`,
        `${cost.toFixed(2)} (${cpu.toFixed(3)} ms, ${inServer.toFixed(3)} of it in the server)`,
        cost <= most,
      );
    }
  }
  await end([...sqlite, ...one, ...two]);
}

/** `commit_delay` holds every flush back, and commits that come meanwhile share it. */
async function flush() {
  await client.query(`ALTER SYSTEM SET commit_delay = ${FLUSH_US}`);
  await client.query('ALTER SYSTEM SET commit_siblings = 0');
  await client.query('SELECT pg_reload_conf()');
  const one = (await ledgerWith(1)).workers;
  const four = (await ledgerWith(4)).workers;
  for (const { kind, callers, target } of FLUSH_SETTINGS) {
    const settings = [
      { shares: await sharesOf(one, callers[0]), usesServer: true },
      { shares: await sharesOf(four, callers[1]), usesServer: true },
    ];
    const [single, several] = await interleaved(settings, kind, callers[0] === CALLERS);
    const ratio = several.rate / single.rate;
    // No more than this is possible if four workers use both cores alone.
    const most = (CORES * 1_000) / several.cpu / single.rate;
    const measured =
      `${ratio.toFixed(2)} (${several.rate.toFixed(0)} against ${single.rate.toFixed(0)} steps/s; ` +
      `processor time ${several.cpu.toFixed(3)} ms a step, so at most ${most.toFixed(2)})`;
    const name = `${kind}s, flush of 5 ms: four workers, ${callers[1]} callers, of one with ${callers[0]}`;
    figure(name, target === null ? '' : `>= ${target}`, measured, target === null || ratio >= target);
  }
  await end([...one, ...four]);
  await client.query('ALTER SYSTEM RESET ALL');
  await client.query('SELECT pg_reload_conf()');
}

async function shared() {
  const { workers } = await ledgerWith(2);
  const runs = await workers[0].ask('start', { count: 1 });
  const done = await Promise.all(workers.map((worker) => worker.ask('run', { runs, kind: 'think', ms: 2 * ms })));
  const [less, more] = done.map(({ steps }) => steps).sort((a, b) => a - b);
  figure(
    'two callers on one tree: less to more',
    '>= 0.33',
    `${(less / more).toFixed(2)} (${less}, ${more} steps)`,
    less * 3 >= more,
  );
  await end(workers);
}

/** Kills a worker, and uses its trees at the others at once. */
async function failover() {
  const { workers, add } = await ledgerWith(3);
  const runs = await workers[0].ask('start', { count: TREES });
  await workers[0].ask('run', { runs, kind: 'read', ms: SETTLE_MS, steps: Math.ceil(ENTRIES / READ_ENTRIES) });
  const times = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const victim = workers.shift();
    await victim.ask('run', { runs, kind: 'read', ms: 1_000 });
    const from = performance.now();
    await end([victim]);
    await Promise.all(
      runs.map(async (run, index) => {
        await workers[index % workers.length].ask('step', { run });
        times.push(performance.now() - from);
      }),
    );
    workers.push(await add(`again${kill}`));
  }
  const measured = timesText(times, 'trees');
  figure('SIGKILL to the next step of its trees, 5,000 entries', '< 1,500 ms', measured, quantile(times, 0.99) < 1_500);
  await end(workers);
}

async function settlement() {
  const { workers, add } = await ledgerWith(3, service);
  const times = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const victim = workers.shift();
    await victim.ask('tools', { count: EFFECTS });
    while ((await effects()) < EFFECTS) await pause(20);
    const from = performance.now();
    await end([victim]);
    for (let left = EFFECTS; left > 0 && performance.now() - from < SETTLE_MS; await pause(5)) {
      const now = await effects();
      for (; left > now; left -= 1) times.push(performance.now() - from);
    }
    workers.push(await add(`again${kill}`));
  }
  const measured = timesText(times, 'effects');
  figure('SIGKILL to the recorded outcome of its effects', '< 5,000 ms', measured, quantile(times, 0.99) < 5_000);
  await end(workers);
}

/** How many effects have no recorded outcome. */
async function effects() {
  const { rows } = await client.query(`SELECT count(*)::integer AS count FROM leases WHERE kind = 'effect'`);
  return rows[0].count;
}

/** From the newest pending append to its place in the log. The first reading may miss a part of the delay. */
async function merge() {
  const { workers } = await ledgerWith(2);
  const shares = await sharesOf(workers);
  await measure(shares, 'read', true);
  const working = Promise.all(
    shares.map(({ worker, runs }) => worker.ask('run', { runs, kind: 'read', ms: MERGE_MS })),
  );
  const times = [];
  for (const end_ = performance.now() + MERGE_MS - 500; performance.now() < end_; await pause(3)) {
    const from = performance.now();
    const { rows } = await client.query('SELECT max(commit_no) AS last FROM pending');
    if (rows[0].last === null) continue;
    const left = 'SELECT FROM pending WHERE commit_no <= $1 LIMIT 1';
    while ((await client.query(left, [rows[0].last])).rowCount > 0) await pause(1);
    times.push(performance.now() - from);
  }
  await working;
  const measured = timesText(times, 'samples');
  figure('merge delay, two workers with 64 callers', '< 250 ms', measured, quantile(times, 0.99) < 250);
  await end(workers);
}

/** Each worker has every n-th case, with one caller. */
async function countingShares(count) {
  const { workers } = await ledgerWith(count, counted);
  const shares = [];
  for (const [from, worker] of workers.entries()) {
    const own = Math.ceil((COUNTED_CASES - from) / count);
    const place = { count: own, from, stride: count, cases: COUNTED_CASES };
    shares.push({ worker, runs: await worker.ask('start', place) });
  }
  return shares;
}

/** One round of both, one after the other: other load on the machine meets both. */
async function counters() {
  const settings = [await countingShares(1), await countingShares(COUNTING_WORKERS)];
  const measureOne = (shares, time) =>
    Promise.all(shares.map(({ worker, runs }) => worker.ask('run', { runs, kind: 'write', ms: time })));
  for (const shares of settings) await measureOne(shares, COUNTED_WARM_MS);
  const ratios = [];
  const statements = [];
  const speeds = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? [0, 1] : [1, 0];
    const found = [];
    for (const index of order) found[index] = await measureOne(settings[index], ms);
    const [one, several] = found.map(
      (done) => (sum(done.map(({ steps }) => steps)) * 1_000) / Math.max(...done.map((d) => d.ms)),
    );
    ratios.push(several / one);
    speeds[0].push(one);
    speeds[1].push(several);
    const all = found[1];
    statements.push(sum(all.map((each) => each.statements)) / sum(all.map(({ steps }) => steps)));
    const failures = sum(found.flat().map((each) => each.failures));
    if (failures > 0) process.stderr.write(`${failures} steps failed\n`);
  }
  const ratio = median(ratios);
  const [one, several] = speeds.map(median);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  const measured = `${ratio.toFixed(2)} (${range} in ${rounds} pairs; ${several.toFixed(0)} against ${one.toFixed(0)} steps/s)`;
  figure('counted writes of 32 cases: three workers of one', '>= 1.0', measured, ratio >= 1);
  const count = median(statements);
  figure('counted writes of 32 cases: statements a step', '<= 6', count.toFixed(2), count <= 6);
  await end(settings.flat().map(({ worker }) => worker));
}

const FIGURES = { rates, flush, shared, failover, settlement, merge, counters };
try {
  for (const name of values.only.split(',')) await FIGURES[name]();
} finally {
  await end([...living]);
  await client.end();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
