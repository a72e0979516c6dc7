// The processes of one case: three workers, each behind a network of its own, on one ledger. A worker that ends is
// started again.

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { createPostgresStore } from '../../src/stores/postgres/index.js';
import { keyFolder } from '../../src/home/home-paths.js';
import { generateLedgerKey, installLedgerKey } from '../../src/home/ledger-key.js';
import type { Postgres } from '../fixtures/postgres.js';
import { writeContract } from './contract.js';
import { canCreateNamespaces, Namespace } from './namespace.js';
import { placesIn, stateOf, type Places } from './places.js';
import { Proxy } from './proxy.js';
import { plantInSchema } from './sql-plants.js';
import type { Plant, WorkerOptions } from './worker-options.js';

const WORKERS = 3;
/** Time until an ended worker is started again, in ms. */
const START_AGAIN_MS = 300;
const READY_MS = 60_000;
const LOCAL = '127.0.0.1';

export interface ClusterOptions {
  readonly server: Postgres;
  /** The compiled worker. */
  readonly program: string;
  readonly folder: string;
  readonly schema: string;
  readonly plant: Plant;
}

export class Cluster {
  readonly places: Places;
  readonly workers: readonly Worker[];
  readonly #options: ClusterOptions;

  private constructor(options: ClusterOptions, workers: readonly Worker[]) {
    this.#options = options;
    this.places = placesIn(options.folder);
    this.workers = workers;
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const { server, program, folder, schema, plant } = options;
    const places = placesIn(folder);
    mkdirSync(folder, { recursive: true });
    writeContract(places);
    mkdirSync(places.keys, { recursive: true, mode: 0o700 });
    installLedgerKey(keyFolder(places.keys).ledgerKey, generateLedgerKey());
    const store = await createPostgresStore({ url: server.url, schema, caseKeysDir: `${places.keys}/case-keys` });
    await store.close();
    await plantInSchema(plant, schema, (sql) => execute(server.url, schema, sql));
    const workers: Worker[] = [];
    for (let index = 0; index < WORKERS; index += 1) {
      const proxy = new Proxy(Number(new URL(server.url).port));
      const namespace = canCreateNamespaces() ? Namespace.create() : null;
      const url = new URL(server.url);
      url.hostname = namespace?.near ?? LOCAL;
      url.port = String(await proxy.listen(url.hostname));
      const address = namespace?.far ?? LOCAL;
      const workerOptions = { folder, url: url.href, schema, plant, name: `w${index + 1}`, address };
      workers.push(new Worker(workerOptions, { program, proxy, namespace }));
    }
    const cluster = new Cluster(options, workers);
    // Also if the campaign is interrupted.
    process.once('exit', cluster.#killAll);
    for (const worker of workers) worker.start();
    await cluster.ready();
    return cluster;
  }

  /** Resolves when every worker accepts requests. @throws after a minute */
  async ready(): Promise<void> {
    const end = Date.now() + READY_MS;
    for (const worker of this.workers) {
      while (!(await worker.isReady())) {
        if (Date.now() > end) throw new Error(`${worker.name} does not become ready`);
        await pause(100);
      }
    }
  }

  /** Runs SQL in the schema of the ledger, past the networks of the workers. @returns the rows of the last statement */
  query(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return execute(this.#options.server.url, this.#options.schema, sql);
  }

  readonly #killAll = (): void =>
    this.workers.forEach((worker) => {
      worker.kill();
      worker.namespace?.remove();
    });

  async stop(): Promise<void> {
    process.off('exit', this.#killAll);
    await Promise.all(this.workers.map((worker) => worker.end()));
  }
}

export async function execute(
  url: string,
  schema: string,
  sql: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 3_000, query_timeout: 20_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const results: unknown = await client.query(`SET search_path TO ${schema}, pg_temp; ${sql}`);
    const last: unknown = Array.isArray(results) ? results.at(-1) : results;
    return (last as { readonly rows: Readonly<Record<string, unknown>>[] }).rows;
  } finally {
    await client.end();
  }
}

/** The answer of a worker: its status and its body; null if there was none in time. */
export type WorkerAnswer = { readonly isOk: boolean; readonly body: Readonly<Record<string, unknown>> } | null;

interface WorkerParts {
  /** The compiled worker. */
  readonly program: string;
  readonly proxy: Proxy;
  /** Null: it runs in that of this process. */
  readonly namespace: Namespace | null;
}

export class Worker {
  readonly proxy: Proxy;
  readonly namespace: Namespace | null;
  readonly #options: WorkerOptions;
  readonly #program: string;
  #child: ChildProcess | null = null;
  #port: number | null = null;
  #hasEnded = false;
  /** How often it ended by itself. */
  exits = 0;
  #isKilled = false;
  /** A signal has stopped it. */
  isStopped = false;

  constructor(options: WorkerOptions, { program, proxy, namespace }: WorkerParts) {
    this.#options = options;
    this.#program = program;
    this.proxy = proxy;
    this.namespace = namespace;
  }

  get name(): string {
    return this.#options.name;
  }

  /** Whether it seems to accept requests. */
  get isLive(): boolean {
    return this.#port !== null && !this.isStopped;
  }

  start(): void {
    const log = openSync(join(this.#options.folder, `${this.name}.log`), 'a');
    const command = [process.execPath, this.#program, JSON.stringify(this.#options)];
    const [program = '', ...args] = [...(this.namespace?.command ?? []), ...command];
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    this.#child = child;
    this.#isKilled = false;
    // Its port comes first; what follows are lines of its log.
    child.stdout?.once('data', (chunk: Buffer) => {
      if (this.#child === child) this.#port = Number.parseInt(chunk.toString('utf8'), 10) || null;
    });
    child.stdout?.resume();
    child.once('exit', () => {
      this.#port = null;
      this.isStopped = false;
      if (!this.#isKilled) this.exits += 1;
      if (!this.#hasEnded) setTimeout(() => (this.#hasEnded ? undefined : this.start()), START_AGAIN_MS);
    });
  }

  kill(): void {
    this.#isKilled = true;
    this.#port = null;
    this.#child?.kill('SIGKILL');
  }

  /** Stops the process, as a paused machine stops. */
  pause(): void {
    this.isStopped = true;
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.isStopped = false;
    this.#child?.kill('SIGCONT');
  }

  /** Kills it, and removes its local state before it starts again. */
  loseState(): void {
    const { folder } = this.#options;
    this.#child?.once('exit', () => rmSync(stateOf(placesIn(folder), this.name), { recursive: true, force: true }));
    this.kill();
  }

  async isReady(): Promise<boolean> {
    const answer = await this.ask('/health', {}, 1_000);
    return answer?.body['failed'] === false;
  }

  /** @returns null if it does not answer in time */
  async ask(path: string, body: object, ms: number): Promise<WorkerAnswer> {
    if (this.#port === null) return null;
    try {
      const response = await fetch(`http://${this.#options.address}:${this.#port}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ms),
      });
      return { isOk: response.ok, body: (await response.json()) as Readonly<Record<string, unknown>> };
    } catch {
      return null;
    }
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    const child = this.#child;
    this.kill();
    if (child !== null && child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once('exit', resolve));
    this.proxy.close();
    this.namespace?.remove();
  }
}
