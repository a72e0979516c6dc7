import { random } from '../../fixtures/random.js';

/** Random choices that a seed determines. */
export class Draw {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = random(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }
  chance(share: number): boolean {
    return this.#next() < share;
  }
  /** An item of a list that is not empty. */
  of<T>(list: readonly T[]): T {
    const drawn = list[this.below(list.length)];
    if (drawn === undefined) throw new RangeError('an empty list');
    return drawn;
  }
}
