import { setImmediate as nextTurn } from 'node:timers/promises';

/** To be awaited between the parts of long work: when some milliseconds have gone by, others have a turn first. */
export type Pace = () => Promise<void> | undefined;

export function pace(ms: number): Pace {
  let since = performance.now();
  return () => {
    if (performance.now() - since < ms) return undefined;
    return nextTurn().then(() => {
      since = performance.now();
    });
  };
}
