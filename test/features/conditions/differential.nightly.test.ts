// The second evaluator, written from Cedar's specification, and Cedar's own engine agree on random conditions.
// `npm run campaign -- conditions` compares a million requests; CONDITION_SETS and CONDITION_REQUESTS set the size
// here.

import { describe, expect, test } from '@jest/globals';
import { compareEvaluators, findUnnoticed } from './differential.js';
import { plantErring } from './erring-policies.js';
import { OPERATOR_FAULTS } from './operator-faults.js';
import { OPERATORS } from './reference/operators.js';

const SETS = Number(process.env['CONDITION_SETS'] ?? 50);
const REQUESTS = Number(process.env['CONDITION_REQUESTS'] ?? 400);
const SEED = 20_270_101;
/** For an hour of the million. */
const TIMEOUT_MS = 5_400_000;

describe('conditions', () => {
  test(
    'Cedar and the reference evaluator have the same satisfied and failing policies, and none of them is called unmet',
    () => {
      const tally = compareEvaluators({ seed: SEED, sets: SETS, requestsPerSet: REQUESTS });
      expect(tally.firstDifference).toBeNull();
      expect(tally).toMatchObject({ requests: SETS * REQUESTS, differences: 0 });
      // Otherwise the comparison would show little.
      const evaluations = tally.satisfied + tally.unsatisfied + tally.erring;
      for (const count of [tally.satisfied, tally.erring]) expect(count / evaluations).toBeGreaterThan(0.05);
      // Half of the requests have what Turnpike never writes, such as tags: those are for Cedar.
      expect(tally.certainPolicies / tally.unsatisfied).toBeGreaterThan(0.4);
      expect([...tally.operators.keys()].sort()).toEqual(Object.keys(OPERATORS).sort());
    },
    TIMEOUT_MS,
  );

  test('a planted policy that fails in every evaluation never leaves a request allowed', () => {
    const tally = compareEvaluators({ seed: SEED + 1, sets: 200, requestsPerSet: 10, plant: plantErring });
    expect(tally).toMatchObject({ requests: 2_000, differences: 0, allowed: 0 });
    expect(tally.erring).toBeGreaterThanOrEqual(tally.requests);
    // Cedar by itself allows these: it ignores a policy that fails.
    expect(tally.onlyErring).toBeGreaterThan(500);
  });

  test('every planted fault of an operator makes a difference', () => {
    expect(findUnnoticed({ seed: SEED + 2, sets: 6_000, requestsPerSet: 5 }, OPERATOR_FAULTS)).toEqual([]);
  });
});
