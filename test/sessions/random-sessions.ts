// Random sessions, each reproducible from its seed.

import { bringToEnd, RandomSession } from '../fixtures/random-session.js';
import { SessionWatch } from './watch.js';

const INPUTS = 60;

/**
 * Sends random inputs to a session. @returns the situations that occurred; throws with the seed if an invariant fails
 */
export function runRandomSession(seed: number): ReadonlySet<string> {
  const seen = new Set<string>();
  const watch = new SessionWatch();
  const random = new RandomSession(seed);
  random.live({ inputs: INPUTS, maimed: true }, (what) => {
    const { answer = null } = random.exchanges.at(-1) ?? {};
    const wrong = watch.check(random.driver, answer, what);
    if (wrong !== null) throw new Error(`seed ${seed}, after ${what}: ${wrong}`);
    seen.add(answer?.error?.code ?? random.driver.session.pause_reason ?? random.driver.session.status);
  });
  return seen;
}

/** Sends random inputs for a while. Then an honest agent and a maintainer complete the session, or this throws. */
export function completeRandomSession(seed: number): void {
  const { driver } = new RandomSession(seed).live({ inputs: 10 + (seed % INPUTS) });
  const ending = bringToEnd(driver);
  if (ending !== 'ended' && ending !== 'completed') throw new Error(`seed ${seed} stands still: ${ending}`);
}
