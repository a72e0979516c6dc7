// The only way to an effect: whoever performs one asks here first, and what the engine has not granted is refused. An
// effect is granted from the moment when its mediated run is allowed and running, and recorded so, until its answer is
// in. The token is the effect object itself: it cannot be made, copied or guessed, only handed on.

import type { Effect } from '../contract/effect.js';
import { CapabilityError } from '../errors.js';

const granted = new WeakSet<Effect>();

/** For the engine alone. */
export const grant = (effect: Effect): void => void granted.add(effect);
export const revoke = (effect: Effect): void => void granted.delete(effect);

/** @throws CapabilityError unless the effect is that of an allowed, running mediated run (S4-19, S4-81) */
export function requireCapability(effect: Effect): void {
  if (granted.has(effect)) return;
  throw new CapabilityError({
    code: 'NO_CAPABILITY',
    message: `nothing allows ${effect.action}: effects are performed by the engine, for an allowed and running mediated run`,
  });
}
