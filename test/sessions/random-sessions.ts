// Random sessions, each known by its seed.

import { bringToEnd, RandomSession } from '../fixtures/random-session.js';
import { SessionWatch } from './watch.js';

const INPUTS = 60;

/** Lets anything happen to a session. @returns what it came upon; throws with the seed where something does not hold */
export function lived(seed: number): ReadonlySet<string> {
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

/** Lets things happen for a while; then an honest agent and a maintainer bring it to its end, or this throws. */
export function broughtToEnd(seed: number): void {
  const { driver } = new RandomSession(seed).live({ inputs: 10 + (seed % INPUTS) });
  const ending = bringToEnd(driver);
  if (ending !== 'ended' && ending !== 'completed') throw new Error(`seed ${seed} stands still: ${ending}`);
}
