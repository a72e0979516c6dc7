// The pace of the event loop: when work yields to it, and for how long.
//
// Node accepts one connection in each turn of the event loop. A turn in which the ledger commits takes milliseconds, so
// after a burst of 200 connections the next client would wait for 200 commits. While connections arrive, work that may
// wait lets turns pass, for two milliseconds at most: a turn without work takes a tenth of one.

import type { Pace } from '../../ports/pace.js';

/** Milliseconds for which connections that arrive may delay a task. */
const ARRIVALS_MS_MAX = 2;

let arrivals = 0;
let isArrivalTurn = false;

/** Notes that the event loop has accepted a connection in this turn. */
export function noteArrival(): void {
  arrivals += 1;
  if (isArrivalTurn) return;
  isArrivalTurn = true;
  setImmediate(() => (isArrivalTurn = false));
}

/** Runs a task in a turn of the event loop after the present one; while connections arrive, in a later one. */
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

/** Work yields to the event loop by the machine's clock. */
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
