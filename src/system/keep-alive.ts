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
