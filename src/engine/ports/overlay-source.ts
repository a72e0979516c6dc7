import type { OverlayFact } from '../../core/contract/policy/overlay.js';

/** Provides the emergency overlay (D1). */
export interface OverlaySource {
  /**
   * The current overlay; null if there has never been one. Never throws: an untrusted overlay is a fact with a
   * `problem`, under which everything is denied. The call is cheap enough for every tick, and returns the same
   * read-only object while nothing has changed.
   */
  current(): OverlayFact | null;
}
