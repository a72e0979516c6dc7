// Counted effects: every point of one agent's short life, with a real process that is killed there. A longer life, and
// kills of the recovering process, are in the campaign (`npm run campaign -- crash --only counted,recounted`).

import { expect, test } from '@jest/globals';
import { suiteOptions } from './built.js';
import { everyEffect } from './effects-campaign.js';
import { plantedEffects } from './effects-planted.js';

const MS_MAX = 600_000;
const options = await suiteOptions('effects-test', 1);

test(
  'C35 D8 D9: killed at every boundary, each effect happens at most once; an outcome that cannot be known is OUTCOME_UNKNOWN',
  async () => {
    const { violations, notes } = await everyEffect(options, { brief: true });
    expect(violations).toEqual([]);
    const counted = (what: string): number => notes.get(what) ?? 0;
    // The whole life was enumerated: every commit and head write, and the points around every effect.
    expect(counted('commit.before')).toBeGreaterThan(6);
    for (const point of ['commit.after', 'externalHeadStore.before', 'externalHeadStore.after']) {
      expect([point, counted(point)]).toEqual([point, counted('commit.before')]);
    }
    expect(counted('effect.before')).toBe(3);
    expect(counted('effect.performed')).toBe(3);
    // The points at which something can go wrong were among them.
    expect(counted('unaskable unknown 1')).toBeGreaterThan(0);
    expect(counted('unaskable unknown 0')).toBeGreaterThan(0);
    expect(counted('other failed 0')).toBeGreaterThan(0);
  },
  MS_MAX,
);

test(
  'counting finds planted faults: an effect before its commit, repeated, guessed, or outside its transaction',
  async () => {
    const { violations, cases } = await plantedEffects(options);
    expect(violations).toEqual([]);
    expect(cases).toBe(5);
  },
  MS_MAX,
);
