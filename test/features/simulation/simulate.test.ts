// A small simulation. `npm run campaign -- policies` runs all of it: 100,000 decisions.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { sized } from '../../fixtures/campaign.js';
import { PLOT } from '../../trees/turns.js';
import { compare, newTally } from './agreement.js';
import { policyPool } from './random-policies.js';

describe('D1 S4-31..35: simulated decisions of random trees', () => {
  const tally = newTally();
  const pool = policyPool(5, 24);
  for (const [i, plot] of fc.sample(PLOT, { seed: 5, numRuns: sized(80, 500) }).entries()) {
    const [a, b] = [pool[i % pool.length], pool[(i * 7 + 3) % pool.length]];
    if (a !== undefined && b !== undefined) compare(plot, a, b, tally);
  }

  test("do not flip under their own policy; under another one, each equals the live engine's decision", () => {
    expect(tally.faults).toEqual([]);
  });

  test('include flips, denials of the overlay, and most of the rules', () => {
    expect(tally.same).toBeGreaterThan(sized(450, 3_000));
    expect(tally.compared).toBeGreaterThan(sized(220, 1_500));
    expect(tally.flipped).toBeGreaterThan(sized(20, 150));
    expect(tally.overlaid).toBeGreaterThan(sized(0, 5));
    expect(tally.rules.size).toBeGreaterThan(sized(25, 35));
    expect(tally.undecidable).toBeLessThan(tally.compared / 20);
  });
});
