/** Longer than any process lives, and the longest that a timer can be. */
const LONG_MS = 2_147_483_647;

let waiting = 0;
let handle: NodeJS.Timeout | undefined;

/**
 * Keeps the process from ending by itself until `work` is done. Timers of runs do not, since a run may wait for days;
 * but who waits for a response, or for a Turnpike to be closed, is not to be left with neither.
 */
export async function keepingAlive<T>(work: Promise<T>): Promise<T> {
  if (waiting === 0) handle = setInterval(() => undefined, LONG_MS);
  waiting += 1;
  try {
    return await work;
  } finally {
    waiting -= 1;
    if (waiting === 0) clearInterval(handle);
  }
}
