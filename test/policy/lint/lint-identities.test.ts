// C98: careless mappings of identities.yaml.

import { expect, test } from '@jest/globals';
import { lintIdentities } from '../../../src/policy/lint/lint-identities.js';
import { loadPolicy } from '../../../src/policy/files/check-policy.js';
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
