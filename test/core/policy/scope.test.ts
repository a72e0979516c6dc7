// S4-30, S4-34: where the value of a required scope field comes from.

import { expect, test } from '@jest/globals';
import type { RunContext } from '../../../src/core/contract/run/run-context.js';
import { findBrokenScopeRule } from '../../../src/core/policy/authorize-run.js';
import { RUN } from '../../fixtures/privileged.js';
import { bareLane } from './bare-policy.js';

const judge = (field: string, run: Partial<RunContext>): string | null =>
  findBrokenScopeRule({ ...RUN, ...run }, bareLane({ scope: { requires: [field], prohibits: [] } }));

test.each([
  ['coa_version', { coa: '1' }],
  ['tags_version', { tags: '1' }],
  ['entities_version', { entities: '1' }],
])('S4-30 the field %s has the version of the tree, if that is pinned', (field, taxonomy_versions) => {
  expect(judge(field, { taxonomy_versions })).toBeNull();
  expect(judge(field, { taxonomy_versions, scope: { [field]: '1' } })).toBeNull();
  expect(judge(field, { taxonomy_versions, scope: { [field]: '2' } })).toBe(`scope.mismatch.${field}`);
  expect(judge(field, { taxonomy_versions: {}, scope: { [field]: '2' } })).toBeNull();
  expect(judge(field, { taxonomy_versions: null, scope: { [field]: '2' } })).toBeNull();
  expect(judge(field, { taxonomy_versions: null })).toBe(`scope.missing.${field}`);
});

test('S4-30 another field has the given value', () => {
  const taxonomy_versions = { coa: '1' };
  expect(judge('export_reason', { taxonomy_versions, scope: { export_reason: 'discovery' } })).toBeNull();
  expect(judge('export_reason', { taxonomy_versions })).toBe('scope.missing.export_reason');
  expect(judge('coa', { taxonomy_versions })).toBe('scope.missing.coa');
});

test('S4-34 a rule names at most 100 characters of a field', () => {
  expect(judge('f'.repeat(101), {})).toBe(`scope.missing.${'f'.repeat(100)}`);
});
