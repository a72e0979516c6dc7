// Decides when work yields to the event loop, and for how long.
//
// Node accepts one connection in each turn of the event loop. A turn with a ledger commit takes milliseconds, so after
// a burst of 200 connections the next client would wait for 200 commits. So while connections arrive, deferrable work
// lets turns pass, for at most two milliseconds; a turn without work takes about a tenth of a millisecond.

import type { Pace } from '../../ports/pace.js';

/** How long arriving connections may delay a task, in ms. */
const ARRIVALS_MS_MAX = 2;

let arrivals = 0;
let isArrivalTurn = false;

/** Notes that the event loop accepted a connection in this turn. */
export function noteArrival(): void {
  arrivals += 1;
  if (isArrivalTurn) return;
  isArrivalTurn = true;
  setImmediate(() => (isArrivalTurn = false));
}

/** Runs a task in the next turn of the event loop, or in a later one while connections arrive. */
export function scheduleNextTurn(task: () => void): void {
  let known = isArrivalTurn ? -1 : arrivals;
  let since: number | null = null;
  const turn = (): void => {
    if (known === arrivals) {
      task();
      return;
    }
    const now = performance.now();
    since ??= now;
    if (now - since >= ARRIVALS_MS_MAX) {
      task();
      return;
    }
    known = arrivals;
    setImmediate(turn);
  };
  setImmediate(turn);
}

/** Makes work yield to the event loop, timed by the monotonic clock. */
export function systemPace(): Pace {
  return {
    begin: (ms) => {
      let since = performance.now();
      return () => {
        if (performance.now() - since < ms) return undefined;
        return new Promise((resolve) => {
          scheduleNextTurn(() => {
            since = performance.now();
            resolve();
          });
        });
      };
    },
  };
}
