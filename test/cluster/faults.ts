// The faults of a case. A seed decides their order; several may last at the same time.

import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { below, pick } from '../crash/seeded.js';
import type { Postgres } from '../fixtures/postgres.js';
import type { Cluster, Worker } from './cluster.js';
import { canCreateNamespaces } from './namespace.js';
import type { Trap } from './proxy.js';

export const FAULTS = [
  'kill',
  'kill at a commit',
  'kill at an integration',
  'stop',
  'stop for 10 s',
  'stop at an answer',
  'cut',
  'cut at a statement',
  'late statement',
  'cut often',
  'delay',
  'hold',
  'half-open',
  'no network',
  'partition',
  'server restart',
  'full disk',
  'clock jump',
  'lost state',
] as const;
export type Fault = (typeof FAULTS)[number];

/** How often each kind is drawn. */
const WEIGHTS: Readonly<Record<Fault, number>> = {
  kill: 6,
  'kill at a commit': 6,
  'kill at an integration': 5,
  stop: 6,
  'stop for 10 s': 1,
  'stop at an answer': 10,
  cut: 8,
  'cut at a statement': 22,
  'late statement': 10,
  'cut often': 5,
  delay: 5,
  hold: 4,
  'half-open': 4,
  'no network': 3,
  partition: 5,
  'server restart': 2,
  'full disk': 1,
  'clock jump': 3,
  'lost state': 2,
};

/** Texts of statements at which a connection is cut. */
const STATEMENTS = [
  'turnpike_commit',
  'turnpike_commit',
  'turnpike_commit',
  'integrate_appends',
  'UPDATE leases',
  'FOR UPDATE',
  'COMMIT',
  'SELECT',
] as const;

/** A trap that has not sprung after this time is removed, in ms. */
const TRAP_MS = 2_500;
/** How many faults may last at the same time. */
const AT_ONCE = 3;
/** A fault follows after so many further answers, so that a loaded machine does not make the case empty. */
const ANSWERS = 3;
/** Or after this time, in ms. */
const PACE_MS_MAX = 3_000;

export interface FaultOptions {
  readonly cluster: Cluster;
  readonly server: Postgres;
  /** The folder of a small file system with the data of the server; null: its disk cannot be filled. */
  readonly smallDisk: string | null;
  readonly random: () => number;
  readonly count: number;
  /** How many requests of clients have been answered. */
  readonly answered: () => number;
  /** Only these kinds. */
  readonly only?: readonly Fault[];
}

/** Injects faults. @returns how often each kind has happened */
export async function injectFaults(options: FaultOptions): Promise<ReadonlyMap<Fault, number>> {
  const happened = new Map<Fault, number>();
  const lasting = new Set<Promise<void>>();
  const injector = new Injector(options);
  const kinds = (options.only ?? FAULTS).filter(
    (kind) => (kind !== 'full disk' || options.smallDisk !== null) && (kind !== 'partition' || canCreateNamespaces()),
  );
  const drawn = kinds.flatMap((kind) => Array<Fault>(WEIGHTS[kind]).fill(kind));
  const total = (): number => [...happened.values()].reduce((sum, count) => sum + count, 0);
  while (total() + lasting.size < options.count || lasting.size > 0) {
    if (lasting.size >= AT_ONCE || total() + lasting.size >= options.count) await Promise.race(lasting);
    if (total() + lasting.size >= options.count) continue;
    const fault = pick(options.random, drawn);
    await answersFrom(options.answered);
    const lasts = injector.inject(fault).then((did) => {
      if (did) happened.set(fault, (happened.get(fault) ?? 0) + 1);
      lasting.delete(lasts);
    });
    lasting.add(lasts);
    await pause(below(options.random, 400));
  }
  injector.end();
  return happened;
}

async function answersFrom(answered: () => number): Promise<void> {
  const before = answered();
  for (const end = Date.now() + PACE_MS_MAX; answered() < before + ANSWERS && Date.now() < end;) await pause(20);
}

class Injector {
  readonly #options: FaultOptions;
  /** Workers that have a fault of their whole process or network. */
  readonly #busy = new Set<Worker>();
  /** The server is restarting, or its disk is full. */
  #isServerBusy = false;
  /** How far the clock of each worker was moved. */
  readonly #jumped = new Map<Worker, number>();

  constructor(options: FaultOptions) {
    this.#options = options;
  }

  /** @returns whether the fault has happened */
  async inject(fault: Fault): Promise<boolean> {
    if (fault === 'server restart') return this.#onServer(() => this.#options.server.restart());
    if (fault === 'full disk') return this.#onServer(() => this.#fillDisk());
    const free = this.#options.cluster.workers.filter((worker) => !this.#busy.has(worker) && worker.isLive);
    if (free.length === 0) return pause(100).then(() => false);
    const worker = pick(this.#options.random, free);
    this.#busy.add(worker);
    try {
      return await this.#on(worker, fault);
    } finally {
      this.#busy.delete(worker);
    }
  }

  /** Ends what would last after the case. */
  end(): void {
    for (const worker of this.#options.cluster.workers) {
      worker.proxy.delayMs = 0;
      worker.proxy.cutEvery = null;
      worker.proxy.up();
      worker.namespace?.up();
      if (worker.isStopped) worker.resume();
    }
  }

  #ms(from: number, to: number): number {
    return from + below(this.#options.random, to - from);
  }

  async #on(worker: Worker, fault: Exclude<Fault, 'server restart' | 'full disk'>): Promise<boolean> {
    const { proxy } = worker;
    switch (fault) {
      case 'kill':
        worker.kill();
        return pause(this.#ms(200, 800)).then(() => true);
      case 'kill at a commit':
        return this.#trap(worker, 'turnpike_commit', 'cut after the answer', () => worker.kill());
      case 'kill at an integration':
        return this.#trap(worker, 'integrate_appends', 'cut after the answer', () => worker.kill());
      case 'stop':
        return this.#stop(worker, this.#ms(300, 2_500));
      case 'stop for 10 s':
        return this.#stop(worker, 10_000);
      case 'stop at an answer':
        return this.#stopAtAnswer(worker);
      case 'cut':
        proxy.cut();
        return true;
      case 'cut at a statement': {
        const trap = pick<Trap>(this.#options.random, ['cut before', 'cut before the answer', 'cut after the answer']);
        return this.#trap(worker, pick(this.#options.random, STATEMENTS), trap);
      }
      case 'late statement':
        return this.#trap(worker, pick(this.#options.random, STATEMENTS), 'late');
      case 'partition':
        worker.namespace?.down();
        await pause(this.#ms(300, 6_000));
        worker.namespace?.up();
        return true;
      case 'clock jump':
        return this.#jump(worker);
      case 'lost state':
        worker.loseState();
        return pause(500).then(() => true);
      default:
        return this.#disturb(worker, fault);
    }
  }

  /** Faults of a network that last for some time. */
  async #disturb(
    { proxy }: Worker,
    fault: 'cut often' | 'delay' | 'hold' | 'half-open' | 'no network',
  ): Promise<boolean> {
    switch (fault) {
      case 'cut often':
        proxy.cutEvery = this.#ms(3, 14);
        await pause(this.#ms(500, 2_000));
        proxy.cutEvery = null;
        return true;
      case 'delay':
        proxy.delayMs = this.#ms(10, 250);
        await pause(this.#ms(500, 2_500));
        proxy.delayMs = 0;
        return true;
      case 'no network':
        proxy.down();
        await pause(this.#ms(300, 3_000));
        proxy.up();
        return true;
      default: {
        const lasting = fault === 'hold' ? proxy.hold() : proxy.halfOpen();
        await pause(this.#ms(500, 5_500));
        lasting.end();
        return true;
      }
    }
  }

  async #trap(worker: Worker, text: string, trap: Trap, then: () => void = () => undefined): Promise<boolean> {
    const trapState = { hasSprung: false };
    const hasSprung = (): boolean => trapState.hasSprung;
    worker.proxy.set(text, trap, () => {
      trapState.hasSprung = true;
      then();
    });
    for (const end = Date.now() + TRAP_MS; !hasSprung() && Date.now() < end;) await pause(20);
    if (!hasSprung()) worker.proxy.clear();
    return hasSprung();
  }

  async #stop(worker: Worker, ms: number): Promise<boolean> {
    worker.pause();
    await pause(ms);
    worker.resume();
    return true;
  }

  /** The worker stands still between its commit and its effects, without its connection. */
  async #stopAtAnswer(worker: Worker): Promise<boolean> {
    const hasSprung = await this.#trap(worker, 'turnpike_commit', 'cut after the answer', () => worker.pause());
    if (!hasSprung) return false;
    await pause(this.#ms(900, pick(this.#options.random, [1_900, 1_900, 5_000])));
    worker.resume();
    return true;
  }

  async #jump(worker: Worker): Promise<boolean> {
    const jumped = this.#jumped.get(worker) ?? 0;
    // Back only as far as it was moved forward: until then the time of the process stands still.
    const ms = jumped > 0 ? -jumped : this.#ms(1_000, 15_000);
    const answer = await worker.ask('/jump', { ms }, 1_000);
    if (answer?.isOk !== true) return false;
    this.#jumped.set(worker, jumped + ms);
    return true;
  }

  async #onServer(work: () => Promise<unknown>): Promise<boolean> {
    if (this.#isServerBusy) return false;
    this.#isServerBusy = true;
    try {
      await work();
      await pause(1_500);
      return true;
    } finally {
      this.#isServerBusy = false;
    }
  }

  /** Fills the disk of the server for a while. A server that ends because of it is started again. */
  async #fillDisk(): Promise<void> {
    const ballast = join(this.#options.smallDisk ?? '', 'ballast');
    fill(ballast);
    await pause(this.#ms(500, 2_000));
    rmSync(ballast, { force: true });
    for (let tries = 0; tries < 10; tries += 1) {
      const isUp = await this.#options.cluster.query('SELECT 1').then(
        () => true,
        () => false,
      );
      if (isUp) return;
      await pause(200);
    }
    await this.#options.server.restart();
  }
}

const MIB = 1_048_576;

function fill(path: string): void {
  const descriptor = openSync(path, 'w');
  try {
    for (let bytes = MIB; bytes >= 1_024;) {
      try {
        writeSync(descriptor, Buffer.alloc(bytes));
      } catch {
        bytes /= 4;
      }
    }
  } finally {
    closeSync(descriptor);
  }
}
