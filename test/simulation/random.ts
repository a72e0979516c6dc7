// All randomness of the simulation. One seed gives every stream. Each part of the world has its own stream, so that an
// extra draw in one part does not affect the others.

import { createHash } from 'node:crypto';

/** A random stream: sfc32, seeded by the name of the stream. */
export class Random {
  readonly #name: string;
  #a: number;
  #b: number;
  #c: number;
  #count: number;

  constructor(name: string) {
    const digest = createHash('sha256').update(name).digest();
    this.#name = name;
    this.#a = digest.readInt32LE(0);
    this.#b = digest.readInt32LE(4);
    this.#c = digest.readInt32LE(8);
    this.#count = digest.readInt32LE(12);
  }

  split(stream: string): Random {
    return new Random(`${this.#name}/${stream}`);
  }

  /** 32 bits, unsigned. */
  next(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** @returns a whole number from 0 to `bound` - 1 */
  below(bound: number): number {
    return Math.floor((this.next() / 0x1_0000_0000) * bound);
  }

  chance(probability: number): boolean {
    return this.next() / 0x1_0000_0000 < probability;
  }

  pick<T>(list: readonly [T, ...T[]] | readonly T[]): T {
    const picked = list[this.below(list.length)];
    if (picked === undefined) throw new RangeError('nothing to pick from');
    return picked;
  }

  /** @returns a key, drawn by its weight; a weight of 0 is never drawn */
  weighted<Key extends string>(weights: Readonly<Partial<Record<Key, number>>>): Key {
    const entries = Object.entries(weights) as [Key, number][];
    let at = (this.next() / 0x1_0000_0000) * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      at -= weight;
      if (at < 0) return key;
    }
    const last = entries.findLast(([, weight]) => weight > 0);
    if (last === undefined) throw new RangeError('nothing to draw from');
    return last[0];
  }

  uuid(): string {
    const hex = [0, 1, 2, 3].map(() => this.next().toString(16).padStart(8, '0')).join('');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }
}
