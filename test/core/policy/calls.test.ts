/** @modules own */
import { describe, expect, test } from '@jest/globals';
import type { CallRule } from '../../../src/core/contract/policy/call-rules.js';
import {
  callApprovalSubject,
  callRuleVerdict,
  grantingCallRules,
  installCallDecider,
  type CallRules,
} from '../../../src/core/policy/policy-features.js';

const CALL = { tool: 'mail.send', input: {} };
const RULE: CallRule = { id: 'send', tools: ['mail.send'], decision: 'approval' };
const RULES: CallRules = { calls: [RULE] };

describe('call rules without the feature', () => {
  test('a lane without call rules allows a call', () => {
    expect(callRuleVerdict({}, CALL)).toEqual({ decision: 'allow' });
    expect([callApprovalSubject({}, CALL), grantingCallRules({}, CALL)]).toEqual([null, []]);
  });

  test('no call is decided by the rules of a lane', () => {
    const error = expect.objectContaining({ code: 'POLICY_UNSUPPORTED' });
    for (const decide of [callRuleVerdict, callApprovalSubject, grantingCallRules])
      expect(() => decide(RULES, CALL)).toThrow(error);
  });
});

test('what is installed decides', () => {
  installCallDecider({
    decide: ({ calls = [] }) => ({ decision: 'approval', rule: calls[0] ?? RULE }),
    grantingRules: ({ calls = [] }) => calls,
  });
  expect(callRuleVerdict(RULES, CALL)).toEqual({ decision: 'approval', rule: RULE });
  expect(callApprovalSubject(RULES, CALL)).toBe('call.send');
  expect(grantingCallRules(RULES, CALL)).toEqual([RULE]);
});
