/** Longer than any process lives, and the longest that a timer can be. */
const LONG_MS = 2_147_483_647;

let pendingCount = 0;
let handle: NodeJS.Timeout | undefined;

/**
 * Keeps the process from ending by itself until `work` is done. Timers of runs do not, since a run may wait for days;
 * but who waits for a response, or for a Turnpike to be closed, is not to be left with neither.
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
