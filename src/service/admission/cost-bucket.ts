// What may be used at once, and what is given back with time.

/** A token bucket. It may be overdrawn: what costs more than is left is charged, and what comes next waits. */
export class CostBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #balance: number;
  #at: number;

  /** @param perSecond what is given back in a second @param burst what it holds at most, and at the start */
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

  /** Milliseconds until it holds `wanted`; 0 where it does now. */
  waitFor(wanted: number, now: number): number {
    const missing = wanted - this.balance(now);
    return missing <= 0 ? 0 : Math.ceil(missing / this.#perMs);
  }
}
