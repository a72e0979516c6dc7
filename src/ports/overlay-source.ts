import type { OverlayFact } from '../contract/policy/overlay.js';

/** Where the emergency overlay (D1) comes from. */
export interface OverlaySource {
  /**
   * The current overlay; null if there is none and never was. Never throws: an overlay that cannot be trusted is a fact
   * with a `problem`, under which everything is denied. It is cheap enough to call at every tick, and returns the same
   * read-only object while nothing has changed.
   */
  current(): OverlayFact | null;
}
