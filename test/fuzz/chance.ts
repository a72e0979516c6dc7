// Seeded random choices: the seed reproduces every payload of a campaign.

export interface Chance {
  /** A whole number from 0 to `end` - 1. */
  below(end: number): number;
  /** True in one of `n` cases. */
  oneIn(n: number): boolean;
  pick<T>(from: readonly [T, ...T[]] | readonly T[]): T;
}

/** mulberry32: 32 bits of state, and the same numbers on every machine. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (end: number): number => Math.floor((next() / 0x1_0000_0000) * end);
  return {
    below,
    oneIn: (n) => below(n) === 0,
    pick(from) {
      if (from.length === 0) throw new RangeError('there is nothing to pick from');
      return from[below(from.length)]!;
    },
  };
}

/** A separate seed for each part of a campaign, so that changing one part does not affect the others. */
export function seedOf(seed: number, part: number): number {
  const mixed = Math.imul((seed ^ Math.imul(part + 1, 0x9e3779b1)) >>> 0, 0x85ebca6b) >>> 0;
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
