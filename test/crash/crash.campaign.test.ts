// A small part of the crash campaign (`npm run campaign -- crash`): killed processes, at fewer points. Damage of disks
// and locks is in disk.nightly.test.ts.

import { expect, test } from '@jest/globals';
import { expectNothing, suiteOptions } from './built.js';
import { everyBoundary, everyRecovery, randomKills } from './campaign.js';
import { plantedVictims } from './planted.js';

const MS_MAX = 300_000;
const options = await suiteOptions('crash-test', 7);

test(
  'C35 D3 D4 D8 D9: killed at commits and around effects, everything printed is in the ledger, and no effect runs twice',
  async () => {
    const tally = await everyBoundary(options, ['commit.before', 'commit.after', 'effect.mid', 'effect.performed'], 17);
    expectNothing(tally);
    expect(tally.cases).toBeGreaterThan(3);
  },
  MS_MAX,
);

test(
  'D8: a recovering process is killed at every commit of the recovery, and the next one completes',
  async () => {
    const tally = await everyRecovery(options, [{ point: 'effect.performed', nth: 5 }]);
    expectNothing(tally);
    expect(tally.notes.get('killed recovering')).toBeGreaterThan(3);
  },
  MS_MAX,
);

test(
  'D2 D3 D4 D8: killed at random, repeatedly',
  async () => {
    expectNothing(await randomKills(options, 4, 4));
  },
  MS_MAX,
);

test(
  'the campaign finds planted faults: an early acknowledgement, repeated effects, a guessed outcome',
  async () => {
    const tally = await plantedVictims(options);
    expect(tally.violations).toEqual([]);
    expect(tally.cases).toBe(4);
  },
  MS_MAX,
);
