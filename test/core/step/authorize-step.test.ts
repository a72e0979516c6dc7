// AUTHORIZE of one step without a machine: its stages, and what a step needs of its budget.

import { describe, expect, test } from '@jest/globals';
import {
  authorizeStep,
  findExhaustedBudget,
  isPrivileged,
  RUN_ENDING_DENIAL,
  UNDECIDED_AUTHORIZATION,
} from '../../../src/core/step/authorization.js';
import { limitsOf, openAccount, type LimitParts } from '../../../src/core/run/budget-account.js';
import { attempting, READ, RETRYING_POLICY as POLICY } from '../../machines/attempts.js';

test('C53: the end of the run replaces the verdict, and nothing else', () => {
  const authorization = { ...UNDECIDED_AUTHORIZATION, args: READ.args, digest: 'd' };
  expect(authorizeStep(attempting({ ...READ, authorization }), { kind: 'ending' }, POLICY)).toEqual({
    ...authorization,
    verdict: RUN_ENDING_DENIAL,
  });
  expect(RUN_ENDING_DENIAL).toEqual({ decision: 'deny', rule_id: 'lifecycle.run_ending', cause: 'LIFECYCLE' });
});

test.each([
  ['THINK', false],
  ['FINISH', false],
  ['READ_FILE', true],
  ['CALL_TOOL', true],
  ['FLY', true],
  [null, true],
])('S2-14: the action %j is privileged: %p', (action, privileged) => {
  expect(isPrivileged({ action }, POLICY)).toBe(privileged);
});

describe('S4-13: a step needs', () => {
  const exhaustedBy = (limits: LimitParts, runs = 1) => findExhaustedBudget(openAccount(limitsOf(limits)), runs);
  test.each(['steps', 'wall_ms', 'bytes', 'tokens'] as const)('something left of a limited amount of %s', (kind) => {
    expect(exhaustedBy({ [kind]: 0 })).toBe(kind);
    expect(exhaustedBy({ [kind]: 1 })).toBeNull();
    expect(exhaustedBy({})).toBeNull();
  });

  test('a call for each of its runs', () => {
    expect(exhaustedBy({ tool_calls: 0 }, 0)).toBeNull();
    expect(exhaustedBy({ tool_calls: 2 }, 2)).toBeNull();
    expect(exhaustedBy({ tool_calls: 1 }, 2)).toBe('tool_calls');
  });
});
