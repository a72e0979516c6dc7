// C87: one person has one vote, and none on their own request, in any spelling of the name.

import { describe, expect, test } from '@jest/globals';
import type { ApprovalBallot, ApprovalEntry } from '../../../src/core/contract/run/approval.js';
import type { Person } from '../../../src/core/contract/person.js';
import { personOf } from '../../../src/names/person-name.js';
import { CONFUSABLES } from '../../../src/names/tables/tables.js';
import { emptyBook, type ApprovalPolicy } from '../../../src/core/policy/policy-features.js';
import { requestApproval, approvalStatus, countBallot } from '../../../src/features/approvals/approval-requests.js';
import { checkIdentity } from '../../../src/features/approvals/voter-identity.js';
import type { OidcIdentity } from '../../../src/core/contract/run/verified-identity.js';
import { sampled } from '../../names/sampled.js';
import { pairsOf } from '../../names/table-pairs.js';

const RULE = { for: 'export', approver_roles: ['PARTNER'], quorum: 2, expires_minutes: 60 };
const DIGEST = 'd'.repeat(64);
const AT = '2026-01-05T09:00:00.000Z';
const policy: ApprovalPolicy = {
  approvals: [RULE],
  roles: new Map([
    ['PARTNER', { role_id: 'PARTNER', description: 'A person.', class: 'human', privileges: { lanes: [] } }],
  ]),
};

function person(name: string): Person {
  const found = personOf(name);
  if (typeof found === 'string') throw new Error(`${name}: ${found}`);
  return found;
}
const bookRequestedBy = (by: string, requester: Person | undefined = person(by)) =>
  requestApproval(emptyBook('run_x.1'), { digest: DIGEST, name: 'export', requested_by: by, requester, at: AT }, RULE);
const ballot = (name: string, of: Person = person(name)): ApprovalBallot => ({
  digests: [DIGEST],
  decision: 'approve',
  approver: {
    actor: { actor_type: 'human', actor_id: name },
    role_id: 'PARTNER',
    person: of,
  },
  at: AT,
  for_run: 'run_x.1',
});
/** The rules that judge one voter after the other, and whether the request is granted then. */
function voted(requester: string, ...names: readonly string[]): readonly string[] {
  let book = bookRequestedBy(requester);
  const rules = names.map((name) => {
    const { book: next, verdicts } = countBallot(book, ballot(name), policy);
    book = next;
    return verdicts[0]?.rule_id ?? '';
  });
  return [...rules, approvalStatus(book, DIGEST, AT, RULE)];
}

describe('S4-78 a quorum of two', () => {
  test('needs two people', () => {
    expect(voted('governor', 'anna', 'berta')).toEqual(['approval.accepted', 'approval.granted', 'granted']);
  });

  test.each([
    ['a composed and a decomposed letter', 'Ren\u00e9e', 'Rene\u0301e', 'approval.already_voted'],
    ['a joiner inside of a letter', 'Ren\u00e9e', 'Rene\u034f\u0301e', 'approval.already_voted'],
    ['a Cyrillic letter', 'anna', '\u0430nna', 'approval.look_alike'],
    ['another hyphen', 'anna-maria', 'anna\u2010maria', 'approval.look_alike'],
    ['a capital i for an l', 'paul', 'pauI', 'approval.look_alike'],
    ['a small l for a capital i, in another case', 'paul ida', 'PAUL lDA', 'approval.look_alike'],
  ])('does not accept one person twice by %s', (_, name, other, rule) => {
    expect(voted('governor', name, other)).toEqual(['approval.accepted', rule, 'open']);
    expect(voted('governor', other, name)).toEqual(['approval.accepted', rule, 'open']);
  });

  test('a look-alike of the requester is not an approver', () => {
    expect(voted('anna-maria', 'anna\u2011maria', 'berta')).toEqual([
      'approval.look_alike',
      'approval.accepted',
      'open',
    ]);
    expect(voted('anna', 'ANNA\u200b', 'berta')).toEqual(['approval.by_requester', 'approval.accepted', 'open']);
  });

  test('a voter or a requester without a person, or of other tables, does not count', () => {
    const unknown = [{ rule_id: 'approval.person_unknown', counted: false }];
    const later = { ...person('berta'), tables: 'unicode-17.0.0' };
    expect(countBallot(bookRequestedBy('anna'), ballot('berta', later), policy).verdicts).toMatchObject(unknown);
    const bare = ballot('berta');
    const nameless: ApprovalBallot = { ...bare, approver: { actor: bare.approver.actor, role_id: 'PARTNER' } };
    expect(countBallot(bookRequestedBy('anna'), nameless, policy).verdicts).toMatchObject(unknown);
    const [entry] = bookRequestedBy('anna').entries;
    const older: ApprovalEntry = { ...(entry as ApprovalEntry) };
    delete older.requester;
    expect(countBallot({ run_id: 'run_x.1', entries: [older] }, ballot('berta'), policy).verdicts).toMatchObject(
      unknown,
    );
  });

  test('illegitimate votes do not count', () => {
    const [entry] = bookRequestedBy('governor').entries as [ApprovalEntry];
    const votes = ['anna', '\u0430nna', 'ANNA'].map((name) => ({
      actor_id: name,
      role_id: 'PARTNER',
      at: AT,
      person: person(name),
    }));
    const granted = (of: typeof votes) =>
      approvalStatus(
        { run_id: 'run_x.1', entries: [{ ...entry, votes: of, state: 'approved', approved_at: AT }] },
        DIGEST,
        AT,
        RULE,
      );
    expect(granted(votes)).toBe('open');
    expect(granted([...votes, { actor_id: 'berta', role_id: 'PARTNER', at: AT, person: person('berta') }])).toBe(
      'granted',
    );
  });

  test('no character that UTS #39 maps turns one person into two, or the requester into an approver', () => {
    const missed = sampled(pairsOf(CONFUSABLES)).filter(([source, target]) => {
      const [one, other] = [`An${source}na`, `An${target}na`];
      return voted('governor', one, other)[2] === 'granted' || voted(one, other)[0] === 'approval.accepted';
    });
    expect(missed).toEqual([]);
  });
});

describe('C98 the authentication that a rule asks for', () => {
  const identity: OidcIdentity = {
    source: 'oidc',
    issuer: 'https://login.example',
    subject_sha256: 'a'.repeat(64),
    mapped: true,
    mapping_id: 'counsel',
    policy_sha256: 'b'.repeat(64),
    algorithm: 'ES256',
    kid_sha256: 'c'.repeat(64),
    key_sha256: 'd'.repeat(64),
    acr: 'urn:mfa',
    auth_time: AT,
  };
  const later = (ms: number): string => new Date(Date.parse(AT) + ms).toISOString();

  test('C98 no rule asks for nothing, and every rule asks for an issuer', () => {
    expect(checkIdentity(undefined, undefined, AT)).toBeNull();
    expect(checkIdentity({}, undefined, AT)).toBe('approval.not_verified');
    expect(checkIdentity({}, { source: 'token', token_id: 'tok_abc', mapped: true }, AT)).toBe('approval.not_verified');
    expect(checkIdentity({}, identity, AT)).toBeNull();
  });

  test('C98 the age of an authentication: at the limit and one past it, and ahead of the clock', () => {
    const required = { max_age_seconds: 300 };
    expect(checkIdentity(required, identity, later(300_000))).toBeNull();
    expect(checkIdentity(required, identity, later(300_001))).toBe('approval.step_up_required');
    expect(checkIdentity(required, identity, later(-60_000))).toBeNull();
    expect(checkIdentity(required, identity, later(-60_001))).toBe('approval.step_up_required');
    expect(checkIdentity(required, { ...identity, auth_time: null }, AT)).toBe('approval.step_up_required');
  });

  test('C98 a vote that no longer satisfies the rule does not help the quorum', () => {
    const asking = { ...RULE, quorum: 1, identity: { acr: ['urn:mfa'] } };
    const request = { digest: DIGEST, name: 'export', requested_by: 'governor', requester: person('governor'), at: AT };
    const given = ballot('anna');
    const verified = { ...given, approver: { ...given.approver, identity } };
    const { book } = countBallot(requestApproval(emptyBook('run_x.1'), request, asking), verified, {
      ...policy,
      approvals: [asking],
    });
    expect(approvalStatus(book, DIGEST, AT, asking)).toBe('granted');
    expect(approvalStatus(book, DIGEST, AT, { ...asking, identity: { acr: ['urn:card'] } })).toBe('open');
  });
});
