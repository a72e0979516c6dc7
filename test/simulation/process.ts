// The processes that run one after another on one disk, and their pending work.

import type { Turnpike } from '../../src/host/turnpike.js';
import type { Random } from './random.js';

/** One life of the system, from an opening to a crash or a close. */
export class Process {
  readonly id: number;
  /** False after a crash: its code may run until the next call of a port, but changes nothing any more. */
  alive = true;
  phase: 'opening' | 'open' | 'closing' | 'closed' = 'opening';
  turnpike: Turnpike | null = null;
  /** A commit or head write failed: until a restart the process writes nothing, and reports only AUDIT_FAILURE. */
  broken = false;
  commitFailed = false;
  /** How often it restarted after that. */
  restarts = 0;
  /** Number of failed reads of the store: callers that waited meanwhile may have received that error. */
  readFailures = 0;
  /** A promise answered a local read, which the engine must refuse. */
  promisedReads = 0;

  constructor(id: number) {
    this.id = id;
  }
}

interface Item {
  readonly process: Process;
  readonly what: string;
  readonly run: () => void;
}

/** The pending work of a dead process. */
export const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/**
 * Deferred ticks and delayed answers of ports: the simulation picks the next one. Yields of paced work end in their
 * order, before the next of those.
 */
export class Agenda {
  #items: Item[] = [];
  #yields: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(process: Process, what: string, run: () => void): void {
    if (process.alive) this.#items.push({ process, what, run });
  }

  /** @returns a promise that resolves when the simulation reaches it; never, if the process dies before */
  hold(process: Process, what: string): Promise<void> {
    return new Promise((resolve) => {
      this.add(process, what, resolve);
    });
  }

  /** @returns a promise that resolves when all other runnable work has run; never, if the process dies before */
  yield(process: Process): Promise<void> {
    return new Promise((resolve) => {
      if (process.alive) this.#yields.push({ process, what: 'yield', run: resolve });
    });
  }

  /** Ends the oldest yield. @returns whether there was one */
  endYield(): boolean {
    const first = this.#yields.shift();
    first?.run();
    return first !== undefined;
  }

  /** Runs one of them. @returns its name */
  next(random: Random): string {
    const [item] = this.#items.splice(random.below(this.#items.length), 1);
    if (item === undefined) return 'nothing';
    item.run();
    return `${item.what} of ${item.process.id}`;
  }

  forget(process: Process): void {
    this.#items = this.#items.filter((item) => item.process !== process);
    this.#yields = this.#yields.filter((item) => item.process !== process);
  }
}
