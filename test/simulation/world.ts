// The whole system in one process: a disk that survives crashes, a clock, files, policies, and the one Turnpike that is
// open on them. Everything happens only when the simulation says so, and one seed determines all randomness.

import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { ephemeralKey } from '../../src/stores/keys/session-key.js';
import type { Recovery } from '../../src/engine/tree-engine.js';
import { CodedError } from '../../src/core/errors.js';
import { DEFAULT_INTERPRETATION } from '../../src/kernel/interpreter/default-interpreter.js';
import type { Interpreter } from '../../src/kernel/interpreter/interpreter.js';
import { EMPTY_HEAD } from '../../src/core/ledger/proof/merkle.js';
import type { Clock } from '../../src/engine/ports/clock.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { LedgerStore, LogHead } from '../../src/engine/ports/ledger/ledger-store.js';
import type { Log } from '../../src/engine/ports/log.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { openTurnpikeIn, type Turnpike, type TurnpikeOptions } from '../../src/host/turnpike.js';
import { SimClock } from './clock.js';
import { Faults } from './faults.js';
import { History, type Invariant } from './history.js';
import { ModelFiles } from './model-files.js';
import { SimPace, UNDIVIDED, type Yields } from './pace.js';
import { SimPolicies } from './policies.js';
import { Agenda, Process } from './process.js';
import { Random } from './random.js';
import { simSandbox } from './sandbox.js';
import { simHeadStore, simStore } from './store.js';
import { LedgerWatch } from './watch.js';

/** A planted bug, in the ports only, and the invariant that must find it. */
export interface Plant {
  readonly name: string;
  readonly expects: Invariant;
  /** Needs a world with small quotas. */
  readonly quota?: true;
  /** Separates the auditor's view from what the system reads: for bugs of the machines, expressed in entries. */
  readonly apart: boolean;
  /** False for a bug of the machines: a fold by the same machines would repeat it. */
  readonly folding: boolean;
  /** The store with the faults of one process. `seen` is the auditor's disk. */
  store?(inner: LedgerStore, at: { readonly world: World; readonly process: Process }): LedgerStore;
  /** Wraps the store with its faults: a layer between them and the engine. */
  over?(inner: LedgerStore): LedgerStore;
  hands?(inner: Sandbox): Sandbox;
  clock?(inner: Clock): Clock;
}

/** Maximum number of pending answers in a world: more would be a cycle. */
const REST_MAX = 100_000;
/** With a small number, trees constantly leave memory and are folded again, which takes most of the time. */
const LIVE_TREES = [1, 3, 8, 64, 1_024, 1_024] as const;
/** After every decision, after some, hardly ever: a snapshot changes nothing (D16). */
const SNAPSHOT_ENTRIES = [1, 40, 2_048] as const;

/** A fixed key, so that no randomness is used. */
const SECRETS = ephemeralKey(Buffer.alloc(32, 7));
/** As many turns as the real one takes, and no timer. */
const keepAlive = async <T>(work: Promise<T>): Promise<T> => {
  const value = await work;
  return value;
};

interface WorldOptions {
  readonly seed: string;
  readonly plant: Plant | null;
  readonly yields: Yields;
  readonly interpreter?: Interpreter | undefined;
  /** The quota of all cases; then only agents write. */
  readonly quota: Quota | null;
}

/** A quota that a few writes use up. */
export const QUOTA: Quota = { bytes: 60, files: 3 };

export interface Quota {
  readonly bytes: number;
  readonly files: number;
}

export class World {
  readonly seed: string;
  readonly random: Random;
  readonly history = new History();
  readonly faults: Faults;
  readonly agenda = new Agenda();
  readonly clock: SimClock;
  readonly pace: SimPace;
  readonly files = new ModelFiles();
  readonly policies: SimPolicies;
  readonly disk = new LedgerModel();
  readonly seen: LedgerModel;
  readonly ledger: LedgerWatch;
  readonly plant: Plant | null;
  readonly quota: Quota | null;
  readonly #liveTreesMax: number;
  readonly #snapshotEntries: number;
  readonly #interpreter: Interpreter;
  /** As durable as the disk; it may be behind it. */
  externalHeadStore: Pick<LogHead, 'size' | 'root'> = { size: EMPTY_HEAD.size, root: EMPTY_HEAD.root };
  process: Process | null = null;
  #processes = 0;
  #ids = 0;
  crashes = 0;
  closes = 0;
  restarts = 0;

  constructor({ seed, plant, yields, quota, interpreter = DEFAULT_INTERPRETATION.interpreter }: WorldOptions) {
    this.seed = seed;
    this.quota = quota;
    this.#interpreter = interpreter;
    this.plant = plant;
    this.random = new Random(`${seed}/world`);
    this.faults = new Faults(new Random(`${seed}/faults`));
    const { agenda, faults } = this;
    this.clock = new SimClock(new Random(`${seed}/clock`), this.faults);
    this.pace = new SimPace({ agenda, faults, random: new Random(`${seed}/pace`), yields });
    this.policies = new SimPolicies(this);
    this.seen = plant?.apart === true ? new LedgerModel() : this.disk;
    this.ledger = new LedgerWatch({ disk: this.seen, history: this.history, folding: plant?.folding !== false });
    this.#liveTreesMax = this.random.pick(LIVE_TREES);
    this.#snapshotEntries = this.random.pick(SNAPSHOT_ENTRIES);
  }

  /** Opens the ledger again. The result depends on the answers of its ports. */
  open(): void {
    this.#processes += 1;
    const process = new Process(this.#processes);
    this.process = process;
    // The operating system releases the resources of a dead process.
    this.disk.loseLock();
    const honest = modelStore(this.disk);
    const inner = this.plant?.store?.(honest, { world: this, process }) ?? honest;
    const faulty = simStore(this, process, inner);
    const store = this.plant?.over?.(faulty) ?? faulty;
    const defer = (task: () => void): void => {
      this.agenda.add(process, 'tick', task);
    };
    const ground = {
      home: null,
      store,
      externalHeadStore: simHeadStore(this, process),
      defer,
      snapshotEntries: this.#snapshotEntries,
      pace: this.pace.of(process),
      // A process that dies while it closes leaves a promise that never settles.
      keepAlive,
      secrets: SECRETS,
    };
    openTurnpikeIn(ground, this.#options(store, process)).then(
      (turnpike) => {
        this.#opened(process, turnpike);
      },
      (error: unknown) => {
        if (!process.alive) return;
        process.phase = 'closed';
        this.history.note(`process ${process.id} could not open: ${String(error)}`);
        const excused = process.broken || process.readFailures > 0;
        if (!excused) this.history.report('reopen.settled', `the ledger does not open again: ${String(error)}`);
      },
    );
  }

  #options(store: LedgerStore, process: Process): TurnpikeOptions {
    const clock = this.clock.of(process);
    return {
      store,
      sandbox: this.plant?.hands?.(simSandbox(this, process)) ?? simSandbox(this, process),
      policies: this.policies.of(process),
      clock: this.plant?.clock?.(clock) ?? clock,
      ids: {
        draw: (prefix) => {
          this.faults.draw('ids.draw', {});
          this.#ids += 1;
          return `${prefix}${String(this.#ids).padStart(21, '0')}`;
        },
      },
      log: this.#log(process),
      liveTreesMax: this.#liveTreesMax,
      interpreter: this.#interpreter,
    };
  }

  #opened(process: Process, turnpike: Turnpike): void {
    if (!process.alive) return;
    process.turnpike = turnpike;
    process.phase = 'open';
    this.#recovered(process, 'is open', turnpike.recovery);
  }

  #recovered(process: Process, how: string, { trees, settled, interrupted, damaged }: Recovery): void {
    this.history.note(`process ${process.id} ${how}: ${trees} trees, ${settled} settled, ${interrupted} interrupted`);
    this.ledger.opened();
    this.ledger.checkAbandoned();
    if (damaged > 0) this.history.report('reopen.settled', `${damaged} trees are damaged`);
  }

  /** Discards everything that is not durable. Its code may run until its next call of a port. */
  crash(process: Process, where: string): void {
    if (!process.alive) return;
    process.alive = false;
    process.phase = 'closed';
    this.crashes += 1;
    this.agenda.forget(process);
    this.clock.forget(process);
    this.history.note(`process ${process.id} crashes in ${where}`);
  }

  close(process: Process): void {
    if (process.turnpike === null || process.phase !== 'open') return;
    process.phase = 'closing';
    this.closes += 1;
    process.turnpike.close().then(
      () => {
        process.phase = 'closed';
      },
      (error: unknown) => {
        process.phase = 'closed';
        const excused = process.broken || process.readFailures > 0;
        if (!excused) this.history.report('caller.answer', `close: ${String(error)}`);
      },
    );
  }

  /** The same process continues after a failure. `done` is called then: earlier handles are invalid. */
  restart(process: Process, done: () => void): void {
    process.turnpike?.restart().then(
      (recovery) => {
        if (!process.alive || !process.broken) return;
        process.broken = process.turnpike?.failed === true;
        process.restarts += 1;
        this.restarts += 1;
        done();
        this.#recovered(process, 'goes on', recovery);
      },
      (error: unknown) => {
        if (!process.alive) return;
        const code = error instanceof CodedError ? (error as CodedError).code : String(error);
        this.history.note(`process ${process.id} cannot go on: ${code}`);
        // It may be retried, another process was the writer, or it is being closed.
        const right = ['LEDGER_UNAVAILABLE', 'LEDGER_CONFLICT', 'CLOSED'].includes(code);
        if (!right) this.history.report('reopen.settled', `process ${process.id} does not go on: ${String(error)}`);
      },
    );
  }

  /** Waits until no promise can progress: nothing here waits for a timer or for the operating system. */
  async settle(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve));
    while (this.agenda.endYield());
  }

  /** Runs everything that is pending, without new faults. */
  async rest(): Promise<void> {
    this.faults.quiet = true;
    for (let left = REST_MAX; this.agenda.size > 0 && this.history.isClean(); left -= 1) {
      if (left === 0) this.history.report('caller.answer', 'the system never comes to rest');
      this.history.note(this.agenda.next(this.random));
      await this.settle();
      this.ledger.sync();
    }
    this.faults.quiet = false;
  }

  /** S4-86: an auditor with only the disk. */
  async audit(): Promise<void> {
    const store = modelStore(this.seen);
    const reader = new LedgerReader(store, memoryHeadStore(this.seen.head), { pace: UNDIVIDED });
    const verdict = await reader.verify();
    if (!verdict.ok) this.history.report('ledger.verifies', JSON.stringify(verdict.problems[0]));
    if (this.plant?.folding === false) return;
    const report = await reader.replay();
    if (!report.ok) this.history.report('ledger.verifies', JSON.stringify(report.difference));
    if (report.responses !== this.ledger.steps.count) {
      this.history.report('step.complete', `${this.ledger.steps.count} traces, ${report.responses} responses`);
    }
  }

  #log(process: Process): Log {
    const line = (level: string) => (message: string) => {
      this.faults.draw(`log.${level}`, {});
      if (!process.alive) return;
      this.history.note(`process ${process.id} ${level}: ${message}`);
      if (message.includes('cannot be taken up')) this.history.report('reopen.settled', message);
    };
    return { info: line('info'), warn: line('warn'), error: line('error') };
  }
}
