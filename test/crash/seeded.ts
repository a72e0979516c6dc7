// Seeded random choices, so that a failing case can be reproduced.

export { random as seeded } from '../fixtures/random.js';

/** A whole number from 0, below `end`. */
export const below = (random: () => number, end: number): number => Math.floor(random() * end);

export function pick<T>(random: () => number, from: readonly T[]): T {
  const picked = from[below(random, from.length)];
  if (picked === undefined) throw new Error('nothing to pick from');
  return picked;
}
