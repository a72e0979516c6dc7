// A budget that is refunded over time.

/** A token bucket. It may be overdrawn: a cost above the balance is charged, and the next request waits. */
export class CostBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #balance: number;
  #at: number;

  /** @param perSecond the refund per second @param burst the maximum and initial balance */
  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1_000;
    this.#burst = burst;
    this.#balance = burst;
    this.#at = now;
  }

  balance(now: number): number {
    const passed = Math.max(0, now - this.#at);
    this.#at += passed;
    this.#balance = Math.min(this.#burst, this.#balance + passed * this.#perMs);
    return this.#balance;
  }

  spend(cost: number, now: number): void {
    this.#balance = this.balance(now) - cost;
  }

  /** Milliseconds until the balance is `wanted`; 0 if it is now. */
  waitFor(wanted: number, now: number): number {
    const missing = wanted - this.balance(now);
    return missing <= 0 ? 0 : Math.ceil(missing / this.#perMs);
  }
}
