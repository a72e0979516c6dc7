import { describe, expect, test } from '@jest/globals';
import { Compile } from 'typebox/compile';
import {
  EXECUTION_CAUSES,
  FAULT_CODES,
  FAULTS,
  POLICY_CAUSES,
  type ExecutionCause,
  type Fault,
  type FaultCode,
  type PolicyCause,
} from '../../../src/core/contract/fault.js';
import { DecisionResponse, DetailedResponse, type Exposure } from '../../../src/core/contract/run/response.js';
import { InvariantError } from '../../../src/core/errors.js';
import { respond, responseParts } from '../../../src/core/step/concluded-step.js';
import { UNKNOWN_IDENTITY, type Identity } from '../../../src/core/step/check-phases.js';
import { ID } from './judge.js';

const identity: Identity = { ...UNKNOWN_IDENTITY, proposal_id: ID, action: 'READ_FILE', schema_version: '1.0.0' };
const fault = (code: FaultCode, cause: Fault['cause'] = null): Fault => ({ code, cause, rule_id: 'secret.rule' });

const succeeded = responseParts({ identity, fault: null, result: { content: 'x' } });
const refused = (refusal: Fault) => responseParts({ identity, fault: refusal, result: null });
const answer = (refusal: Fault, exposure: Exposure = 'detailed') =>
  JSON.parse(respond(refused(refusal), exposure)) as Record<string, unknown>;

const detailed = Compile(DetailedResponse);
const decisionOnly = Compile(DecisionResponse);

// The closed registry, as a literal: S0-20 to S0-55 and resolution C03.
const OUTCOMES: Readonly<Record<FaultCode, string>> = {
  EMPTY_PAYLOAD: 'VALIDATION_ERROR',
  PAYLOAD_TOO_LARGE: 'VALIDATION_ERROR',
  INVALID_ENCODING: 'VALIDATION_ERROR',
  INVALID_JSON: 'VALIDATION_ERROR',
  SCHEMA_VIOLATION: 'VALIDATION_ERROR',
  SCHEMA_VERSION_INCOMPATIBLE: 'VALIDATION_ERROR',
  DUPLICATE_PROPOSAL_ID: 'VALIDATION_ERROR',
  ACTION_NOT_ALLOWED: 'DENIED',
  INVALID_ARGS: 'VALIDATION_ERROR',
  POLICY_VIOLATION: 'DENIED',
  EXECUTION_ERROR: 'EXECUTION_ERROR',
  AUDIT_FAILURE: 'EXECUTION_ERROR',
};

describe('the five keys of a response', () => {
  test('S0-69 S0-72 S2-22: success has a result and no error, keys in the order of the contract', () => {
    expect(respond(succeeded, 'detailed')).toBe(
      `{"proposal_id":"${ID}","action":"READ_FILE","outcome":"SUCCESS","result":{"content":"x"},"error":null}`,
    );
  });

  test.each(FAULT_CODES)('S0-04 S0-69 S0-72 S0-73: %s has an error and no result', (code) => {
    const response = answer(fault(code));
    expect(Object.keys(response)).toEqual(['proposal_id', 'action', 'outcome', 'result', 'error']);
    expect(response).toEqual({
      proposal_id: ID,
      action: 'READ_FILE',
      outcome: OUTCOMES[code],
      result: null,
      error: { error_code: code, message: FAULTS[code].message },
    });
    expect(detailed.Check(response)).toBe(true);
  });

  test('S0-73: there are four outcomes', () => {
    const outcomes = [succeeded, ...FAULT_CODES.map((code) => refused(fault(code)))].map(({ outcome }) => outcome);
    expect([...new Set(outcomes)].sort()).toEqual(['DENIED', 'EXECUTION_ERROR', 'SUCCESS', 'VALIDATION_ERROR']);
  });

  test('S0-70 S0-71: without an identity, id and action are null', () => {
    expect(responseParts({ identity: UNKNOWN_IDENTITY, fault: fault('INVALID_JSON'), result: null })).toMatchObject({
      proposal_id: null,
      action: null,
    });
  });

  test('S0-72: a result together with a failure is not shown', () => {
    expect(responseParts({ identity, fault: fault('EXECUTION_ERROR'), result: { content: 'x' } }).result).toBeNull();
  });

  test('S0-04 S0-72: a step with neither a failure nor a result is a bug', () => {
    expect(() => responseParts({ identity, fault: null, result: null })).toThrow(InvariantError);
  });

  test('S0-72: an empty result is a result', () => {
    expect(respond(responseParts({ identity, fault: null, result: {} }), 'detailed')).toContain(
      '"result":{},"error":null',
    );
  });
});

describe('what a response reveals', () => {
  const policyCauses = Object.keys(POLICY_CAUSES) as PolicyCause[];
  const executionCauses = Object.keys(EXECUTION_CAUSES) as ExecutionCause[];

  test.each(policyCauses)('S0-51: a violation of %s has the same code and a constant message', (cause) => {
    expect(answer(fault('POLICY_VIOLATION', cause))).toMatchObject({
      outcome: 'DENIED',
      error: { error_code: 'POLICY_VIOLATION', message: POLICY_CAUSES[cause] },
    });
  });

  test.each(executionCauses)(
    'S0-54 S0-55: the stable error type %s has the same code and a constant message',
    (cause) => {
      expect(answer(fault('EXECUTION_ERROR', cause))).toMatchObject({
        outcome: 'EXECUTION_ERROR',
        error: { error_code: 'EXECUTION_ERROR', message: EXECUTION_CAUSES[cause].message },
      });
    },
  );

  test('S2-12: rule and cause stay in the audit, under either exposure', () => {
    const faults = [
      ...FAULT_CODES.map((code) => fault(code)),
      ...policyCauses.map((cause) => fault('POLICY_VIOLATION', cause)),
      ...executionCauses.map((cause) => fault('EXECUTION_ERROR', cause)),
    ];
    for (const refusal of faults) {
      for (const exposure of ['detailed', 'decision'] as const) {
        const text = respond(refused(refusal), exposure);
        expect(text).not.toContain('secret.rule');
        if (refusal.cause !== null) expect(text).not.toContain(`"${refusal.cause}"`);
      }
    }
  });
});

describe('a response of the exposure "decision"', () => {
  test('S2-07 S2-10: is ALLOW if every check passed, with the result', () => {
    expect(respond(succeeded, 'decision')).toBe(
      `{"proposal_id":"${ID}","action":"READ_FILE","decision":"ALLOW","result":{"content":"x"}}`,
    );
  });

  test.each(FAULT_CODES.filter((code) => OUTCOMES[code] !== 'EXECUTION_ERROR'))(
    'S2-08 S2-10 S2-12: is DENY for %s, without any reason',
    (code) => {
      expect(respond(refused(fault(code)), 'decision')).toBe(
        `{"proposal_id":"${ID}","action":"READ_FILE","decision":"DENY","result":null}`,
      );
    },
  );

  test('S2-07 S2-12: of a failed execution is ALLOW, and reveals nothing more', () => {
    const response = answer(fault('EXECUTION_ERROR', 'FILE_NOT_FOUND'), 'decision');
    expect(response).toEqual({ proposal_id: ID, action: 'READ_FILE', decision: 'ALLOW', result: null });
    expect(decisionOnly.Check(response)).toBe(true);
  });
});

describe('the form of a response', () => {
  test.each(['a "quoted" \\ text', 'line\r\nbreak', '\u2028\u2029', '\u001b[2J', '</script>', '😀', '\u0000'])(
    'S2-21 S2-22: with the content %j it is still one whole JSON text on one line',
    (content) => {
      const text = respond(responseParts({ identity, fault: null, result: { content } }), 'detailed');
      expect(text).not.toMatch(/[\r\n]/);
      expect(JSON.parse(text)).toMatchObject({ result: { content }, error: null });
    },
  );

  test('S2-21: results without a prototype, as the scanner makes them, are written like any other', () => {
    const result = Object.assign(Object.create(null) as Record<string, string>, { toJSON: 'x', content: 'y' });
    expect(respond(responseParts({ identity, fault: null, result }), 'detailed')).toContain(
      '"result":{"toJSON":"x","content":"y"}',
    );
  });
});
