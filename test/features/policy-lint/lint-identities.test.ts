// C98: careless mappings of identities.yaml.

import { describe, expect, test } from '@jest/globals';
import { checkIdentities } from '../../../src/home/policy/check-identities.js';
import { lintIdentities } from '../../../src/features/policy-lint/lint-identities.js';
import { loadPolicy } from '../../../src/core/policy/files/check-policy.js';
import { shippedBytes } from '../../fixtures/shipped-policy.js';

const mappingOf = (lines: string): string => `version: v1
contract_version: v1
last_updated: 2026-11-25
issuers:
  - issuer: https://login.example
    mappings:
      - id: counsel
        ${lines.trim()}
        role: CLERK
        case: any
        rights: [approve]
`;
const SHIPPED = loadPolicy(shippedBytes());
const found = (lines: string, policy: typeof SHIPPED | null = null): readonly string[] =>
  lintIdentities({ path: 'identities.yaml', bytes: Buffer.from(mappingOf(lines)) }, policy).map(
    ({ line, severity, rule, message }) => `${line} ${severity} ${rule}: ${message}`,
  );

const CLAIMS = 'claims: { groups: [counsel] }\n        ';

test('C98 a mapping with a condition, an actor and a person that users cannot choose, is not careless', () => {
  expect(found(`${CLAIMS}actor: { claim: sub }\n        person: { claim: employee_number }`)).toEqual([]);
  expect(found('subjects: [s1]\n        actor: { name: anna }\n        person: { name: Anna Berg }')).toEqual([]);
});

test('C98 a mapping without a condition makes everyone that caller', () => {
  expect(found('actor: { name: anna }\n        person: { name: Anna Berg }')).toEqual([
    '7 error identity.matches_everyone: mapping "counsel" has no condition',
  ]);
});

test.each(['name', 'preferred_username', 'email'])('C98 users may change their %s', (claim) => {
  expect(found(`${CLAIMS}actor: { claim: ${claim} }\n        person: { claim: ${claim} }`)).toEqual([
    `9 error identity.changeable_claim: mapping "counsel" takes the actor from "${claim}", which users may change`,
    `10 error identity.changeable_claim: mapping "counsel" takes the person from "${claim}", which users may change`,
  ]);
});

test('C98 a policy with approvers of issuers whose approvals also take other votes', () => {
  const lines = `${CLAIMS}actor: { claim: sub }\n        person: { claim: sub }`;
  const warning = 'warning identity.unverified_votes: approvals of';
  expect(found(lines, SHIPPED)).toEqual([
    `4 ${warning} "promotion" also take votes that no issuer has authenticated`,
    `4 ${warning} "export" also take votes that no issuer has authenticated`,
  ]);
  const approvals = SHIPPED.approvals.map((rule) => ({ ...rule, identity: {} }));
  expect(found(lines, { ...SHIPPED, approvals })).toEqual([]);
});

describe('C98 two issuers that take the actor from a claim', () => {
  const issuer = (name: string, lines: string): string => `  - issuer: https://${name}.example
    mappings:
      - id: all
        ${lines.replaceAll('\n', '\n        ')}
        role: CLERK
        case: any
        rights: [act]
`;
  const sharedBy = (one: string, other: string): readonly string[] => {
    const head = mappingOf('').slice(0, mappingOf('').indexOf('  - issuer'));
    const bytes = Buffer.from(head + issuer('one', one) + issuer('two', other));
    const file = { path: 'identities.yaml', bytes };
    expect(checkIdentities(file, null).findings).toEqual([]);
    return lintIdentities(file, null).map(({ line, rule }) => `${line} ${rule}`);
  };
  const any = `claims: { groups: [counsel] }\nactor: { claim: sub }`;
  const only = (...subjects: string[]): string => `subjects: [${subjects.join()}]\nactor: { claim: sub }`;
  const numbered = (...values: string[]): string => `claims: { nr: [${values.join()}] }\nactor: { claim: nr }`;

  test.each([
    [any, any],
    [any, only('s1')],
    [only('s1', 's2'), only('s2')],
    [numbered('a'), only('a')],
    [numbered('a'), any],
  ])('can name the same actor: %j and %j', (one, other) => {
    expect(sharedBy(one, other)).toEqual(['17 identity.shared_actor']);
  });

  test.each([
    [only('s1'), only('s2')],
    [numbered('a'), numbered('b', 'c')],
    [any, `subjects: [s1]\nactor: { name: anna }`],
  ])('cannot: %j and %j', (one, other) => {
    expect(sharedBy(one, other)).toEqual([]);
  });
});
