// The only way to an effect: whoever performs one asks here first, and what the engine has not granted is refused. An
// effect is granted from the moment when its mediated run is allowed and running, and recorded so, until its answer is
// in. The token is the effect object itself: it cannot be made, copied or guessed, only handed on.

import type { Effect } from '../../contract/run/effect.js';
import { CapabilityError } from '../../errors.js';

const grantedEffects = new WeakSet<Effect>();

/** For the engine alone. */
export const grantCapability = (effect: Effect): void => void grantedEffects.add(effect);
export const revokeCapability = (effect: Effect): void => void grantedEffects.delete(effect);

/** @throws CapabilityError unless the effect is that of an allowed, running mediated run (S4-19, S4-81) */
export function requireCapability(effect: Effect): void {
  if (grantedEffects.has(effect)) return;
  throw new CapabilityError({
    code: 'NO_CAPABILITY',
    message: `nothing allows ${effect.action}: effects are performed by the engine, for an allowed and running mediated run`,
  });
}
