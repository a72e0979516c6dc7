// A small campaign. `npm run campaign -- trees` runs the full one: 10,000 trees.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { sized } from '../fixtures/campaign.js';
import { campaign } from './campaign.js';
import { faultsOf } from './checks.js';
import { PLANTS, withPlant } from './planted.js';
import { play, type Played } from './play.js';
import { PLOT } from './turns.js';

const TREES = sized(60, 300);
const sample = fc.sample(PLOT, { seed: 4, numRuns: 600 });
const lives = new Map<number, Played>();

/** The n-th tree of the sample, which the planted bugs share. */
function life(n: number): Played {
  const plot = sample[n];
  if (plot === undefined) throw new Error('the sample has no such tree');
  const played = lives.get(n) ?? play(plot);
  lives.set(n, played);
  return played;
}

describe('random run trees with concurrent children, denials, failures, cancels, retries, approvals and overlays', () => {
  test(`S4-20..24 S4-36..50 S4-54..57 S4-66..70 S4-79 S4-84 S4-85 D1 D7 D8 C51..54: ${TREES} of them satisfy every rule`, () => {
    const { tally, violation } = campaign({ seed: 3, trees: TREES });
    expect(violation).toBeNull();
    expect(tally.trees).toBe(TREES);
    expect(tally.missing.length).toBeLessThan(sized(12, 6));
  }, 60_000);

  test('a violation is shrunk to a few turns, and reported with the seed and the path that reproduce it', () => {
    // A rule that every tree with a cancel violates.
    const check = ({ inputs, decisions }: Played): readonly string[] =>
      inputs.some(({ recorded }, i) => recorded.kind === 'cancel' && decisions[i]?.refused === false)
        ? ['no run is cancelled']
        : [];
    const { violation } = campaign({ seed: 11, trees: 50, check });
    expect(violation).toMatch(/seed: 11, path: "[\d:]+"/);
    expect(violation).toContain('no run is cancelled');
    const path = /path: "([\d:]+)"/.exec(violation ?? '')?.[1] ?? '';
    const again = campaign({ seed: 11, trees: 50, path, check });
    expect(again.violation).toContain('no run is cancelled');
    expect(again.tally.trees).toBeLessThan(20);
    expect((violation ?? '').match(/"t":/g)?.length).toBeLessThan(3);
  }, 60_000);

  test('D11: a plot determines its tree, byte for byte', () => {
    for (let n = 0; n < 20; n += 1) {
      const texts = ({ decisions }: Played): string[] =>
        decisions.flatMap(({ entries }) => entries.map(({ text }) => text));
      expect(texts(play(life(n).plot))).toEqual(texts(life(n)));
    }
  });
});

describe('the intended check finds each planted bug', () => {
  test.each(PLANTS.map((plant) => [plant.expects, plant.name, plant] as const))('%s: %s', (expects, _name, plant) => {
    for (let n = 0; n < sample.length; n += 1) {
      const changed = withPlant(plant, life(n));
      if (changed === null) continue;
      const found = faultsOf(life(n), changed).map((fault) => fault.split(':', 1)[0]);
      expect(faultsOf(life(n))).toEqual([]);
      expect(found).toContain(expects);
      return;
    }
    throw new Error('no tree of the sample has a place for this');
  });
});
