// Random requests under random policies: a decision table, a live tree, its simulation and its explanation agree.

import { expect, test } from '@jest/globals';
import { sized } from '../../fixtures/campaign.js';
import { compareWays } from './one-path.js';
import '../../fixtures/conditions.js';
import '../../fixtures/call-rules.js';
import '../../fixtures/decision-points.js';

test('S4-31: all ways to decide a proposal agree', async () => {
  const compared = await compareWays({
    seed: 1,
    policies: sized(10, 40),
    requests: sized(30, 250),
    explainedEvery: sized(10, 50),
  });
  expect(compared.differences.slice(0, 5)).toEqual([]);
  // Conditions, their errors, decision points, approvals and lanes have all decided.
  const rules = [
    'allow lane.granted',
    'deny condition.error',
    'deny decision_point.denied',
    'approval approval.required',
  ];
  for (const rule of rules) expect([rule, compared.decisions.has(rule)]).toEqual([rule, true]);
});
