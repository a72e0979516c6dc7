// D7: the votes for a run that waits for its approval, without a machine.

import { describe, expect, test } from '@jest/globals';
import {
  applyBallot,
  approvalDecisionEmission,
  approvalPendingEmission,
  dropSuspendedVotes,
  expiry,
  hasExpired,
} from '../../machines/approval-ballot.js';
import type { MediatedMemory, RequiredApproval, VoteEvent } from '../../machines/mediated-memory.js';
import type { ApprovalRule } from '../../src/core/contract/run/approval.js';
import { emptyBook } from '../../src/core/policy/policy-features.js';
import { requestApproval } from '../../src/features/approvals/approval-requests.js';
import type { Policy } from '../../src/core/policy/policy.js';
import { shippedPolicy } from '../fixtures/shipped-policy.js';
import { mediatedMemory, PROMOTION_WRITE } from './mediated-runs.js';
import { personNamed } from '../fixtures/person.js';

const RULE: ApprovalRule = { for: 'promotion', approver_roles: ['ATTORNEY_ADMIN'], quorum: 1, expires_minutes: 60 };
const POLICY: Policy = { ...shippedPolicy(), approvals: [RULE] };
const DIGEST = 'd'.repeat(64);
const EARLIER = 'e'.repeat(64);
const T0 = '2026-01-01T00:00:00.000Z';
const T1 = '2026-01-01T00:10:00.000Z';
const EXPIRY = '2026-01-01T01:10:00.000Z';

const ask = (book: RequiredApproval['book'], digest: string, at: string) =>
  requestApproval(
    book,
    { digest, name: 'promotion', requested_by: 'governor', requester: personNamed('governor'), at },
    RULE,
  );
const emptied = emptyBook('run_mediated');
/** An approval that was requested after another one of the same run. */
const APPROVAL: RequiredApproval = { digest: DIGEST, rule: RULE, book: ask(ask(emptied, EARLIER, T0), DIGEST, T1) };
const waiting = (approval: RequiredApproval | null = APPROVAL): MediatedMemory => mediatedMemory({ approval });

const vote = (decision: 'approve' | 'reject', at = T1): VoteEvent => ({
  type: 'VOTE',
  ballot: {
    digests: [DIGEST],
    decision,
    approver: {
      actor: { actor_type: 'human', actor_id: 'anna' },
      person: personNamed('anna'),
      role_id: 'ATTORNEY_ADMIN',
    },
    at,
    for_run: 'run_mediated',
  },
  overlay: null,
});

describe('D7: a ballot', () => {
  test('changes nothing in a run that needs no approval', () => {
    expect(applyBallot(waiting(null), vote('approve'), POLICY)).toEqual({ update: {}, verdicts: [] });
  });

  test.each<readonly [string, VoteEvent, string]>([
    ['rejects', vote('reject'), 'approval.rejected'],
    ['comes too late for', vote('approve', EXPIRY), 'approval.expired'],
  ])('that %s the request denies the run for the lack of its approval', (_how, event, rule_id) => {
    const { update } = applyBallot(waiting(), event, POLICY);
    expect(update.verdict).toEqual({ decision: 'deny', rule_id, cause: 'APPROVAL_REQUIRED' });
  });
});

test('D1: without requests or an overlay, the approvals that count are those of the book', () => {
  expect(dropSuspendedVotes(emptied, { epoch: 1, rules: [] })).toEqual(emptied);
  expect(dropSuspendedVotes(APPROVAL.book, null)).toBe(APPROVAL.book);
});

describe('S4-44: the audit of a decision on an approval', () => {
  test('names the digest, if the run needs an approval', () => {
    for (const emissionOf of [approvalPendingEmission, approvalDecisionEmission]) {
      expect(emissionOf(waiting(), PROMOTION_WRITE)).toMatchObject({ body: { request_hash_sha256: DIGEST } });
      const { body } = emissionOf(waiting(null), PROMOTION_WRITE) as { body: { request_hash_sha256: unknown } };
      expect(body.request_hash_sha256).toBeUndefined();
    }
  });

  test('is a denial without a verdict', () => {
    expect(approvalDecisionEmission(waiting(), PROMOTION_WRITE)).toMatchObject({
      body: { outcome: 'deny', authz: { rule_id: 'run.no_verdict' } },
    });
  });
});

describe('D7: the time until which votes count', () => {
  test('is that of the request of the run, and not of an earlier one', () => {
    expect(expiry(APPROVAL)).toBe(EXPIRY);
    expect(hasExpired(APPROVAL, '2026-01-01T01:09:59.999Z')).toBe(false);
    expect(hasExpired(APPROVAL, EXPIRY)).toBe(true);
  });

  test('does not exist without an approval, or without its request', () => {
    for (const approval of [null, { ...APPROVAL, digest: 'f'.repeat(64) }]) {
      expect(expiry(approval)).toBeNull();
      expect(hasExpired(approval, '9999-12-31T23:59:59.999Z')).toBe(false);
    }
  });
});
