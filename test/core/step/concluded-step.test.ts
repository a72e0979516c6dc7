// The trace and the response of a step whose decision and result are known.

import { describe, expect, test } from '@jest/globals';
import { type ArtifactRef } from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { Fault } from '../../../src/core/contract/fault.js';
import {
  auditFailureResponse,
  composeResponse,
  composeTrace,
  resultWithoutEffect,
  type ConcludedStep,
} from '../../../src/core/step/concluded-step.js';
import { newStepDraft } from '../../../src/core/step/check-phases.js';
import { testPolicy } from '../../fixtures/policy.js';
import { RUN } from '../../fixtures/privileged.js';
import { bytesOf, ID, proposal } from './judge.js';

const policy = testPolicy();
const NOW = '2026-01-01T00:00:00.000Z';
const ref = (artifact_kind: string): ArtifactRef => ({
  artifact_id: `sha256:${'0'.repeat(64)}`,
  artifact_kind,
  hash_sha256: '0'.repeat(64),
  byte_size: 1,
});
const identity = {
  proposal_id: ID,
  action: 'READ_FILE',
  schema_version: '1.0.0',
  reasoning: { sha256: 'a'.repeat(64), chars: 3 },
};
const VIOLATION: Fault = { code: 'POLICY_VIOLATION', cause: 'SANDBOX', rule_id: 'sandbox.outside' };
const USED_ID: Fault = { code: 'DUPLICATE_PROPOSAL_ID', cause: null, rule_id: 'proposal.id_used' };
const SEEN = {
  run_id: 'run_agent',
  step_index: 3,
  payload_sha256: '0'.repeat(64),
  outcome: 'DENIED',
  error_code: 'ACTION_NOT_ALLOWED',
  response: null,
} as const;

const concluded = (over: Partial<ConcludedStep> = {}): ConcludedStep => ({
  ...newStepDraft(null, '0'.repeat(64), null),
  identity,
  action: 'READ_FILE',
  args: { path: '/sandbox/a.txt' },
  args_summary: { path: '/sandbox/a.txt' },
  agent: RUN,
  exposure: 'detailed',
  step_index: 7,
  received_at: NOW,
  payload: ref('raw_payload'),
  recorded_response: null,
  result: { content: 'x' },
  result_ref: ref('result'),
  attempts: 1,
  mediated_run_id: 'run_child',
  response: 'the response',
  ...over,
});

describe('the response', () => {
  const fresh = `{"proposal_id":"${ID}","action":"READ_FILE","outcome":"SUCCESS","result":{"content":"x"},"error":null}`;

  test('C19: to a repeated proposal is the recorded text', () => {
    expect(composeResponse(concluded({ replay_of: 3, recorded_response: 'recorded' }))).toBe('recorded');
  });

  test('is composed for a new proposal, and for a repeated one without recorded text', () => {
    expect(composeResponse(concluded())).toBe(fresh);
    expect(composeResponse(concluded({ recorded_response: 'recorded' }))).toBe(fresh);
    expect(composeResponse(concluded({ replay_of: 3 }))).toBe(fresh);
  });
});

describe('the result without an effect', () => {
  test('is that of THINK or FINISH', () => {
    expect(resultWithoutEffect({ action: 'THINK', args: null })).toEqual({});
    expect(resultWithoutEffect({ action: 'FINISH', args: { response: 'done' } })).toEqual({ response: 'done' });
  });

  test.each([null, 'READ_FILE', 'LAUNCH', 'constructor'])('does not exist for the action %j', (action) => {
    expect(resultWithoutEffect({ action, args: {} })).toBeNull();
  });
});

describe('the trace', () => {
  test('S0-56: of a successful step is complete', () => {
    expect(composeTrace(concluded(), policy)).toStrictEqual({
      run_id: RUN.run_id,
      step_index: 7,
      proposal_id: ID,
      schema_version: '1.0.0',
      action: 'READ_FILE',
      args_summary: { path: '/sandbox/a.txt' },
      outcome: 'SUCCESS',
      decision: 'ALLOW',
      error_code: null,
      cause: null,
      rule_id: null,
      phase_failed_at: null,
      received_at: NOW,
      completed_at: '',
      reasoning: identity.reasoning,
      payload: ref('raw_payload'),
      result: ref('result'),
      mediated_run_id: 'run_child',
      response_sha256: sha256('the response'),
      replay_of: null,
    });
  });

  test('names the fault of a denied step, and no mediated run without an attempt', () => {
    const step = concluded({ fault: VIOLATION, phase_failed_at: 'AUTHORIZE', attempts: 0, result_ref: null });
    expect(composeTrace(step, policy)).toMatchObject({
      outcome: 'DENIED',
      decision: 'DENY',
      error_code: 'POLICY_VIOLATION',
      cause: 'SANDBOX',
      rule_id: 'sandbox.outside',
      phase_failed_at: 'AUTHORIZE',
      result: null,
      mediated_run_id: null,
    });
  });

  test('C19: of a repeated proposal has the first outcome and error code', () => {
    const trace = composeTrace(concluded({ replay_of: 3, seen: SEEN, attempts: 0 }), policy);
    expect(trace).toMatchObject({
      outcome: 'DENIED',
      decision: 'DENY',
      error_code: 'ACTION_NOT_ALLOWED',
      cause: null,
      rule_id: null,
      replay_of: 3,
    });
  });

  test('C19: of a rejected second use of an id has its own outcome', () => {
    const trace = composeTrace(concluded({ seen: SEEN, fault: USED_ID, phase_failed_at: 'VALIDATE_SCHEMA' }), policy);
    expect(trace).toMatchObject({
      outcome: 'VALIDATION_ERROR',
      error_code: 'DUPLICATE_PROPOSAL_ID',
      rule_id: 'proposal.id_used',
      replay_of: null,
    });
  });

  test('has the hash of the empty text if there is no response', () => {
    expect(composeTrace(concluded({ response: null }), policy).response_sha256).toBe(sha256(''));
  });
});

describe('C35: the response of a step that could not be recorded', () => {
  const MESSAGE = 'The step could not be recorded; the run has stopped';

  test('has the id and the action of a valid payload, and no result', () => {
    expect(auditFailureResponse(bytesOf(proposal()), policy, 'detailed')).toBe(
      `{"proposal_id":"${ID}","action":"READ_FILE","outcome":"EXECUTION_ERROR","result":null` +
        `,"error":{"error_code":"AUDIT_FAILURE","message":"${MESSAGE}"}}`,
    );
  });

  test('has neither for a payload that is no JSON', () => {
    expect(auditFailureResponse(bytesOf('{'), policy, 'detailed')).toBe(
      '{"proposal_id":null,"action":null,"outcome":"EXECUTION_ERROR","result":null' +
        `,"error":{"error_code":"AUDIT_FAILURE","message":"${MESSAGE}"}}`,
    );
  });

  test('under the exposure "decision" has no error', () => {
    expect(auditFailureResponse(bytesOf(proposal()), policy, 'decision')).toBe(
      `{"proposal_id":"${ID}","action":"READ_FILE","decision":"ALLOW","result":null}`,
    );
  });
});
