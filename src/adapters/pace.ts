import { setImmediate as turn } from 'node:timers/promises';
import type { Pace } from '../ports/pace.js';

/** The pace of the event loop: work yields to it by the machine's clock. */
export function systemPace(): Pace {
  return {
    begin: (ms) => {
      let since = performance.now();
      return () => {
        if (performance.now() - since < ms) return undefined;
        return turn().then(() => {
          since = performance.now();
        });
      };
    },
  };
}

/** Runs a task after the present turn of the event loop. */
export const nextTurn = (task: () => void): void => void setImmediate(task);
