import { describe, expect, test } from '@jest/globals';
import { FAULTS, messageOf } from '../../../src/core/contract/fault.js';
import { parse } from '../../../src/core/step/check-phases.js';
import { testPolicy } from '../../fixtures/policy.js';
import { judge, proposal } from './judge.js';

const policy = testPolicy();

describe('PARSE', () => {
  test('S0-21: returns a proposal as the JSON object that it is', () => {
    expect(parse('{"action": "THINK", "args": {}}', policy)).toEqual({
      ok: true,
      value: { action: 'THINK', args: {} },
    });
  });

  test.each(['{ invalid json }', '{"a":1,}', "{'a':1}", '{"a":1} // why', '{"a":1,"a":2}', '\ufeff{}'])(
    'S0-23 S0-24 S0-25: %s ends the step as a VALIDATION_ERROR with the message "Invalid JSON format"',
    (text) => {
      const parsed = parse(text, policy);
      expect(parsed).toMatchObject({ ok: false, fault: { code: 'INVALID_JSON', cause: null } });
      expect(parsed).not.toHaveProperty('value');
      expect(FAULTS.INVALID_JSON).toEqual({
        outcome: 'VALIDATION_ERROR',
        phase: 'PARSE',
        message: 'Invalid JSON format',
      });
      expect(messageOf({ code: 'INVALID_JSON', cause: null })).toBe('Invalid JSON format');
    },
  );

  test('records in the audit which rule was broken', () => {
    expect(parse('{"a":1,"a":2}', policy)).toMatchObject({ fault: { rule_id: 'json.duplicate_key' } });
    expect(parse('{ invalid json }', policy)).toMatchObject({ fault: { rule_id: 'json.syntax' } });
  });

  test('takes the maximum depth of a proposal from policy', () => {
    const shallow = testPolicy({ limits: { payload_depth_max: 2 } });
    expect(parse('{"a":{}}', shallow)).toMatchObject({ ok: true });
    expect(parse('{"a":{"b":{}}}', shallow)).toMatchObject({ ok: false, fault: { rule_id: 'json.too_deep' } });
  });

  test('parses the same text anew for a policy with other limits, in either order', () => {
    const shallow = testPolicy({ limits: { payload_depth_max: 1 } });
    const text = '{"a":{"b":1}}';
    const tooDeep = { ok: false, fault: { rule_id: 'json.too_deep' } };
    for (const [under, expected] of [
      [policy, { ok: true }],
      [shallow, tooDeep],
      [policy, { ok: true }],
      [shallow, tooDeep],
    ] as const) {
      expect(parse(text, under)).toMatchObject(expected);
    }
  });

  test('returns the same value when it parses the same text again, since a proposal is parsed twice', () => {
    const text = '{"once":[1]}';
    const parsed = parse(text, policy);
    expect(parse(text, policy)).toBe(parsed);
    expect(parse('{"once":[2]}', policy)).toEqual({ ok: true, value: { once: [2] } });
  });

  test.each([
    ['two proposals, one behind the other', `${proposal()}\n${proposal()}`, 'INVALID_JSON'],
    ['two proposals in an array', `[${proposal()},${proposal()}]`, 'SCHEMA_VIOLATION'],
  ])('S0-01 S1-01: accepts exactly one proposal per step: %s are rejected', (_what, payload, code) => {
    expect(judge(payload).fault).toMatchObject({ code });
  });
});
