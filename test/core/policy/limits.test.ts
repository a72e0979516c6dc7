import { expect, test } from '@jest/globals';
import { invalidMax } from '../../../machines/agent.js';
import { testPolicy } from '../../fixtures/policy.js';

test.each([
  ['100 without a limit', {}, 100],
  ['the limit of denials, if that is greater', { denials_per_run_max: 101 }, 101],
  ['100, if the limit of denials is lower', { denials_per_run_max: 99 }, 100],
  ['what the policy sets', { denials_per_run_max: 101, invalid_per_run_max: 7 }, 7],
])('C81 an agent run ends after %s', (_, limits, max) => {
  expect(invalidMax(testPolicy({ limits }))).toBe(max);
});
