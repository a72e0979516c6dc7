// D7: "Approve 2,000, execute 5,000: refused. Replayed, expired, by the requester, by an agent role, for another run:
// refused, each with its own cause." A table of causes, then random histories against a naive reference.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Check } from 'typebox/value';
import {
  ApprovalBallot,
  ApprovalBook,
  ApprovalRule,
  APPROVALS_MAX,
  BALLOT_DIGESTS_MAX,
} from '../../../src/core/contract/run/approval.js';
import type { Role } from '../../../src/core/contract/policy/roles.js';
import type { Actor } from '../../../src/core/contract/shapes.js';
import { InvariantError } from '../../../src/core/errors.js';
import {
  approvalDigest,
  approvalRuleFor,
  emptyBook,
  type ApprovalPolicy,
} from '../../../src/core/policy/policy-features.js';
import {
  APPROVAL_RULE_IDS,
  APPROVAL_RULES,
  APPROVAL_STATUS_RULES,
  type ApprovalRuleId,
} from '../../../src/core/contract/run/approval-rules.js';
import {
  consume,
  requestApproval,
  approvalStatus,
  countBallot,
} from '../../../src/features/approvals/approval-requests.js';
import { sized } from '../../fixtures/campaign.js';
import { personNamed } from '../../fixtures/person.js';

const RUN = 'run_approvals';
const OTHER_RUN = 'run_approvals.1';
const AGENT = 'agent_7';

const role = (role_id: string, kind: Role['class']): [string, Role] => [
  role_id,
  { role_id, description: role_id, class: kind, privileges: { lanes: [] } },
];
const policy: ApprovalPolicy = {
  approvals: [
    { for: 'PAY', approver_roles: ['PARTNER', 'ADMIN', 'HELPER', 'CLOCK'], quorum: 2, expires_minutes: 60 },
    { for: 'export', approver_roles: ['ADMIN'], quorum: 1, expires_minutes: 30 },
  ],
  roles: new Map([
    role('PARTNER', 'human'),
    role('ADMIN', 'human'),
    role('CLERK', 'human'),
    role('HELPER', 'agent'),
    role('CLOCK', 'system'),
  ]),
};
const PAY = approvalRuleFor(policy.approvals, 'PAY')!;
const EXPORT = approvalRuleFor(policy.approvals, 'export')!;

const minute = (minutes: number): string => new Date(Date.UTC(2026, 0, 5, 9, minutes)).toISOString();
const paying = (amount: number, run_id = RUN): string =>
  approvalDigest({ action: 'PAY', args: { amount }, case_id: 'case_1', run_id });
const TWO = paying(2_000);
const FIVE = paying(5_000);

const human = (actor_id: string): Actor => ({ actor_type: 'human', actor_id });
const bookWith = (...digests: string[]) =>
  digests.reduce(
    (book, digest) =>
      requestApproval(
        book,
        { digest, name: 'PAY', requested_by: AGENT, requester: personNamed(AGENT), at: minute(0) },
        PAY,
      ),
    emptyBook(RUN),
  );
const ballot = (
  actor: Actor | string,
  minutes: number,
  changed: Partial<ApprovalBallot> & { role_id?: string } = {},
): ApprovalBallot => {
  const { role_id = 'PARTNER', ...rest } = changed;
  const sender = typeof actor === 'string' ? human(actor) : actor;
  const approver = { actor: sender, person: personNamed(sender.actor_id), role_id };
  return { digests: [TWO], decision: 'approve', approver, at: minute(minutes), for_run: RUN, ...rest };
};
/** The book after ballots that must all count. */
const after = (book: ApprovalBook, ...ballots: ApprovalBallot[]) =>
  ballots.reduce((before, each) => {
    const { book: next, verdicts } = countBallot(before, each, policy);
    expect(verdicts.every(({ counted }) => counted)).toBe(true);
    return next;
  }, book);
/** The rules that judge a ballot; a rejected ballot leaves the book unchanged. */
const rulesOf = (book: ApprovalBook, given: ApprovalBallot, by = policy): readonly ApprovalRuleId[] => {
  const { book: next, verdicts } = countBallot(book, given, by);
  expect(verdicts.map(({ digest }) => digest)).toEqual(given.digests);
  if (!verdicts.some(({ counted }) => counted)) expect(next).toBe(book);
  return verdicts.map(({ rule_id }) => rule_id);
};
/** The others need persons: voter-identity.test.ts. */
const isByName = (rule: string): boolean => !/look_alike|person_un|not_verified|step_up/.test(rule);
const open = bookWith(TWO);
const granted = after(open, ballot('ada', 1), ballot('bob', 2));

describe('D7: the digest', () => {
  test('is the SHA-256 of the canonical request, in any order of its members', () => {
    const first = approvalDigest({ run_id: RUN, args: { b: [1, null], a: 'x' }, action: 'PAY', case_id: null });
    expect(first).toBe(approvalDigest({ action: 'PAY', case_id: null, args: { a: 'x', b: [1, null] }, run_id: RUN }));
    // echo -n '{"action":"PAY","args":{"a":"x","b":[1,null]},"case_id":null,"run_id":"run_approvals"}' | sha256sum
    expect(first).toBe('712998bad596be76392def0e9bd0033ef01137443f26029774a7e31b51da0173');
  });

  test('differs for another amount, action, case or run', () => {
    const request = { action: 'PAY', args: { amount: 2_000 }, case_id: 'case_1', run_id: RUN };
    const others = [
      { ...request, args: { amount: 5_000 } },
      { ...request, args: { amount: '2000' } },
      { ...request, args: {} },
      { ...request, action: 'export' },
      { ...request, case_id: 'case_2' },
      { ...request, case_id: null },
      { ...request, run_id: OTHER_RUN },
    ];
    const digests = [request, ...others].map(approvalDigest);
    expect(new Set(digests).size).toBe(digests.length);
  });

  test('rejects 5,000 after an approval of 2,000', () => {
    expect(approvalStatus(granted, TWO, minute(3), PAY)).toBe('granted');
    expect(approvalStatus(granted, FIVE, minute(3), PAY)).toBe('missing');
    const both = requestApproval(
      granted,
      { digest: FIVE, name: 'PAY', requested_by: AGENT, requester: personNamed(AGENT), at: minute(3) },
      PAY,
    );
    expect(approvalStatus(both, FIVE, minute(4), PAY)).toBe('open');
    expect(() => consume(both, FIVE, minute(4), PAY)).toThrow(InvariantError);
  });
});

// Rejected ballots: who, when, and by which rule. Every one of them leaves the book unchanged.
const agent: Actor = { actor_type: 'agent', actor_id: 'agent_8' };
const system: Actor = { actor_type: 'system', actor_id: 'engine' };
const once = after(open, ballot('ada', 1));
const no = after(open, ballot('ada', 1, { decision: 'reject' }));
const used = consume(granted, TWO, minute(3), PAY);
const REFUSED: readonly (readonly [ApprovalRuleId, string, ApprovalBook, ApprovalBallot])[] = [
  ['approval.by_agent', 'an agent in a human role', open, ballot(agent, 1)],
  ['approval.by_agent', 'a human in an agent role that the rule names', open, ballot('ada', 1, { role_id: 'HELPER' })],
  ['approval.by_agent', 'an agent in no role', open, ballot(agent, 1, { role_id: 'NOBODY' })],
  ['approval.by_agent', 'an agent that rejects', open, ballot(agent, 1, { decision: 'reject' })],
  ['approval.by_agent', 'the agent that asked', open, ballot({ ...agent, actor_id: AGENT }, 1)],
  ['approval.role_unknown', 'an unknown role', open, ballot('ada', 1, { role_id: 'NOBODY' })],
  ['approval.role_unknown', 'a name of every object', open, ballot('ada', 1, { role_id: 'constructor' })],
  ['approval.not_a_person', 'the system in a human role', open, ballot(system, 1)],
  ['approval.not_a_person', 'a system role that the rule names', open, ballot('ada', 1, { role_id: 'CLOCK' })],
  ['approval.other_run', 'a ballot for a child run', open, ballot('ada', 1, { for_run: OTHER_RUN })],
  [
    'approval.other_run',
    "another run's digest and run",
    open,
    ballot('ada', 1, { for_run: OTHER_RUN, digests: [paying(2_000, OTHER_RUN)] }),
  ],
  ['approval.unknown_digest', 'another amount', open, ballot('ada', 1, { digests: [FIVE] })],
  [
    'approval.unknown_digest',
    "another run's digest for this run",
    open,
    ballot('ada', 1, { digests: [paying(2_000, OTHER_RUN)] }),
  ],
  [
    'approval.role_not_allowed',
    'a human role that the rule does not list',
    open,
    ballot('ada', 1, { role_id: 'CLERK' }),
  ],
  ['approval.by_requester', 'the requester as a human', open, ballot(AGENT, 1)],
  ['approval.by_requester', 'the requester, spelt otherwise', open, ballot(' Ａgent\u200b_7', 1)],
  ['approval.by_requester', 'the requester who rejects', open, ballot(AGENT, 1, { decision: 'reject' })],
  ['approval.already_voted', 'the same person again', once, ballot('ada', 2)],
  ['approval.already_voted', 'the same person in another role', once, ballot('ada', 2, { role_id: 'ADMIN' })],
  ['approval.already_voted', 'the same person, spelt otherwise', once, ballot('ADA\u00ad ', 2)],
  ['approval.already_decided', 'one more than the quorum', granted, ballot('cleo', 3)],
  ['approval.already_decided', 'the same ballot again', granted, ballot('bob', 2)],
  ['approval.already_decided', 'an approval after a rejection', no, ballot('bob', 2)],
  ['approval.already_decided', 'a second rejection', no, ballot('bob', 2, { decision: 'reject' })],
  ['approval.expired', 'a request without an answer', open, ballot('ada', 60)],
  ['approval.expired', 'a vote after the first has run out', once, ballot('bob', 61)],
  ['approval.expired', 'a rejection of a request without an answer', open, ballot('ada', 60, { decision: 'reject' })],
  ['approval.expired', 'a vote at no time', open, ballot('ada', 1, { at: '2026-13-45T99:99:99.999Z' })],
  ['approval.consumed', 'the same ballot after the use', used, ballot('bob', 2)],
  ['approval.consumed', 'another person after the use', used, ballot('cleo', 4)],
  ['approval.consumed', 'a rejection after the use', used, ballot('cleo', 4, { decision: 'reject' })],
  ['approval.consumed', 'after the use and the time', used, ballot('cleo', 400)],
];

describe('D7: a rejected ballot has a reason', () => {
  test.each(REFUSED)('%s: %s', (rule_id, _, book, given) => {
    expect(rulesOf(book, given)).toEqual([rule_id]);
  });

  test('a subject without a rule has no approvers', () => {
    const bare = { ...policy, approvals: [EXPORT] };
    expect(rulesOf(open, ballot('ada', 1), bare)).toEqual(['approval.role_not_allowed']);
  });

  test('every rule has a text, and every rule is reached', () => {
    const reached = [
      ...REFUSED.map(([rule_id]) => rule_id),
      ...Object.values(APPROVAL_STATUS_RULES),
      ...rulesOf(open, ballot('ada', 1)),
    ];
    expect([...new Set(reached)].sort()).toEqual(APPROVAL_RULE_IDS.filter(isByName).sort());
    for (const sentence of Object.values(APPROVAL_RULES)) expect(sentence).toMatch(/^[A-Z].*\.$/);
  });
});

describe('D7: a quorum', () => {
  test('needs distinct people', () => {
    expect(rulesOf(open, ballot('ada', 1))).toEqual(['approval.accepted']);
    expect(approvalStatus(once, TWO, minute(1), PAY)).toBe('open');
    expect(rulesOf(once, ballot('bob', 2, { role_id: 'ADMIN' }))).toEqual(['approval.granted']);
    expect(granted.entries[0]).toMatchObject({ state: 'approved', approved_at: minute(2), expires_at: minute(61) });
  });

  test("one approver's rejection decides, until the approval is used", () => {
    for (const [book, who] of [
      [open, 'ada'],
      [once, 'bob'],
      [once, 'ada'],
      [granted, 'cleo'],
      [granted, 'ada'],
    ] as const) {
      const rejection = ballot(who, 5, { decision: 'reject' });
      expect(rulesOf(book, rejection)).toEqual(['approval.rejected']);
      const rejected = countBallot(book, rejection, policy).book;
      expect(rejected.entries[0]).toMatchObject({ state: 'rejected', approved_at: null });
      for (const when of [5, 500]) expect(approvalStatus(rejected, TWO, minute(when), PAY)).toBe('rejected');
    }
  });

  test('judges the digests of a batch one by one, in order', () => {
    const book = after(bookWith(TWO, FIVE), ballot('ada', 1), ballot('bob', 1, { digests: [FIVE] }));
    const digests = [paying(9), FIVE, TWO, FIVE];
    expect(rulesOf(book, ballot('ada', 2, { digests }))).toEqual([
      'approval.unknown_digest',
      'approval.granted',
      'approval.already_voted',
      'approval.already_decided',
    ]);
  });

  test('ballots and rules have limits', () => {
    const batch = (length: number) => ballot('ada', 1, { digests: Array.from({ length }, (_, n) => paying(n)) });
    expect([0, 1, BALLOT_DIGESTS_MAX, BALLOT_DIGESTS_MAX + 1].map((n) => Check(ApprovalBallot, batch(n)))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    const wrong = [
      { quorum: 0 },
      { quorum: 9 },
      { quorum: 1.5 },
      { expires_minutes: 0 },
      { expires_minutes: 525_601 },
      { approver_roles: [] },
      { approver_roles: Array.from({ length: 17 }, (_, n) => `R${n}`) },
      { for: 'deploy' },
      { for: 'promotion\n' },
      { anybody: true },
    ];
    expect(wrong.filter((change) => Check(ApprovalRule, { ...PAY, ...change }))).toEqual([]);
    expect([PAY, EXPORT, { ...PAY, for: 'promotion' }].every((rule) => Check(ApprovalRule, rule))).toBe(true);
  });
});

describe('D7: a missing answer is a denial', () => {
  test('a request that was never made is missing; one without votes expires', () => {
    expect(approvalStatus(emptyBook(RUN), TWO, minute(0), PAY)).toBe('missing');
    expect(approvalStatus(open, TWO, minute(59), PAY)).toBe('open');
    expect(approvalStatus(open, TWO, minute(60), PAY)).toBe('expired');
  });

  test('an approval expires after its earliest vote, even if the clock went back between the votes', () => {
    const back = after(open, ballot('ada', 30), ballot('bob', 10));
    for (const [book, end] of [
      [granted, 61],
      [back, 70],
    ] as const) {
      expect(approvalStatus(book, TWO, minute(end - 1), PAY)).toBe('granted');
      expect(approvalStatus(book, TWO, minute(end), PAY)).toBe('expired');
      expect(() => consume(book, TWO, minute(end), PAY)).toThrow(InvariantError);
    }
  });

  test('an invalid time counts as too late, and no request can begin with it', () => {
    expect(approvalStatus(granted, TWO, '', PAY)).toBe('expired');
    const asking = { digest: FIVE, name: 'PAY', requested_by: AGENT, requester: personNamed(AGENT), at: 'now' };
    expect(() => requestApproval(open, asking, PAY)).toThrow(InvariantError);
  });

  test('a time at the end of the calendar is still a valid timestamp', () => {
    const at = '9999-12-31T23:59:00.000Z';
    const book = requestApproval(
      emptyBook(RUN),
      { digest: TWO, name: 'PAY', requested_by: AGENT, requester: personNamed(AGENT), at },
      PAY,
    );
    expect(book.entries[0]!.expires_at).toBe('9999-12-31T23:59:59.999Z');
  });
});

describe('D7: an approval is used once', () => {
  test('and stays consumed, at any time and however often it is requested', () => {
    expect(approvalStatus(used, TWO, minute(4), PAY)).toBe('consumed');
    expect(() => consume(used, TWO, minute(4), PAY)).toThrow('an approval was used that is consumed');
    expect(asking(used, TWO, 4)).toBe(used);
    expect(asking(used, TWO, 4_000)).toBe(used);
  });

  test.each([
    ['missing', emptyBook(RUN)],
    ['open', open],
    ['open', once],
    ['rejected', no],
    ['consumed', used],
  ] as const)('an approval that is %s cannot be used', (found, book) => {
    expect(() => consume(book, TWO, minute(3), PAY)).toThrow(
      new InvariantError(`an approval was used that is ${found}`),
    );
  });

  test('it is evaluated again under the current rule', () => {
    const later = (change: Partial<ApprovalRule>) => approvalStatus(granted, TWO, minute(3), { ...PAY, ...change });
    expect(later({})).toBe('granted');
    expect(later({ quorum: 3 })).toBe('open');
    expect(later({ approver_roles: ['ADMIN'] })).toBe('open');
    expect(later({ approver_roles: [] })).toBe('open');
    expect(later({ for: 'export', quorum: 1 })).toBe('open');
  });

  test.each([
    ['the same person twice', ['ada', 'Ada']],
    ['the requester', ['ada', AGENT]],
  ])('illegitimate votes in the book do not count: %s', (_, people) => {
    const votes = people.map((actor_id) => ({
      actor_id,
      person: personNamed(actor_id),
      role_id: 'PARTNER',
      at: minute(1),
    }));
    const forged = { ...granted, entries: [{ ...granted.entries[0]!, votes }] };
    expect(approvalStatus(forged, TWO, minute(3), PAY)).toBe('open');
  });
});

const asking = (book: ApprovalBook, digest: string, minutes: number) =>
  requestApproval(
    book,
    { digest, name: 'PAY', requested_by: AGENT, requester: personNamed(AGENT), at: minute(minutes) },
    PAY,
  );

describe('D7: requesting', () => {
  test('again changes nothing while the request is live', () => {
    for (const book of [open, once, granted, no, used]) expect(asking(book, TWO, 5)).toBe(book);
  });

  test('again after expiry starts anew, without the votes', () => {
    for (const book of [open, once, granted]) {
      const anew = asking(book, TWO, 100);
      expect(anew.entries).toEqual([{ ...open.entries[0]!, requested_at: minute(100), expires_at: minute(160) }]);
    }
    expect(asking(no, TWO, 100)).toBe(no);
  });

  test('under the rule of another subject is a bug', () => {
    const newRequest = { digest: TWO, name: 'PAY', requested_by: AGENT, requester: personNamed(AGENT), at: minute(0) };
    expect(() => requestApproval(emptyBook(RUN), newRequest, EXPORT)).toThrow(InvariantError);
  });

  test('a full book accepts no new request, and drops only expired ones', () => {
    const full = bookWith(...Array.from({ length: APPROVALS_MAX }, (_, n) => paying(n)));
    expect(full.entries).toHaveLength(APPROVALS_MAX);
    expect(asking(full, FIVE, 59)).toBe(full);
    expect(approvalStatus(full, FIVE, minute(59), PAY)).toBe('missing');
    expect(asking(full, paying(7), 59)).toBe(full);

    const rejectedFirst = after(full, ballot('ada', 1, { decision: 'reject', digests: [paying(0)] }));
    const room = asking(rejectedFirst, FIVE, 60);
    expect(room.entries.map(({ digest }) => digest)).toEqual([
      paying(0),
      ...full.entries.slice(2).map(({ digest }) => digest),
      FIVE,
    ]);
    expect(approvalStatus(room, paying(0), minute(60), PAY)).toBe('rejected');
  });

  test('a full book of decided requests stays unchanged', () => {
    const full = bookWith(...Array.from({ length: APPROVALS_MAX }, (_, n) => paying(n)));
    const digests = full.entries.map(({ digest }) => digest);
    const no = after(full, ballot('ada', 1, { decision: 'reject', digests }));
    expect(asking(no, FIVE, 4_000)).toBe(no);
  });
});

// --- random histories ---------------------------------------------------------------------------------------------

const NAMES = {
  [TWO]: PAY,
  [FIVE]: PAY,
  [approvalDigest({ action: 'export', args: {}, case_id: null, run_id: RUN })]: EXPORT,
};
const DIGESTS = Object.keys(NAMES);
const PEOPLE = ['ada', 'bob', 'cleo', AGENT];

const anyDigest = fc.constantFrom(...DIGESTS);
const waiting = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 12 }), fc.constant(30));
/** Mostly valid approvers, so that histories progress; otherwise anyone. */
const anyApprover = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('human' as const),
      id: fc.constantFrom(...PEOPLE),
      role_id: fc.constantFrom('PARTNER', 'ADMIN'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('human' as const, 'agent' as const, 'system' as const),
      id: fc.constantFrom(...PEOPLE),
      role_id: fc.constantFrom('PARTNER', 'CLERK', 'HELPER', 'CLOCK', 'NOBODY'),
    }),
  },
);
const anyStep = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('ask' as const),
      wait: waiting,
      digest: anyDigest,
      by: fc.constantFrom(...PEOPLE),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('vote' as const),
      wait: waiting,
      digests: fc.array(anyDigest, { minLength: 1, maxLength: 3 }),
      yes: fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
      approver: anyApprover,
      for_run: fc.oneof({ weight: 9, arbitrary: fc.constant(RUN) }, { weight: 1, arbitrary: fc.constant(OTHER_RUN) }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('use' as const), wait: waiting, digest: anyDigest }) },
);
type Vote = Extract<typeof anyStep extends fc.Arbitrary<infer Step> ? Step : never, { type: 'vote' }>;

/** The reference: requests, ballots and uses as a list, with times in minutes, and nothing derived from it. */
class Reference {
  readonly asked = new Map<string, { by: string; at: number }>();
  readonly yes = new Map<string, Map<string, number>>();
  readonly no = new Set<string>();
  readonly used = new Set<string>();

  standing(digest: string, now: number): string {
    const asked = this.asked.get(digest);
    if (asked === undefined) return 'missing';
    if (this.used.has(digest)) return 'consumed';
    if (this.no.has(digest)) return 'rejected';
    const votes = [...(this.yes.get(digest)?.values() ?? [])];
    const begin = votes.length === 0 ? asked.at : Math.min(...votes);
    if (now >= begin + NAMES[digest]!.expires_minutes) return 'expired';
    return votes.length >= NAMES[digest]!.quorum ? 'granted' : 'open';
  }

  ask(digest: string, by: string, at: number): void {
    if (!['missing', 'expired'].includes(this.standing(digest, at))) return;
    this.asked.set(digest, { by, at });
    this.yes.set(digest, new Map());
  }

  vote(digest: string, { yes, approver: { kind, id, role_id }, for_run }: Vote, now: number): string {
    const kindOfRole = policy.roles.get(role_id)?.class;
    const found = this.standing(digest, now);
    if (kind === 'agent' || kindOfRole === 'agent') return 'by_agent';
    if (kindOfRole === undefined) return 'role_unknown';
    if (kind === 'system' || kindOfRole === 'system') return 'not_a_person';
    if (for_run !== RUN) return 'other_run';
    if (found === 'missing') return 'unknown_digest';
    if (!NAMES[digest]!.approver_roles.includes(role_id)) return 'role_not_allowed';
    if (this.asked.get(digest)!.by === id) return 'by_requester';
    if (found === 'consumed' || found === 'expired') return found;
    if (found === 'rejected' || (found === 'granted' && yes)) return 'already_decided';
    if (!yes) {
      this.no.add(digest);
      return 'rejected';
    }
    const votes = this.yes.get(digest)!;
    if (votes.has(id)) return 'already_voted';
    votes.set(id, now);
    return this.standing(digest, now) === 'granted' ? 'granted' : 'accepted';
  }
}

/** Whether the bare history allows it: enough approvals of this digest, for this run, recently enough. */
function mayBeGranted(history: readonly (readonly [number, Vote])[], digest: string, by: string, now: number): boolean {
  const { quorum, approver_roles, expires_minutes } = NAMES[digest]!;
  const people = history.filter(
    ([
      at,
      {
        digests,
        yes,
        approver: { kind, id, role_id },
        for_run,
      },
    ]) =>
      at > now - expires_minutes &&
      yes &&
      kind === 'human' &&
      id !== by &&
      for_run === RUN &&
      digests.includes(digest) &&
      approver_roles.includes(role_id) &&
      policy.roles.get(role_id)?.class === 'human',
  );
  return new Set(people.map(([, { approver }]) => approver.id)).size >= quorum;
}

describe('D7: random histories of requests, ballots, uses and time', () => {
  test('agree with the reference; nothing is granted without approvers, and nothing is used twice', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
        const reference = new Reference();
        const history: (readonly [number, Vote])[] = [];
        const uses = new Map<string, number>();
        let book = emptyBook(RUN);
        let now = 0;
        for (const step of steps) {
          now += step.wait;
          const at = minute(now);
          if (step.type === 'ask') {
            const { digest, by } = step;
            const rule = NAMES[digest]!;
            book = requestApproval(
              book,
              { digest, name: rule.for, requested_by: by, requester: personNamed(by), at },
              rule,
            );
            reference.ask(digest, by, now);
          } else if (step.type === 'vote') {
            const { digests, yes, approver, for_run } = step;
            const actor = { actor_type: approver.kind, actor_id: approver.id };
            const answer = { digests, decision: yes ? 'approve' : 'reject', at, for_run } as const;
            const judged = countBallot(
              book,
              { ...answer, approver: { actor, person: personNamed(approver.id), role_id: approver.role_id } },
              policy,
            );
            history.push([now, step]);
            const rules = judged.verdicts.map(({ rule_id }) => rule_id);
            expect(rules).toEqual(digests.map((digest) => `approval.${reference.vote(digest, step, now)}`));
            for (const rule_id of rules) seen.add(rule_id);
            book = judged.book;
          } else if (approvalStatus(book, step.digest, at, NAMES[step.digest]!) === 'granted') {
            book = consume(book, step.digest, at, NAMES[step.digest]!);
            reference.used.add(step.digest);
            uses.set(step.digest, (uses.get(step.digest) ?? 0) + 1);
          } else {
            expect(() => consume(book, step.digest, at, NAMES[step.digest]!)).toThrow(InvariantError);
          }
          for (const digest of DIGESTS) {
            const found = approvalStatus(book, digest, at, NAMES[digest]!);
            expect(found).toBe(reference.standing(digest, now));
            if (found !== 'granted') continue;
            expect(mayBeGranted(history, digest, reference.asked.get(digest)!.by, now)).toBe(true);
          }
          expect(Check(ApprovalBook, book)).toBe(true);
          expect(JSON.parse(JSON.stringify(book))).toEqual(book);
        }
        expect(Math.max(0, ...uses.values())).toBeLessThanOrEqual(1);
      }),
      { numRuns: sized(250, 1_000), seed: 20261122 },
    );
    // Random histories without such results would prove nothing.
    expect([...seen].sort()).toEqual(
      APPROVAL_RULE_IDS.filter(isByName)
        .filter((rule) => !/required|not_requested/.test(rule))
        .sort(),
    );
  });
});
