import type { OverlayFact } from '../contract/policy/overlay.js';

/** Where the emergency overlay (D1) comes from. */
export interface OverlaySource {
  /**
   * The overlay as it is now; null where there is none and never was. Never throws: what cannot be trusted is a fact
   * with a `problem`, under which everything is denied. Cheap enough to be asked at every tick; the same object as
   * before where nothing has changed, not to be written to.
   */
  current(): OverlayFact | null;
}
