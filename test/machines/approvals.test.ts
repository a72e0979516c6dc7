// Goal: an effect that needs approval happens only if the right people approved exactly that effect, in time, and once
// (D7). Method: real trees, with votes of approvers and of everyone else.

import { describe, expect, test } from '@jest/globals';
import type { OverlayFact } from '../../src/core/contract/policy/overlay.js';
import { approvalDigest } from '../../src/core/policy/policy-features.js';
import { restoreTree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { ANNA, BERTA, GovernedTree, governedPolicy } from '../fixtures/governed.js';
import { AGENT, CASE, essence, ONE_FILE, proposal, TREE } from '../fixtures/tree.js';

const GO_ON = { actions: [['on_child_failure: fail', 'on_child_failure: continue']] } as const;
const asking = (subject: string, quorum = 1) =>
  governedPolicy(
    `approvals:\n  - { for: ${subject}, approver_roles: [ATTORNEY_ADMIN], quorum: ${quorum}, expires_minutes: 60 }\n`,
    GO_ON,
  );
const CALLS = asking('CALL_TOOL');
const HOUR = 3_600_000;
const OTHER_AGENT = `${TREE}.2`;

const charge = (d: GovernedTree, amount: number, run_id = AGENT) => d.call('billing.charge', { amount }, run_id);
const digestOf = (amount: number, run_id = AGENT): string =>
  approvalDigest({
    action: 'CALL_TOOL',
    args: { tool: 'billing.charge', input: { amount } },
    case_id: CASE,
    run_id,
  });
/** An agent that has requested approval for this charge. */
function requestCharge(amount: number, policies = CALLS, agents = 1): GovernedTree {
  const d = new GovernedTree(policies).working(agents);
  charge(d, amount);
  expect(d.digests).toEqual([digestOf(amount)]);
  return d;
}
const last = (d: GovernedTree) => d.traces.at(-1);
const denied = (rule_id: string) => ({ outcome: 'DENIED', cause: 'APPROVAL_REQUIRED', rule_id });
const ALLOWED = [{ kind: 'perform', effect: { action: 'CALL_TOOL' } }];
const approval = (d: GovernedTree, run_id = AGENT) => d.tree.approvals(run_id)?.entries[0];

describe('D7: a proposal that needs an approval', () => {
  test('is denied, names in the audit what to approve, and gets its response at once', () => {
    const d = requestCharge(2_000);
    expect(d.traces).toMatchObject([denied('approval.required')]);
    expect(d.commands).toEqual([]);
    expect(d.responses).toMatchObject([{ outcome: 'DENIED' }]);
    expect(JSON.stringify(d.responses)).not.toContain(digestOf(2_000));
    expect(d.audit(`${AGENT}.1`)[0]).toMatchObject({
      outcome: 'deny',
      request_hash_sha256: digestOf(2_000),
      authz: { rule_id: 'approval.required' },
    });
  });

  test('is executed once approved and proposed again; the decision names the consumed approval', () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    expect(d.votes).toEqual(['anna allow approval.granted']);
    expect(d.commands).toEqual([]);
    expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);
    expect(d.audit(`${AGENT}.2`)[0]).toMatchObject({ outcome: 'allow', request_hash_sha256: digestOf(2_000) });
  });

  test('consumes its approval with the intent, whatever the outcome', () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    expect(approval(d)?.state).toBe('approved');
    charge(d, 2_000);
    expect(approval(d)?.state).toBe('consumed');
    d.failed(`${AGENT}.2`, 'REFUSED');
    charge(d, 2_000);
    expect(last(d)).toMatchObject(denied('approval.consumed'));
  });

  test('needs no approval if policy requires it for another action', () => {
    const d = new GovernedTree(asking('WRITE_RECORD')).working();
    expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);
  });
});

describe('D7: rejected, each with its own cause, is', () => {
  test('another amount: approve 2,000, execute 5,000', () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    expect(charge(d, 5_000).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('approval.required'));
    expect(d.audit(`${AGENT}.2`)[0]?.request_hash_sha256).toBe(digestOf(5_000));
    expect(approval(d)?.state).toBe('approved');
  });

  test('a second use', () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    charge(d, 2_000);
    d.done(`${AGENT}.2`);
    expect(charge(d, 2_000).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('approval.consumed'));
    d.vote(digestOf(2_000));
    expect(d.votes.at(-1)).toBe('anna deny approval.consumed');
  });

  test('an expired approval, whose votes do not count for the next one', () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    expect(charge(d.wait(HOUR), 2_000).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('approval.expired'));
    expect(charge(d, 2_000).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('approval.required'));
    d.vote(digestOf(2_000));
    expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);
  });

  test('a late vote', () => {
    const d = requestCharge(2_000);
    d.wait(HOUR).vote(digestOf(2_000));
    expect(d.votes).toEqual(['anna deny approval.expired']);
  });

  test.each<[string, Parameters<GovernedTree['vote']>[1], string]>([
    [
      'the requester, as a person and however it is spelt',
      { approver: { ...ANNA, actor: { actor_type: 'human', actor_id: 'Tester ' } } },
      'Tester  deny approval.by_requester',
    ],
    [
      'an agent in the role of a person',
      { approver: { ...ANNA, actor: { actor_type: 'agent', actor_id: 'helper' } } },
      'helper deny approval.by_agent',
    ],
    [
      'a person in the role of an agent',
      { approver: { ...ANNA, role_id: 'CASE_AGENT' } },
      'anna deny approval.by_agent',
    ],
    [
      'the platform',
      { approver: { ...ANNA, actor: { actor_type: 'system', actor_id: 'cron' } } },
      'cron deny approval.not_a_person',
    ],
    ['a role that there is not', { approver: { ...ANNA, role_id: 'KING' } }, 'anna deny approval.role_unknown'],
    ['a vote of another run', { run_id: OTHER_AGENT }, 'anna deny approval.unknown_digest'],
    ['a vote for a request that was never made', { digests: ['e'.repeat(64)] }, 'anna deny approval.unknown_digest'],
  ])('%s', (_who, over, told) => {
    const d = requestCharge(2_000, CALLS, 2);
    expect(d.vote(digestOf(2_000), over).refused).toBe(false);
    expect(d.votes).toEqual([told]);
    expect(charge(d, 2_000).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('approval.required'));
    d.vote(digestOf(2_000));
    expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);
  });

  test('the same request of another run', () => {
    const d = requestCharge(2_000, CALLS, 2);
    d.vote(digestOf(2_000));
    expect(charge(d, 2_000, OTHER_AGENT).commands).toEqual([]);
    expect(last(d)).toMatchObject({ ...denied('approval.required'), run_id: OTHER_AGENT });
    expect(d.digests).toEqual([digestOf(2_000), digestOf(2_000, OTHER_AGENT)]);
    expect(new Set(d.digests).size).toBe(2);
  });

  test('a request that the overlay denies after its approval, which is not consumed', () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    d.overlay = { epoch: 1, rules: [{ rule_id: 'deny-1', reason: 'Stop.', tool: 'billing.charge' }] };
    expect(charge(d, 2_000).commands).toEqual([]);
    expect(last(d)).toMatchObject({ outcome: 'DENIED', cause: 'OVERLAY', rule_id: 'overlay.deny-1' });
    d.overlay = null;
    expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);
  });

  test('a rejected request, for the whole run, even after its approval', () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    d.vote(digestOf(2_000), { decision: 'reject', approver: BERTA });
    d.vote(digestOf(2_000));
    expect(d.votes).toEqual([
      'anna allow approval.granted',
      'berta deny approval.rejected',
      'anna deny approval.already_decided',
    ]);
    for (const ms of [0, HOUR]) {
      expect(charge(d.wait(ms), 2_000).commands).toEqual([]);
      expect(last(d)).toMatchObject(denied('approval.rejected'));
    }
  });
});

test('D7: one ballot answers several requests, each separately', () => {
  const d = requestCharge(1);
  charge(d, 2);
  const digests = [digestOf(1), 'e'.repeat(64), digestOf(2)];
  d.vote('', { digests });
  expect(d.votes).toEqual([
    'anna allow approval.granted',
    'anna deny approval.unknown_digest',
    'anna allow approval.granted',
  ]);
  expect(charge(d, 2).commands).toMatchObject(ALLOWED);
});

test('D7: a quorum of two needs two people', () => {
  const d = requestCharge(2_000, asking('CALL_TOOL', 2));
  d.vote(digestOf(2_000));
  d.vote(digestOf(2_000));
  d.vote(digestOf(2_000), { approver: { ...ANNA, actor: { actor_type: 'human', actor_id: 'ANNA' } } });
  expect(charge(d, 2_000).commands).toEqual([]);
  d.vote(digestOf(2_000), { approver: BERTA });
  expect(d.votes).toEqual([
    'anna allow approval.accepted',
    'anna deny approval.already_voted',
    'ANNA deny approval.already_voted',
    'berta allow approval.granted',
  ]);
  expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);
});

describe('D7: votes between a proposal and its decision', () => {
  const DELETE = { path: '/sandbox/a.txt' };
  const gathering = (): GovernedTree => {
    const d = new GovernedTree(asking('DELETE_FILE')).working(0);
    d.startAgent();
    d.act('DELETE_FILE', DELETE);
    return d;
  };

  test('a rejection counts: no effect of a rejected request follows', () => {
    const d = gathering();
    d.vote(d.digests[0]!);
    d.propose(proposal('DELETE_FILE', DELETE));
    d.vote(d.digests[0]!, { decision: 'reject', approver: BERTA });
    expect(d.facts(ONE_FILE).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('approval.rejected'));
  });

  test('an approval counts as well, and is consumed', () => {
    const d = gathering();
    d.propose(proposal('DELETE_FILE', DELETE));
    d.vote(d.digests[0]!);
    expect(d.facts(ONE_FILE).commands).toMatchObject([{ kind: 'perform' }]);
    expect(approval(d)?.state).toBe('consumed');
  });
});

test('D7: approvers may vote while the agent works', () => {
  const d = requestCharge(2_000);
  d.act('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1' } });
  expect(d.vote(digestOf(2_000)).refused).toBe(false);
  d.done(`${AGENT}.2`);
  expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);
});

describe('D7 S4-71 S4-78: a promotion that waits for two approvers', () => {
  const RUN = `${TREE}.2`;
  const waiting = (): GovernedTree => {
    const d = new GovernedTree(asking('promotion', 2)).working();
    d.promote();
    return d;
  };
  const vote = (d: GovernedTree, over: Parameters<GovernedTree['vote']>[1] = {}) =>
    d.vote(d.digests[0]!, { run_id: RUN, ...over });
  const stands = (d: GovernedTree) => ({ commands: d.commands, ended: d.endings[RUN], live: d.tree.isLive(RUN) });
  const STILL = { commands: [], ended: undefined, live: true };

  test('is created, and records what it waits for, and until when', () => {
    const d = waiting();
    expect(d.story(d.decisions.slice(-1))).toEqual([
      'input:start_run',
      `created:promotion@${RUN}`,
      `authz_decision:allow(approval.required)@${RUN}`,
    ]);
    expect(d.tree.timers).toMatchObject([{ run_id: RUN, at: '2026-01-01T01:00:03.000Z' }]);
    expect(d.tree.pendingHighRiskRuns).toMatchObject([{ run_id: RUN, run_kind: 'promotion' }]);
    expect(approval(d, RUN)).toMatchObject({ state: 'open', requested_by: 'governor' });
    expect(stands(d)).toEqual(STILL);
  });

  test('runs once both have approved, with their names in the effect, and consumes the approval', () => {
    const d = waiting();
    expect(d.story([vote(d)])).toEqual(['input:vote', `authz_decision:allow(approval.accepted)@${RUN}`]);
    expect(stands(d)).toEqual(STILL);
    expect(d.story([vote(d, { approver: BERTA })])).toEqual([
      'input:vote',
      `authz_decision:allow(approval.granted)@${RUN}`,
      `authz_decision:allow(lane.granted)@${RUN}`,
      `system:success(running)@${RUN}`,
      `created:db_write@${RUN}.1`,
      `authz_decision:allow(lane.granted)@${RUN}.1`,
      `system:success(running)@${RUN}.1`,
    ]);
    const approvals = [
      { approved_by: 'anna', role_id: 'ATTORNEY_ADMIN' },
      { approved_by: 'berta', role_id: 'ATTORNEY_ADMIN' },
    ];
    expect(d.commands).toMatchObject([{ kind: 'perform', run_id: `${RUN}.1`, effect: { args: { approvals } } }]);
    expect(approval(d, RUN)?.state).toBe('consumed');
    d.done(`${RUN}.1`);
    expect(d.endings[RUN]).toBe('completed:completed');
    expect(d.tree.pendingHighRiskRuns).toEqual([]);
    expect(vote(d).refused).toBe(true);
  });

  test('D16: can be restored from a snapshot while it waits', () => {
    const d = waiting();
    vote(d);
    const snapshot = JSON.parse(JSON.stringify(d.tree.snapshot())) as TreeSnapshot;
    const again = restoreTree(snapshot, d.inputs[0]!.materials);
    expect(again.approvals(RUN)).toEqual(d.tree.approvals(RUN));
    expect(again.pendingHighRiskRuns).toEqual(d.tree.pendingHighRiskRuns);
    expect(again.timers).toEqual(d.tree.timers);
    const approved = vote(d, { approver: BERTA });
    expect(approved.commands).toHaveLength(1);
    expect(essence(again.decide(d.inputs.at(-1)!))).toBe(essence(approved));
  });

  test.each<[string, (d: GovernedTree) => unknown, string]>([
    ['rejected', (d) => (vote(d), vote(d, { decision: 'reject', approver: BERTA })), 'denied:approval.rejected'],
    ['not answered in time', (d) => d.wait(HOUR).wake(RUN), 'denied:approval.expired'],
    ['answered too late', (d) => (d.wait(HOUR), vote(d)), 'denied:approval.expired'],
    ['cancelled', (d) => d.cancel(RUN), 'cancelled:by_caller'],
    ['cancelled with its tree', (d) => d.cancel(TREE), 'cancelled:by_caller'],
    [
      'denied by the overlay at the last vote',
      (d) => {
        vote(d);
        d.overlay = { epoch: 1, rules: [{ rule_id: 'deny-1', reason: 'Stop.', table: 'shared_playbooks' }] };
        vote(d, { approver: BERTA });
      },
      'denied:overlay.deny-1',
    ],
  ])('executes nothing when it is %s', (_what, go, ended) => {
    const d = waiting();
    go(d);
    expect(d.endings[RUN]).toBe(ended);
    expect(d.commands).toEqual([]);
    expect(d.tree.pendingHighRiskRuns).toEqual([]);
    expect(d.tree.timers).toEqual([]);
    expect(d.audit(RUN).map(({ outcome_reason }) => outcome_reason)).not.toContain('running');
  });

  test.each<[string, (d: GovernedTree) => unknown]>([
    ['one person twice', (d) => (vote(d), vote(d))],
    [
      'its requester',
      (d) => (vote(d), vote(d, { approver: { ...ANNA, actor: { actor_type: 'human', actor_id: 'governor' } } })),
    ],
    [
      'an agent',
      (d) => (vote(d), vote(d, { approver: { ...BERTA, actor: { actor_type: 'agent', actor_id: 'berta' } } })),
    ],
    ['a timer that rings early', (d) => (vote(d), d.wait(HOUR / 2).wake(RUN))],
    [
      'answers to something else',
      (d) => (vote(d, { digests: ['e'.repeat(64)] }), vote(d, { digests: ['f'.repeat(64)] })),
    ],
  ])('still waits after %s', (_what, go) => {
    const d = waiting();
    go(d);
    expect(stands(d)).toEqual(STILL);
    vote(d, { approver: BERTA });
    vote(d);
    expect(d.tree.pending).toMatchObject([{ kind: 'perform', run_id: `${RUN}.1` }]);
  });

  test('S4-38: is denied at once, without a request for approval, if policy denies it', () => {
    const d = new GovernedTree(asking('promotion', 2)).working();
    d.promote({ role_id: 'CASE_AGENT' });
    expect(d.endings[RUN]).toBe('denied:role.lane_not_granted');
    expect(d.tree.approvals(RUN)).toBeNull();
  });

  test('runs at once if policy requires no approval', () => {
    const d = new GovernedTree().working();
    expect(d.promote().commands).toMatchObject([{ kind: 'perform', run_id: `${RUN}.1` }]);
  });

  test('C50: accepts no other input', () => {
    const d = waiting();
    expect(d.done(RUN).refused).toBe(true);
    expect(d.send({ kind: 'end', run_id: RUN }).refused).toBe(true);
    expect(d.send({ kind: 'interrupt', run_id: RUN }).refused).toBe(true);
    expect(stands(d)).toEqual(STILL);
  });
});

describe('D1 D7: votes of an approver whom the overlay suspends later no longer count', () => {
  const suspended: OverlayFact = {
    epoch: 2,
    rules: [{ rule_id: 'deny-2', reason: 'Her key was stolen.', actor_id: 'anna' }],
  };
  const LIFTED: OverlayFact = { epoch: 3, rules: [] };

  test("an approved action is denied, executed after another approver's vote, and by the old vote once the suspension is lifted", () => {
    const d = requestCharge(2_000);
    d.vote(digestOf(2_000));
    d.overlay = suspended;
    expect(charge(d, 2_000).commands).toEqual([]);
    expect(last(d)).toMatchObject(denied('approval.required'));
    d.overlay = LIFTED;
    expect(charge(d, 2_000).commands).toMatchObject(ALLOWED);

    const e = requestCharge(2_000);
    e.vote(digestOf(2_000));
    e.overlay = suspended;
    charge(e, 2_000);
    e.vote(digestOf(2_000), { approver: BERTA });
    expect(e.votes).toEqual(['anna allow approval.granted', 'berta allow approval.granted']);
    expect(charge(e, 2_000).commands).toMatchObject(ALLOWED);
    expect(approval(e)).toMatchObject({ state: 'consumed', votes: [{ actor_id: 'berta' }] });
  });

  test('a promotion lacks the quorum that it would have had with that vote', () => {
    const d = new GovernedTree(asking('promotion', 2)).working();
    d.promote();
    const run_id = `${TREE}.2`;
    const [digest = ''] = d.digests;
    d.vote(digest, { run_id });
    d.overlay = suspended;
    d.vote(digest, { run_id, approver: BERTA });
    expect(d.votes.at(-1)).toBe('berta allow approval.accepted');
    expect(d.commands).toEqual([]);
    d.vote(digest, { run_id, approver: { ...ANNA, actor: { actor_type: 'human', actor_id: 'carl' } } });
    expect(d.commands).toMatchObject([{ kind: 'perform' }]);
    expect(JSON.stringify(d.commands)).not.toContain('anna');
  });
});
