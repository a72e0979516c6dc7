import type { Clock } from '../../src/engine/ports/clock.js';
import type { Faults } from './faults.js';
import type { Process } from './process.js';
import type { Random } from './random.js';

interface Waiting {
  readonly process: Process;
  readonly at: number;
  readonly ring: () => void;
}

const START = Date.parse('2026-01-01T00:00:00.000Z');
const LEAP_MS = 5_000;

/** Simulated time: it advances occasionally when it is read, and when the simulation says so; never backwards. */
export class SimClock {
  #now = START;
  #waiting: Waiting[] = [];
  readonly #random: Random;
  readonly #faults: Faults;

  constructor(random: Random, faults: Faults) {
    this.#random = random;
    this.#faults = faults;
  }

  /** The clock as one process sees it. */
  of(process: Process): Clock {
    return {
      now: () => {
        const fault = this.#faults.draw('clock.now', { leaps: 0.001 });
        if (process.alive) this.#now += fault === 'leaps' ? this.#random.below(LEAP_MS) : this.#random.below(2);
        return this.#now;
      },
      wake: (at, ring) => {
        this.#faults.draw('clock.wake', {});
        const waiting = { process, at, ring };
        if (process.alive) this.#waiting.push(waiting);
        return () => {
          this.#waiting = this.#waiting.filter((other) => other !== waiting);
        };
      },
    };
  }

  /** Advances time; the timers that are due fire in any order. @returns how many fired */
  advance(ms: number): number {
    this.#now += ms;
    const due = this.#waiting.filter(({ at }) => at <= this.#now);
    this.#waiting = this.#waiting.filter(({ at }) => at > this.#now);
    for (let left = due.length; left > 0; left -= 1) due.splice(this.#random.below(left), 1)[0]?.ring();
    return due.length;
  }

  forget(process: Process): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting.process !== process);
  }
}
