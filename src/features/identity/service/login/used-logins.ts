// The logins whose codes were exchanged, or are being exchanged. A code that the issuer refuses leaves nothing here:
// any client can begin a login and send one, and it signs no person in.

import type { Clock } from '../../../../engine/ports/clock.js';

/**
 * Limit of the logins that the issuer has accepted and that could not have expired yet. Past it the next login is
 * refused until one of these would have expired: a forgotten one could be used again.
 */
export const USED_LOGINS_MAX = 65_536;

export class UsedLogins {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #max: number;
  readonly #inFlight = new Set<string>();
  /** When each would have expired, by its state, in the order of their exchanges. */
  readonly #accepted = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>, max = USED_LOGINS_MAX) {
    this.#clock = clock;
    this.#max = max;
  }

  /** Begins the exchange of a login. It must be settled, whatever comes of it. */
  begin(state: string): 'begun' | 'used' | 'full' {
    if (this.#inFlight.has(state) || this.#accepted.has(state)) return 'used';
    if (this.#accepted.size + this.#inFlight.size >= this.#max) this.#removeExpired();
    if (this.#accepted.size + this.#inFlight.size >= this.#max) return 'full';
    this.#inFlight.add(state);
    return 'begun';
  }

  /** @param isAccepted whether the issuer has accepted the code */
  settle(state: string, expires_at: number, isAccepted: boolean): void {
    this.#inFlight.delete(state);
    if (isAccepted) this.#accepted.set(state, expires_at);
  }

  #removeExpired(): void {
    const now = this.#clock.now();
    for (const [state, end] of this.#accepted) if (end <= now) this.#accepted.delete(state);
  }
}
