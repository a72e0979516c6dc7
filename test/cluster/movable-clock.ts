import { systemClock } from '../../src/system/system-clock.js';
import type { Clock } from '../../src/engine/ports/clock.js';

/** Longest time until a timer notices that the clock has moved, in ms. */
const LOOK_MS = 100;

/** The system clock of a machine whose time of day is set forward and back. Its time never decreases (`Clock`). */
export class MovableClock implements Clock {
  readonly #system = systemClock();
  #offset = 0;
  #latest = 0;

  now(): number {
    this.#latest = Math.max(this.#latest, this.#system.now() + this.#offset);
    return this.#latest;
  }

  monotonic(): number {
    return this.#system.monotonic?.() ?? 0;
  }

  wake(at: number, onWake: () => void): () => void {
    let timer: NodeJS.Timeout;
    const wait = (): void => {
      const rest = at - this.now();
      if (rest <= 0) onWake();
      else timer = setTimeout(wait, Math.min(rest, LOOK_MS)).unref();
    };
    timer = setTimeout(wait, Math.max(0, Math.min(at - this.now(), LOOK_MS))).unref();
    return () => clearTimeout(timer);
  }

  /** Sets the time of day forward, or back. @param ms negative: back */
  jump(ms: number): void {
    this.#offset += ms;
  }
}
