// C84: when an export may contain content that lanes withhold.

import { describe, expect, test } from '@jest/globals';
import type { ApprovalRule } from '../../../../src/core/contract/run/approval.js';
import type { Lane } from '../../../../src/core/contract/policy/lanes.js';
import {
  EXPORTABLE_CONTENT,
  findBrokenExportRule,
  hasWithholdingLane,
  WITHHELD_CONTENT,
  withheldFlags,
} from '../../../../src/core/policy/authorize-run.js';
import { bareLane } from '../bare-policy.js';
import { DELIVERY } from '../../../fixtures/privileged.js';
import { shippedPolicy } from '../../../fixtures/shipped-policy.js';

describe('C84 the flags of an export', () => {
  test.each([
    ['no lane withholds content', [], []],
    ['the lane permits its content in exports', [true], ['exportable_withheld_content']],
    ['the lane does not', [false], ['withheld_content']],
    ['all lanes do', [true, true], ['exportable_withheld_content']],
    ['one of the lanes does not', [true, false, true], ['withheld_content']],
  ])('if %s', (_, lanes, flags) => {
    expect(withheldFlags(new Map(lanes.map((exports, n) => [`LANE_${n}`, exports])))).toEqual(flags);
  });
});

describe('C84 a policy has a lane that withholds content', () => {
  const lanes = (...changes: Partial<Lane>[]) => ({
    lanes: new Map(changes.map((change, n) => [`LANE_${n}`, bareLane(change)])),
  });

  test('if at least one of them does', () => {
    expect(hasWithholdingLane(lanes({}, { withholds_content: true }))).toBe(true);
    expect(hasWithholdingLane(lanes({}, { withholds_content: false }))).toBe(false);
    expect(hasWithholdingLane(lanes({}))).toBe(false);
    expect(hasWithholdingLane(lanes())).toBe(false);
  });
});

describe('C84 an export breaks', () => {
  const approval: ApprovalRule = { for: 'export', approver_roles: ['BOSS'], quorum: 1, expires_minutes: 1 };
  const policy = { ...shippedPolicy(), approvals: [approval] };
  const unapproved = { ...policy, approvals: [{ ...approval, for: 'promotion' }] };
  const withContent = (...artifact_flags: string[]) => ({ ...DELIVERY, artifact_flags });

  test('a rule with withheld content, approved or not', () => {
    for (const by of [policy, unapproved]) {
      expect(findBrokenExportRule(withContent(WITHHELD_CONTENT), by)).toBe('export.content_withheld');
      expect(findBrokenExportRule(withContent(EXPORTABLE_CONTENT, WITHHELD_CONTENT), by)).toBe(
        'export.content_withheld',
      );
    }
  });

  test('a rule with exportable content that needs no approval', () => {
    expect(findBrokenExportRule(withContent(EXPORTABLE_CONTENT), unapproved)).toBe('export.not_approved');
    expect(findBrokenExportRule(withContent(EXPORTABLE_CONTENT), policy)).toBeNull();
  });

  test('no rule without such content, or inside the platform', () => {
    expect(findBrokenExportRule(withContent('export_bundle'), unapproved)).toBeNull();
    const inside = { ...withContent(WITHHELD_CONTENT, EXPORTABLE_CONTENT), destination: 'platform' } as const;
    expect(findBrokenExportRule(inside, unapproved)).toBeNull();
  });
});
