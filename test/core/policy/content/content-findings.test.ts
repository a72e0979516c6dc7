// S4-73, C92: what a finding in a promoted record counts as.

import { expect, test } from '@jest/globals';
import { FINDING_KINDS } from '../../../../src/core/contract/policy/content-checks.js';
import { findingFlag, withFindings } from '../../../../src/core/policy/content/content-findings.js';
import { bareLane } from '../bare-policy.js';

test.each([
  ['person_name', 'client_identity'],
  ['birth_date', 'client_identity'],
  ['email', 'client_identity'],
  ['phone', 'client_identity'],
  ['account_number', 'client_identity'],
  ['document_number', 'client_identity'],
  ['case_reference', 'client_identity'],
  ['privilege_mark', 'privileged_notes'],
] as const)('S4-73 a finding %s counts as %s, unless the lane permits it', (kind, flag) => {
  const recorded = ['other', `found:${kind}`];
  expect(findingFlag(kind)).toBe(`found:${kind}`);
  const permits = FINDING_KINDS.filter((other) => other !== kind);
  for (const lane of [
    undefined,
    bareLane(),
    bareLane({ content_checks: {} }),
    bareLane({ content_checks: { permits } }),
  ])
    expect(withFindings(recorded, lane)).toEqual([...recorded, flag]);
  expect(withFindings(recorded, bareLane({ content_checks: { permits: [kind] } }))).toEqual(recorded);
});

test('S4-73 each flag is there once, and recorded flags stay', () => {
  expect(withFindings([], undefined)).toEqual([]);
  expect(withFindings(['found:email', 'found:phone', 'client_identity'], undefined)).toEqual([
    'found:email',
    'found:phone',
    'client_identity',
  ]);
  expect(withFindings(['email', 'found:other'], undefined)).toEqual(['email', 'found:other']);
});
