// The memory of a step, and what it emits and asks for.

import { describe, expect, test } from '@jest/globals';
import { markEmission, requestedApproval } from '../../machines/step.js';
import { shippedPolicy } from '../fixtures/shipped-policy.js';
import { UNDECIDED_AUTHORIZATION } from '../../src/core/step/authorization.js';
import type { Verdict } from '../../src/core/policy/verdict.js';
import { UNKNOWN_IDENTITY } from '../../src/core/step/check-phases.js';
import { attempting, CALL, PROPOSER, RECEIVED_AT } from './attempts.js';

const DIGEST = 'd'.repeat(64);
const PENDING: Verdict = { decision: 'deny', rule_id: 'approval.required', cause: 'APPROVAL_REQUIRED' };
const DENIED: Verdict = { decision: 'deny', rule_id: 'lane.tool_not_allowed', cause: 'LANE' };

describe('D7: a step asks for an approval', () => {
  const requested = (verdict: Verdict | null, digest: string | null, action: string | null = CALL.action) =>
    requestedApproval(
      attempting({ action, authorization: { ...UNDECIDED_AUTHORIZATION, verdict, digest } }),
      shippedPolicy(),
    );

  test('if it was denied for the lack of it', () => {
    expect(requested(PENDING, DIGEST)).toEqual({ digest: DIGEST, name: 'CALL_TOOL', at: RECEIVED_AT });
    expect(requested(PENDING, DIGEST, null)).toEqual({ digest: DIGEST, name: '', at: RECEIVED_AT });
  });

  test('but not without a digest, nor if another rule denied it, nor without a verdict', () => {
    expect(requested(PENDING, null)).toBeNull();
    expect(requested(DENIED, DIGEST)).toBeNull();
    expect(requested(null, DIGEST)).toBeNull();
    expect(requested(null, null)).toBeNull();
  });
});

test('C17 C19: a proposal id is marked in lower case', () => {
  const step = attempting();
  const markOf = (proposal_id: string | null) =>
    markEmission({ ...step, identity: { ...UNKNOWN_IDENTITY, proposal_id } });
  expect(markOf('ABCDEF00-0000-4000-8000-00000000000A')).toEqual({
    type: 'mark',
    mark: {
      root_run_id: PROPOSER.root_run_id,
      proposal_id: 'abcdef00-0000-4000-8000-00000000000a',
      run_id: PROPOSER.run_id,
      step_index: 1,
      payload_sha256: step.payload.hash_sha256,
      seq: 0,
    },
  });
  expect(markOf(null)).toMatchObject({ mark: { proposal_id: '' } });
});
