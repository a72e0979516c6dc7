/** @modules own */
// What core does about decision points without the feature; what they are asked: `test/features/decision-points`.

import { expect, test } from '@jest/globals';
import type { DecisionPoint } from '../../../src/core/contract/policy/decision-points.js';
import type { RunContext } from '../../../src/core/contract/run/run-context.js';
import {
  decisionPointDenial,
  decisionPointsFor,
  decisionQueries,
  installDecisionPoints,
} from '../../../src/core/policy/policy-features.js';
import { shippedPolicy } from '../../fixtures/shipped-policy.js';

const POINT: DecisionPoint = {
  name: 'fraud',
  protocol: 'opa',
  url: 'https://a.example',
  actions: ['WRITE_FILE'],
  timeout_ms: 50,
};
const RUN = {} as RunContext;
const step = (name: string) => ({ name, action: name, args: {}, paths: [] });
const POLICY = { ...shippedPolicy(), decision_points: [POINT] };
const QUERY = { point: POINT, body: '{}' };

test('an action without decision points needs no feature', () => {
  expect(decisionPointsFor('WRITE_FILE', shippedPolicy())).toEqual([]);
  expect(decisionQueries(step('READ_FILE'), RUN, POLICY)).toEqual([]);
  expect(decisionPointDenial([], [])).toBeNull();
});

test('without the feature nothing is asked, and nothing is permitted', () => {
  const error = expect.objectContaining({ code: 'POLICY_UNSUPPORTED' });
  expect(() => decisionQueries(step('WRITE_FILE'), RUN, POLICY)).toThrow(error);
  expect(() => decisionPointDenial([QUERY], [])).toThrow(error);
});

test('what is installed is asked about the decision points of the action', () => {
  installDecisionPoints({
    findMistakes: () => [],
    queries: (points) => points.map((point) => ({ point, body: '{}' })),
    denial: (queries) => ({ decision: 'deny', rule_id: `${queries.length}` as never, cause: 'CONDITION' }),
  });
  expect(decisionQueries(step('WRITE_FILE'), RUN, POLICY)).toEqual([QUERY]);
  expect(decisionPointDenial([QUERY], [])).toMatchObject({ rule_id: '1' });
});
