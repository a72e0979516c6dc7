// Sessions with random inputs; `npm run campaign -- sessions` runs many more of them.

import { describe, expect, test } from '@jest/globals';
import { sized } from '../../../fixtures/campaign.js';
import { completeRandomSession, runRandomSession } from '../../../sessions/random-sessions.js';

const SEEDS = Array.from({ length: sized(15, 60) }, (_, index) => index + 1);

describe('S3-01 S3-17 S3-39: random sessions', () => {
  test('hold their invariants after every input', () => {
    const seen = new Set(SEEDS.flatMap((seed) => [...runRandomSession(seed)]));
    expect(seen.size).toBeGreaterThan(sized(20, 25));
  }, 120_000);

  test('are completed by an honest agent and a maintainer from any state', () => {
    for (const seed of SEEDS) expect(() => completeRandomSession(seed)).not.toThrow();
  }, 120_000);
});
