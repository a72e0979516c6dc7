// The share of the time for bulk work: reads, tasks, and the steps of tokens with many outstanding. Bulk work gets all
// of the time while no modest token works, and a fixed share while one does.

import type { AdmissionLimits } from './admission-limits.js';

/** The last time at which a request of a modest token ended. */
interface ModestCompletion {
  readonly token: string;
  readonly at: number;
}

type BulkLimits = Pick<AdmissionLimits, 'bulkShare' | 'modestAfterMs' | 'sharedAfterMs' | 'sliceMs'>;

export class BulkTimeShare {
  readonly #limits: BulkLimits;
  /** Requests of modest tokens that run, by token. */
  readonly #running = new Map<string, number>();
  #lastCompletion: ModestCompletion | null = null;
  /** The last completion of any other token. */
  #lastOtherCompletion: ModestCompletion | null = null;
  #credit = 0;
  #at = 0;

  constructor(limits: BulkLimits) {
    this.#limits = limits;
  }

  /** Records the start of a request of a modest token. */
  begin(token: string): void {
    this.#running.set(token, (this.#running.get(token) ?? 0) + 1);
  }

  /** Records its end. */
  end(token: string, now: number): void {
    const remaining = (this.#running.get(token) ?? 1) - 1;
    if (remaining === 0) this.#running.delete(token);
    else this.#running.set(token, remaining);
    if (this.#lastCompletion !== null && this.#lastCompletion.token !== token)
      this.#lastOtherCompletion = this.#lastCompletion;
    this.#lastCompletion = { token, at: now };
  }

  /** Whether bulk work of this token must leave time to other tokens. */
  isContended(token: string, now: number): boolean {
    return this.#hasWorked(token, this.#limits.modestAfterMs, now);
  }

  /** Whether another modest token has worked recently, and so may start its next step at any time. */
  isShared(token: string, now: number): boolean {
    return this.#hasWorked(token, this.#limits.sharedAfterMs, now);
  }

  isOpen(token: string, now: number): boolean {
    return !this.isContended(token, now) || this.#creditAt(now) > 0;
  }

  /** Charges bulk work if it takes time from other tokens. */
  spend(token: string, { cost, now }: { readonly cost: number; readonly now: number }): void {
    if (this.isContended(token, now)) this.#credit = this.#creditAt(now) - cost;
  }

  /** The latest time at which bulk work may run again, unless more is charged. */
  nextOpening(now: number): number {
    const missing = Math.max(0, -this.#creditAt(now));
    return now + Math.max(1, Math.ceil(missing / this.#limits.bulkShare));
  }

  #hasWorked(token: string, within: number, now: number): boolean {
    if (this.#running.size > (this.#running.has(token) ? 1 : 0)) return true;
    const other = this.#lastCompletion?.token === token ? this.#lastOtherCompletion : this.#lastCompletion;
    return other !== null && now - other.at <= within;
  }

  #creditAt(now: number): number {
    const passed = Math.max(0, now - this.#at);
    this.#at = Math.max(this.#at, now);
    const { bulkShare, sliceMs } = this.#limits;
    this.#credit = Math.min(sliceMs, this.#credit + passed * bulkShare);
    return this.#credit;
  }
}
