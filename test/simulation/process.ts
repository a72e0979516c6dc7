// The processes that come and go over one disk, and what still waits to happen in them.

import type { Turnpike } from '../../src/runtime/turnpike.js';
import type { Random } from './random.js';

/** One life of the system, from an opening to a crash or a close. */
export class Process {
  readonly id: number;
  /** False after a crash: its code may run on to the next call of a port, but it touches nothing any more. */
  alive = true;
  phase: 'opening' | 'open' | 'closing' | 'closed' = 'opening';
  turnpike: Turnpike | null = null;
  /** A commit or the anchor failed: until a restart the process writes nothing, and reports AUDIT_FAILURE only. */
  broken = false;
  commitFailed = false;
  /** How often it went on after that. */
  restarts = 0;
  /** Reads of the store that were made to fail: whoever waited meanwhile may have been told so. */
  readFailures = 0;
  /** A local read was answered by a promise, which the engine must not take. */
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

/** What a dead process waits for. */
export const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/**
 * Deferred ticks and answers that ports hold back: the simulation picks which of them comes next. Yields of paced work
 * are ended in their order, before the next of those.
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

  /** @returns a promise that is resolved when the simulation comes to it; never, if the process dies before */
  hold(process: Process, what: string): Promise<void> {
    return new Promise((resolve) => {
      this.add(process, what, resolve);
    });
  }

  /** @returns a promise that is resolved when all else that can run has; never, if the process dies before */
  yield(process: Process): Promise<void> {
    return new Promise((resolve) => {
      if (process.alive) this.#yields.push({ process, what: 'yield', run: resolve });
    });
  }

  /** Ends the yield that began first. @returns whether there was one */
  endYield(): boolean {
    const first = this.#yields.shift();
    first?.run();
    return first !== undefined;
  }

  /** Lets one of them happen. @returns what it was */
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
