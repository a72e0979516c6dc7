// Decides when work yields to the event loop, and for how long.
//
// Node accepts one connection in each turn of the event loop. A turn with a ledger commit takes milliseconds, so after
// a burst of 200 connections the next client would wait for 200 commits. So while connections arrive, deferrable work
// lets turns pass, for at most two milliseconds; a turn without work takes about a tenth of a millisecond.
//
// `keepProcessAlive` does the opposite: while a caller waits, the process does not end.

import type { Pace } from '../engine/ports/pace.js';

/** How long arriving connections may delay a task, in ms. */
const ARRIVALS_MS_MAX = 2;

/** Defers work to turns of the event loop in which no connection arrives. */
export class TurnScheduler {
  readonly #now: () => number;
  #arrivals = 0;
  #isArrivalTurn = false;

  /** @param now a monotonic clock, in ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  noteArrival(): void {
    this.#arrivals += 1;
    if (this.#isArrivalTurn) return;
    this.#isArrivalTurn = true;
    setImmediate(() => (this.#isArrivalTurn = false));
  }

  scheduleNextTurn(task: () => void): void {
    let known = this.#isArrivalTurn ? -1 : this.#arrivals;
    let since: number | null = null;
    const turn = (): void => {
      if (known === this.#arrivals) {
        task();
        return;
      }
      const now = this.#now();
      since ??= now;
      if (now - since >= ARRIVALS_MS_MAX) {
        task();
        return;
      }
      known = this.#arrivals;
      setImmediate(turn);
    };
    setImmediate(turn);
  }

  pace(): Pace {
    return {
      begin: (ms) => {
        let since = this.#now();
        return () => {
          if (this.#now() - since < ms) return undefined;
          return new Promise((resolve) => {
            this.scheduleNextTurn(() => {
              since = this.#now();
              resolve();
            });
          });
        };
      },
    };
  }
}

const TURNS = new TurnScheduler(() => performance.now());

/** Notes that the event loop accepted a connection in this turn. */
export const noteArrival = (): void => TURNS.noteArrival();

/** Runs a task in the next turn of the event loop, or in a later one while connections arrive. */
export const scheduleNextTurn = (task: () => void): void => TURNS.scheduleNextTurn(task);

/** Makes work yield to the event loop, timed by the monotonic clock. */
export const systemPace = (): Pace => TURNS.pace();

/** The longest interval of a timer. */
const LONG_MS = 2_147_483_647;

let pendingCount = 0;
let handle: NodeJS.Timeout | undefined;

/**
 * Keeps the process running until `work` is done. The timers of runs do not, since a run may wait for days; but a
 * caller that waits for a response, or for a Turnpike to close, must get it.
 */
export async function keepProcessAlive<T>(work: Promise<T>): Promise<T> {
  if (pendingCount === 0) handle = setInterval(() => undefined, LONG_MS);
  pendingCount += 1;
  try {
    return await work;
  } finally {
    pendingCount -= 1;
    if (pendingCount === 0) clearInterval(handle);
  }
}
