// Load through Restate while its nodes and the workers of the ledger are killed. Prints the gap that callers see, and
// the processor time of a submission. Options: --nodes 1|3, --clients N, --seconds N, --steps N.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/index.js';
import { exchangeFolder } from '../../../src/interfaces/restate/index.js';
import { openTurnpike, type Turnpike } from '../../../src/index.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { diskFolder } from '../../fixtures/temp-folder.js';
import { compareWithLedger, load, proposalText, type Acknowledged, type History } from './restate-load.js';
import { freePorts, register, restateServer, startRestate, type RestateNode } from './restate-server.js';
import { RestateWorker, startProxy } from './worker-pool.js';

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '1' },
    clients: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '5' },
    steps: { type: 'string', default: '25' },
  },
});
const [clients, seconds, steps] = [Number(values.clients), Number(values.seconds), Number(values.steps)];
const count = values.nodes === '3' ? 3 : 1;
const SCHEMA = 'turnpike';
const print = (line: string): void => void process.stdout.write(`${line}\n`);

interface World {
  readonly nodes: readonly RestateNode[];
  readonly workers: readonly RestateWorker[];
  readonly exchange: string;
  readonly open: () => Promise<Turnpike>;
}

/** Processor time of a process so far, in ms; 0 where the system does not tell. */
function processorMs(pid: number): number {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return 0;
  const fields = readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

function spread(steps_: readonly Acknowledged[]): string {
  const sorted = steps_.map(({ ms }) => ms).sort((a, b) => a - b);
  const [p50, p99, max] = [percentile(sorted, 0.5), percentile(sorted, 0.99), sorted.at(-1) ?? 0];
  return `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, max ${max.toFixed(0)} ms, ${sorted.length} steps`;
}

async function startRuns(turnpike: Turnpike, name: string, runs: number) {
  return Promise.all(
    Array.from({ length: runs }, async (_, index) => {
      const key = `case-${name}-${index}`;
      const { run_id } = await turnpike.remoteAgents.start({ case: key, idleMs: 3_600_000 });
      return { run_id, key };
    }),
  );
}

/** The processor time of a submission, direct and through Restate, without faults. PostgreSQL is not counted. */
async function measure(world: World, turnpike: Turnpike): Promise<History> {
  const [direct] = await startRuns(turnpike, 'direct', 1);
  const before = process.cpuUsage();
  const total = clients * steps;
  for (let step = 0; step < total; step += 1) {
    await turnpike.respond(direct?.run_id ?? '', proposalText(step), { inputId: `order-${step}` });
  }
  const used = process.cpuUsage(before);
  print(`direct submit: ${((used.user + used.system) / 1_000 / total).toFixed(2)} ms of processor`);
  const runs = await startRuns(turnpike, 'quiet', clients);
  const sum = (): readonly number[] =>
    [world.nodes, world.workers].map((list) => list.reduce((ms, { pid }) => ms + processorMs(pid), 0));
  const [nodesBefore = 0, workersBefore = 0] = sum();
  const history = await load({
    ingress: () => world.nodes[0]?.ingress ?? '',
    exchange: exchangeFolder(world.exchange),
    runs,
    goesOn: (step) => step < steps,
  });
  const [nodesAfter = 0, workersAfter = 0] = sum();
  const each = (ms: number): string => (ms / (history.steps.length * 1.1)).toFixed(2);
  print(
    `through Restate: nodes ${each(nodesAfter - nodesBefore)} ms, workers ${each(workersAfter - workersBefore)} ms`,
  );
  print(`without faults: ${spread(history.steps)}`);
  return history;
}

/** Each fault happens under load. What it ended starts again before the next one. */
function faultsOf({ nodes, workers }: World): readonly { readonly name: string; readonly run: () => Promise<void> }[] {
  const restartNode = async (node: RestateNode): Promise<void> => {
    await node.kill();
    await sleep(nodes.length === 1 ? 500 : 3_000);
    node.start();
    await node.answering();
  };
  const restartWorker = async (worker: RestateWorker): Promise<void> => {
    await worker.kill();
    await sleep(500);
    await worker.start();
  };
  return [
    ...workers.map((worker, index) => ({ name: `SIGKILL of worker ${index}`, run: () => restartWorker(worker) })),
    ...nodes.map((node, index) => ({ name: `SIGKILL of node ${index}`, run: () => restartNode(node) })),
    {
      name: 'restart of everything',
      run: async () => {
        await Promise.all([...nodes, ...workers].map((one) => one.kill()));
        for (const node of nodes) node.start();
        await Promise.all([...workers.map((worker) => worker.start()), ...nodes.map((node) => node.answering())]);
      },
    },
  ];
}

async function chaos(world: World, turnpike: Turnpike): Promise<History> {
  const runs = await startRuns(turnpike, 'chaos', clients);
  let isOver = false;
  let turn = 0;
  const loading = load({
    // A client stays at its node until that fails.
    ingress: (attempt) => world.nodes[(attempt === 0 ? turn : ++turn) % world.nodes.length]?.ingress ?? '',
    exchange: exchangeFolder(world.exchange),
    runs,
    goesOn: () => !isOver,
  });
  const faults: { readonly name: string; readonly from: number; readonly to: number }[] = [];
  for (const { name, run } of faultsOf(world)) {
    await sleep((seconds * 1_000) / 2);
    const from = performance.now();
    await run();
    await sleep((seconds * 1_000) / 2);
    faults.push({ name, from, to: performance.now() });
  }
  isOver = true;
  const history = await loading;
  for (const { name, from, to } of faults) {
    const during = history.steps.filter(({ sentAt, ms }) => sentAt + ms >= from && sentAt <= to);
    print(`${name}: ${spread(during)}`);
  }
  return history;
}

async function main(): Promise<number> {
  const binary = restateServer();
  const postgres = binary === null ? null : await startPostgres({ isDurable: true });
  if (binary === null || postgres === null) return 0;
  const folder = diskFolder('restate');
  const [proxyPort = 0, ...ports] = await freePorts(3);
  const keys = { url: postgres.url, schema: SCHEMA, caseKeysDir: join(folder, 'case-keys') };
  await (await createPostgresStore(keys)).close();
  const exchange = join(folder, 'exchange');
  const workers = ports.map((port) => new RestateWorker(port, [postgres.url, SCHEMA, folder, exchange]));
  const nodes: RestateNode[] = [];
  let turnpike: Turnpike | null = null;
  const open = async (): Promise<Turnpike> =>
    openTurnpike({ store: await openPostgresStore(keys), sandbox: join(folder, 'sandbox'), restarts: 'automatic' });
  const end = (): void => {
    for (const { pid } of [...nodes, ...workers]) if (pid > 0) process.kill(pid, 'SIGKILL');
  };
  process.once('exit', end);
  try {
    await Promise.all(workers.map((worker) => worker.start()));
    const proxy = await startProxy(proxyPort, workers);
    nodes.push(...(await startRestate(binary, join(folder, 'restate'), count)));
    const [first] = nodes;
    if (first !== undefined) await register(first, `http://127.0.0.1:${proxyPort}`);
    const world = { nodes, workers, exchange, open };
    turnpike = await open();
    const quiet = await measure(world, turnpike);
    const faulty = await chaos(world, turnpike);
    const found = [...(await compareWithLedger(turnpike, quiet)), ...(await compareWithLedger(turnpike, faulty))];
    if (quiet.interrupted > 0) found.push(`${quiet.interrupted} steps were interrupted without a fault`);
    for (const line of found.slice(0, 20)) print(line);
    const acknowledged = quiet.steps.length + faulty.steps.length;
    print(`${faulty.interrupted} interrupted before they happened`);
    print(`${acknowledged} acknowledged, ${faulty.repeats} requests repeated, ${found.length} violations`);
    proxy.close();
    return found.length === 0 && acknowledged > 0 ? 0 : 1;
  } finally {
    await turnpike?.close().catch(() => undefined);
    await Promise.all([...nodes, ...workers].map((one) => one.kill()));
    process.off('exit', end);
    await postgres.stop();
  }
}

process.exit(await main());
