// C98: which caller a mapping of identities.yaml makes of a token's claims.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { IdentitiesPolicy, IdentityMapping } from '../../../src/core/contract/policy/identities.js';
import { mapClaims, personOfToken } from '../../../src/features/identity/map-claims.js';

const ISSUER = 'https://login.example';
const policyOf = (...mappings: readonly Partial<IdentityMapping>[]): IdentitiesPolicy => ({
  version: 'v1',
  contract_version: 'v1',
  last_updated: '2026-11-25',
  issuers: [
    {
      issuer: ISSUER,
      mappings: mappings.map((mapping, index) => ({
        id: `m${index}`,
        actor: { name: 'anna' },
        role: 'CLERK',
        case: 'any',
        rights: ['act'],
        ...mapping,
      })),
    },
  ],
});
const map = (policy: IdentitiesPolicy, claims: JsonObject = {}, subject = 's1', issuer = ISSUER) =>
  mapClaims(policy, { issuer, subject, claims });
const idOf = (result: ReturnType<typeof map>) => ('caller' in result ? result.caller.mapping_id : result.problem);

describe('C98 conditions', () => {
  const byGroup = policyOf({ claims: { groups: ['counsel', 'partners'] } });
  test.each<[what: string, groups: JsonObject[string] | undefined, found: string]>([
    ['a list with the value', ['staff', 'counsel'], 'm0'],
    ['the value itself', 'partners', 'm0'],
    ['a list without it', ['staff'], 'unmapped'],
    ['an empty list', [], 'unmapped'],
    ['a longer text', 'counsel2', 'unmapped'],
    ['a list in a list', [['counsel']], 'unmapped'],
    ['an object', { counsel: true }, 'unmapped'],
    ['null', null, 'unmapped'],
    ['no claim', undefined, 'unmapped'],
  ])('C98 %s', (_what, groups, found) => {
    expect(idOf(map(byGroup, groups === undefined ? {} : { groups }))).toBe(found);
  });

  test('C98 every claim must match, and values have types', () => {
    const policy = policyOf({ claims: { email_verified: [true], level: [3] } });
    expect(idOf(map(policy, { email_verified: true, level: 3 }))).toBe('m0');
    expect(idOf(map(policy, { email_verified: true }))).toBe('unmapped');
    expect(idOf(map(policy, { email_verified: 'true', level: 3 }))).toBe('unmapped');
    expect(idOf(map(policy, { email_verified: true, level: '3' }))).toBe('unmapped');
  });

  test('C98 a name that every object has is not a claim', () => {
    const policy = policyOf({ actor: { claim: 'constructor' } });
    expect(idOf(map(policy))).toBe('claim_missing');
    expect(idOf(map(policyOf({ claims: { toString: ['x'] } })))).toBe('unmapped');
  });

  test('C98 subjects are compared exactly, and only within their issuer', () => {
    const policy = policyOf({ subjects: ['s1'] });
    expect(idOf(map(policy))).toBe('m0');
    expect(idOf(map(policy, {}, 'S1'))).toBe('unmapped');
    expect(idOf(map(policy, {}, 's1', `${ISSUER}/`))).toBe('unmapped');
    expect(idOf(map(policy, {}, 's1', 'https://other.example'))).toBe('unmapped');
  });

  test('C98 the first mapping that matches counts, even if it fails', () => {
    const policy = policyOf({ claims: { a: ['x'] }, actor: { claim: 'name' } }, { claims: { a: ['x'] } });
    expect(idOf(map(policy, { a: 'x', name: 'Anna' }))).toBe('m0');
    expect(idOf(map(policy, { a: 'x' }))).toBe('claim_missing');
  });
});

describe('C98 the caller', () => {
  test('C98 has names, case and rights from the mapping and its claims', () => {
    const policy = policyOf({
      actor: { claim: 'name' },
      person: { claim: 'employee' },
      case: { claim: 'case_id' },
      rights: ['act'],
    });
    expect(map(policy, { name: 'Anna', employee: 'e-17', case_id: 'case-0001' })).toEqual({
      caller: {
        mapping_id: 'm0',
        actor: 'Anna',
        person: 'e-17',
        role: 'CLERK',
        case: 'case-0001',
        rights: new Set(['act']),
      },
    });
    expect(map(policy, { name: 'Anna', employee: 'e-17' })).toEqual({ problem: 'claim_missing' });
    expect(map(policy, { name: 'Anna', employee: 'e-17', case_id: '../x' })).toEqual({ problem: 'claim_missing' });
    expect(map(policy, { name: 'Anna', employee: 17, case_id: 'case-0001' })).toEqual({ problem: 'claim_missing' });
  });

  test('C98 never has a right that reaches all cases together with one case', () => {
    const result = map(policyOf({ case: 'case-0001', rights: ['observe', 'sessions', 'act'] }));
    expect(result).toMatchObject({ caller: { case: 'case-0001', rights: new Set(['act']) } });
  });

  test('C98 the person behind an actor of the token book is listed by name', () => {
    const policy = { ...policyOf({}), tokens: [{ actor: 'anna-laptop', person: 'Anna Berg' }] };
    expect(personOfToken(policy, 'anna-laptop')).toBe('Anna Berg');
    expect(personOfToken(policy, 'anna')).toBeNull();
    expect(personOfToken(policyOf({}), 'anna')).toBeNull();
  });
});
