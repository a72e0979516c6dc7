// Guards effects: code that executes an effect calls `requireCapability` first, which rejects every effect that the
// engine has not granted. The engine grants an effect once its mediated run is recorded as allowed and running, until
// its outcome is recorded. The effect object itself is the token. It cannot be forged, copied or guessed, only passed
// on.

import type { Effect } from '../../../core/contract/run/effect.js';
import { CapabilityError } from '../../../core/errors.js';

const grantedEffects = new WeakSet<Effect>();

/** Only the engine may call this. */
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
