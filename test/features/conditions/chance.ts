// Choices from a seed.

import { random } from '../../fixtures/random.js';

export class Chance {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = random(seed);
  }

  /** A whole number below a limit. */
  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  isLikely(probability: number): boolean {
    return this.#random() < probability;
  }

  pick<T>(values: readonly T[]): T {
    const value = values[this.below(values.length)];
    if (value === undefined) throw new Error('there is nothing to choose from');
    return value;
  }

  /** At most so many of them, in a random order, perhaps with repetitions. */
  some<T>(values: readonly T[], most: number): readonly T[] {
    const length = values.length === 0 ? 0 : this.below(most + 1);
    return Array.from({ length }, () => this.pick(values));
  }
}
