// D1, D7: what remains of a request when approvers are suspended, and what a book records.

import { describe, expect, test } from '@jest/globals';
import type {
  ApprovalBallot,
  ApprovalBook,
  ApprovalEntry,
  ApprovalRule,
} from '../../../src/core/contract/run/approval.js';
import { InvariantError } from '../../../src/core/errors.js';
import {
  approvalStatus,
  consume,
  countBallot,
  requestApproval,
  withoutVotes,
} from '../../../src/features/approvals/approval-requests.js';
import { emptyBook, type ApprovalPolicy } from '../../../src/core/policy/policy-features.js';
import { personNamed } from '../../fixtures/person.js';
import { bareRole } from '../../core/policy/bare-policy.js';

const DIGEST = 'd'.repeat(64);
const PAY: ApprovalRule = { for: 'PAY', approver_roles: ['BOSS'], quorum: 2, expires_minutes: 60 };
const POLICY: ApprovalPolicy = {
  approvals: [PAY],
  roles: new Map([['BOSS', bareRole({ role_id: 'BOSS', class: 'human' })]]),
};
const minute = (minutes: number): string => new Date(Date.UTC(2026, 0, 5, 9, minutes)).toISOString();
const REQUEST = {
  digest: DIGEST,
  name: 'PAY',
  requested_by: 'agent_7',
  requester: personNamed('agent_7'),
  at: minute(0),
};

const vote = (actor_id: string, decision: 'approve' | 'reject' = 'approve'): ApprovalBallot => ({
  digests: [DIGEST],
  decision,
  approver: { actor: { actor_type: 'human', actor_id }, person: personNamed(actor_id), role_id: 'BOSS' },
  at: minute(1),
  for_run: 'run_1',
});
const open = requestApproval(emptyBook('run_1'), REQUEST, PAY);
const after = (book: ApprovalBook, ...ballots: ApprovalBallot[]): ApprovalBook =>
  ballots.reduce((before, ballot) => countBallot(before, ballot, POLICY).book, book);
const once = after(open, vote('ada'));
const granted = after(once, vote('bob'));
const rejected = after(granted, vote('cleo', 'reject'));
const used = consume(granted, DIGEST, minute(2), PAY);
const entryOf = (book: ApprovalBook): ApprovalEntry => book.entries[0]!;

const suspended =
  (...names: string[]) =>
  ({ actor_id }: { readonly actor_id: string }): boolean =>
    names.includes(actor_id);
const count = (book: ApprovalBook, ballot: ApprovalBallot, names: string[], changes: Partial<ApprovalPolicy> = {}) => {
  const result = countBallot(book, ballot, { ...POLICY, isSuspended: suspended(...names), ...changes });
  return { rule_ids: result.verdicts.map(({ rule_id }) => rule_id), entry: result.book.entries[0] };
};

describe('D1 without the votes of suspended approvers', () => {
  test('an undecided or unused request has the other votes', () => {
    expect(withoutVotes(entryOf(once), suspended('ada'))).toEqual({ ...entryOf(once), votes: [] });
    expect(withoutVotes(entryOf(granted), suspended('ada'))).toEqual({
      ...entryOf(granted),
      votes: entryOf(granted).votes.slice(1),
    });
  });

  test('a request stays the same object if no voter is suspended, or if it was rejected or used', () => {
    for (const book of [open, once, granted]) {
      expect(withoutVotes(entryOf(book), suspended('cleo'))).toBe(entryOf(book));
    }
    for (const book of [rejected, used]) {
      expect(entryOf(book).votes).toHaveLength(2);
      expect(withoutVotes(entryOf(book), suspended('ada', 'bob'))).toBe(entryOf(book));
    }
  });

  test('an approval that has lost its quorum is open again, and needs new votes', () => {
    const lost = count(granted, vote('cleo'), ['ada', 'bob']);
    expect(lost.rule_ids).toEqual(['approval.accepted']);
    expect(lost.entry).toMatchObject({ state: 'open', approved_at: null });
    expect(lost.entry?.votes.map(({ actor_id }) => actor_id)).toEqual(['cleo']);
    expect(count(granted, vote('cleo'), ['ada'])).toMatchObject({
      rule_ids: ['approval.granted'],
      entry: { state: 'approved', approved_at: minute(1) },
    });
  });

  test('an approval that has kept its quorum is decided', () => {
    expect(count(granted, vote('cleo'), ['zoe'])).toEqual({
      rule_ids: ['approval.already_decided'],
      entry: entryOf(granted),
    });
    const three = {
      ...entryOf(granted),
      votes: [...entryOf(granted).votes, { ...entryOf(granted).votes[0], actor_id: 'dan' }],
    };
    const book = { ...granted, entries: [three] } as ApprovalBook;
    expect(count(book, vote('cleo'), ['ada']).rule_ids).toEqual(['approval.already_decided']);
  });

  test('a request without a rule, or no request, is rejected as without suspensions', () => {
    expect(count(granted, vote('cleo'), ['ada', 'bob'], { approvals: [] }).rule_ids).toEqual([
      'approval.role_not_allowed',
    ]);
    const unknown = { ...vote('cleo'), digests: ['e'.repeat(64)] };
    expect(count(granted, unknown, ['ada', 'bob']).rule_ids).toEqual(['approval.unknown_digest']);
  });
});

describe('D7 an approval', () => {
  test('is open until a vote has granted it, even under a rule with a lower quorum', () => {
    expect(approvalStatus(once, DIGEST, minute(2), { ...PAY, quorum: 1 })).toBe('open');
    expect(approvalStatus(granted, DIGEST, minute(2), { ...PAY, quorum: 1 })).toBe('granted');
  });

  test('records a requester only if the request has one', () => {
    const { requester, ...anonymous } = REQUEST;
    const [names, without] = [open, requestApproval(emptyBook('run_1'), anonymous, PAY)].map((book) =>
      Object.keys(entryOf(book)),
    );
    expect(entryOf(open).requester).toEqual(requester);
    expect(without).toEqual(names?.filter((name) => name !== 'requester'));
    for (const book of [once, granted, rejected, used]) expect(Object.keys(entryOf(book))).toEqual(names);
  });

  test('names the mistake of a caller', () => {
    const other = { ...PAY, for: 'export' };
    expect(() => requestApproval(open, REQUEST, other)).toThrow(
      new InvariantError('the approval of PAY is asked for under the rule of export'),
    );
    expect(() => requestApproval(emptyBook('run_1'), { ...REQUEST, at: 'now' }, PAY)).toThrow(
      new InvariantError('the time of a request or a vote is no time'),
    );
    expect(() => consume(emptyBook('run_1'), DIGEST, minute(1), PAY)).toThrow(
      new InvariantError('an approval was used that is missing'),
    );
  });
});
