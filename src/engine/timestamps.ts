import type { Clock } from './ports/clock.js';

/** Timestamps of inputs. Caches the text, since every input within a millisecond has the same one. */
export class Timestamps {
  readonly #clock: Clock;
  #now = { at: Number.NaN, text: '' };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): string {
    const now = this.#clock.now();
    if (now !== this.#now.at) this.#now = { at: now, text: new Date(now).toISOString() };
    return this.#now.text;
  }
}
