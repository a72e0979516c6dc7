// C98: identities.yaml is parsed strictly, and every mistake is a finding with its line.

import { describe, expect, test } from '@jest/globals';
import { checkIdentities, loadIdentities } from '../../../src/home/policy/check-identities.js';
import { IDENTITY_RULES, type FindingRule } from '../../../src/core/policy/files/policy-finding.js';

const TEXT = `version: v1
contract_version: v1
last_updated: 2026-11-25
issuers:
  - issuer: https://login.example
    mappings:
      - id: counsel
        claims: { groups: [counsel] }
        actor: { claim: name }
        person: { claim: employee }
        role: CLERK
        case: any
        rights: [observe, approve]
tokens:
  - { actor: anna, person: Anna Berg }
`;
const ROLES = new Set(['CLERK']);
const check = (text: string) => checkIdentities({ path: 'identities.yaml', bytes: Buffer.from(text) }, ROLES);
const MAPPING = TEXT.slice(TEXT.indexOf('      - id'), TEXT.indexOf('tokens'));
const ISSUER = TEXT.slice(TEXT.indexOf('  - issuer'), TEXT.indexOf('tokens'));

const ROWS: readonly (readonly [rule: FindingRule, line: number, from: string, to: string])[] = [
  ['identity.duplicate_issuer', 14, 'tokens', `${ISSUER}tokens`],
  ['identity.duplicate_mapping', 14, 'tokens', `${MAPPING}tokens`],
  ['identity.duplicate_token', 16, 'person: Anna Berg }\n', 'person: Anna Berg }\n  - { actor: anna, person: Otto }\n'],
  ['identity.unknown_role', 11, 'CLERK', 'BOSS'],
  ['identity.cross_case_right', 13, 'case: any', 'case: case-0001'],
  ['identity.person_missing', 12, '        person: { claim: employee }\n', ''],
  ['version.mismatch', 1, 'version: v1', 'version: v2'],
  ['schema.unknown_key', 7, '        role: CLERK', '        role: CLERK\n        password: x'],
  ['schema.value', 5, 'https://login.example', 'https://login.example?x'],
  ['schema.missing_key', 7, '        case: any\n', ''],
  [
    'yaml.duplicate_key',
    9,
    '        actor: { claim: name }',
    '        actor: { claim: name }\n        actor: { name: Otto }',
  ],
];

describe('C98 a wrong file is refused, with the rule and the line', () => {
  test('C98 the file as it is here is right', () => {
    expect(check(TEXT).findings).toEqual([]);
    expect(check(TEXT).identities?.issuers[0]?.mappings[0]?.case).toBe('any');
  });

  test.each(ROWS)('C98 %s', (rule, line, from, to) => {
    expect(TEXT).toContain(from);
    const { findings, identities } = check(TEXT.replace(from, to));
    expect(identities).toBeNull();
    expect(findings.map((finding) => finding.rule)).toContain(rule);
    if (rule.startsWith('identity.')) expect(findings[0]).toMatchObject({ rule, line });
    expect(() => loadIdentities({ path: 'x', bytes: Buffer.from(TEXT.replace(from, to)) }, ROLES)).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID' }),
    );
  });

  test('C98 every rule has a row', () => {
    expect(new Set(ROWS.map(([rule]) => rule).filter((rule) => rule.startsWith('identity.')))).toEqual(
      new Set(IDENTITY_RULES),
    );
  });

  test('C98 without the roles next to it, roles are not checked', () => {
    const bytes = Buffer.from(TEXT.replace('CLERK', 'BOSS'));
    expect(checkIdentities({ path: 'identities.yaml', bytes }, null).findings).toEqual([]);
  });
});
