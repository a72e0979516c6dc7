// A small campaign of careless policies against the linter; `npm run campaign -- redteam --only linter` draws many
// more.

import { expect, test } from '@jest/globals';
import { attackLinter } from './linter/campaign.js';

test('every careless policy is reported at its line, and every linter with a rule disabled is found', () => {
  const { figures, failures } = attackLinter({ seed: 17, rounds: 1 });
  expect(failures).toEqual([]);
  expect(figures['planted faults found']).toBe(figures['planted faults']);
});
