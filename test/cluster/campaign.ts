// One case: workers, clients and faults for a seed, and what the checks find.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { seeded } from '../crash/seeded.js';
import { Tally } from '../crash/tally.js';
import type { Postgres } from '../fixtures/postgres.js';
import { checkCluster } from './check.js';
import { Clients } from './clients.js';
import { Cluster, execute } from './cluster.js';
import { injectFaults, type Fault } from './faults.js';
import type { Plant } from './worker-options.js';

const AGENTS = 20;
/** Few agents contend for few trees. */
const CONTESTED_AGENTS = 3;

export interface CaseOptions {
  readonly server: Postgres;
  /** The compiled worker. */
  readonly program: string;
  /** The folder of a small file system with the data of the server, or null. */
  readonly smallDisk: string | null;
  /** A folder for the files of the case. It is removed if nothing was found. */
  readonly folder: string;
  readonly seed: number;
  readonly faults: number;
  readonly only?: readonly Fault[];
  readonly plant?: Plant;
  /** Default: true. */
  readonly isQuotaExact?: boolean;
  /** Whether several workers get requests for the same tree most of the time. Default: false. */
  readonly isContested?: boolean;
  /** Whether many tool calls are slow. Default: false. */
  readonly isSlow?: boolean;
}

export interface CaseReport {
  readonly seed: number;
  readonly tally: Tally;
  readonly faults: ReadonlyMap<Fault, number>;
  readonly operations: Readonly<Record<'ok' | 'unknown', number>>;
  readonly slowestMs: number;
  readonly seconds: number;
  /** The folder with the evidence; null if nothing was found. */
  readonly evidence: string | null;
}

let schemas = 0;

export async function runCase(options: CaseOptions): Promise<CaseReport> {
  const { server, program, seed, plant = 'none', isQuotaExact = true, isContested = false, isSlow = false } = options;
  const startedAt = Date.now();
  const random = seeded(seed);
  const tally = new Tally(`seed ${seed}`);
  schemas += 1;
  const schema = `cluster_${process.pid}_${schemas}`;
  const folder = join(options.folder, `seed-${seed}`);
  const cluster = await Cluster.start({ server, program, folder, schema, plant });
  const cases = [`case-${seed}-a`, `case-${seed}-b`, `case-${seed}-quota`];
  const agents = isContested ? CONTESTED_AGENTS : AGENTS;
  const clients = new Clients({
    ...{ workers: cluster.workers, random: seeded(seed + 1_000), agents, seed, cases, isContested, isSlow },
  });
  let faults: ReadonlyMap<Fault, number> = new Map();
  try {
    clients.start();
    const { smallDisk, only } = options;
    const kinds = only === undefined ? {} : { only };
    const answered = (): number => clients.history.answered;
    faults = await injectFaults({ cluster, server, smallDisk, random, answered, count: options.faults, ...kinds });
    await clients.end();
    await checkCluster({ tally, cluster, history: clients.history, url: server.url, schema, isQuotaExact });
  } catch (error) {
    tally.that(
      false,
      () => `the case ended with ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  } finally {
    await cluster.stop();
  }
  const isClean = tally.violations.length === 0;
  if (isClean) {
    rmSync(folder, { recursive: true, force: true });
    await execute(server.url, 'public', `DROP SCHEMA ${schema} CASCADE`).catch(() => undefined);
  }
  const ok = clients.history.operations.filter(({ outcome }) => outcome === 'ok').length;
  return {
    ...{ seed, tally, faults, slowestMs: clients.history.slowestMs, evidence: isClean ? null : folder },
    operations: { ok, unknown: clients.history.operations.length - ok },
    seconds: (Date.now() - startedAt) / 1_000,
  };
}
