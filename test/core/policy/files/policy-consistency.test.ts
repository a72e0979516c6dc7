// The places and texts of the contradictions in a policy.

import { describe, expect, test } from '@jest/globals';
import type { ActionsPolicy } from '../../../../src/core/contract/policy/actions-policy.js';
import type { ApprovalRule } from '../../../../src/core/contract/run/approval.js';
import { findInconsistencies } from '../../../../src/core/policy/files/policy-consistency.js';
import { BARE_ACTIONS, bareLane, bareRole, CATALOGUE, partsWith } from '../bare-policy.js';

const find = (changes: Parameters<typeof partsWith>[0]): readonly string[] =>
  findInconsistencies(partsWith(changes), CATALOGUE).map(
    ({ name, pointer, rule, message }) => `${name} ${pointer} ${rule}: ${message}`,
  );
const called = (...roles: string[]) => ({ allowed_callers: { roles } });
const granted = (...lanes: string[]) => ({ privileges: { lanes } });
const approval = (subject: string, ...approver_roles: string[]): ApprovalRule => ({
  for: subject,
  approver_roles,
  quorum: 1,
  expires_minutes: 1,
});

test('a policy without contradictions has none', () => {
  expect(find({})).toEqual([]);
  expect(find({ lanes: [bareLane(called('WORKER'))], roles: [bareRole(granted('WORK'))] })).toEqual([]);
});

describe('C55 lanes and roles', () => {
  test('are named once', () => {
    expect(find({ lanes: [bareLane(), bareLane()], roles: [bareRole(), bareRole()] })).toEqual([
      'lanes /lanes/1 lane.duplicate_id: lane "WORK" is there twice',
      'roles /roles/1 role.duplicate_id: role "WORKER" is there twice',
    ]);
  });

  test('name each other', () => {
    expect(find({ lanes: [bareLane(called('WORKER'))] })).toEqual([
      'lanes /lanes/0/allowed_callers/roles/0 pair.one_sided: ' +
        'lane "WORK" names role "WORKER", which does not list the lane',
    ]);
    expect(find({ roles: [bareRole(granted('WORK'))] })).toEqual([
      'roles /roles/0/privileges/lanes/0 pair.one_sided: role "WORKER" lists lane "WORK", which does not name the role',
    ]);
  });

  test('exist', () => {
    const lanes = [bareLane(), bareLane({ lane_id: 'NEXT', ...called('WORKER', 'GHOST') })];
    const roles = [bareRole({ role_id: 'OTHER' }), bareRole(granted('NEXT', 'NOWHERE'))];
    expect(find({ lanes, roles })).toEqual([
      'lanes /lanes/1/allowed_callers/roles/1 lane.unknown_role: ' +
        'lane "NEXT" names role "GHOST", which is not in the roles',
      'roles /roles/1/privileges/lanes/1 role.unknown_lane: ' +
        'role "WORKER" lists lane "NOWHERE", which is not in the lanes',
    ]);
  });

  test('C56 have prohibitions that the platform decides', () => {
    const scope = { requires: [], prohibits: ['external_export', 'silent_changes'] };
    expect(find({ lanes: [bareLane({ scope })] })).toEqual([
      'lanes /lanes/0/scope/prohibits/1 prohibition.unknown: ' +
        'lane "WORK" has the prohibition "silent_changes", which nothing decides',
    ]);
  });
});

describe('C84 a lane with exports_content', () => {
  const at = 'lanes /lanes/0/exports_content lane.exports_content: lane "WORK" lets exports hold';
  const boss = bareRole({ role_id: 'BOSS', class: 'human' });
  const exporting = (withholds_content: boolean, ...approvals: ApprovalRule[]): readonly string[] =>
    find({
      lanes: [bareLane({ exports_content: true, withholds_content }), bareLane({ lane_id: 'NEXT' })],
      roles: [boss],
      actions: { approvals },
    });

  test('withholds its content, and exports need approval', () => {
    const notApproved = `${at} what it withholds: add an approval for export to the actions`;
    const notWithheld = `${at} its content, which it does not withhold: remove the line`;
    expect(exporting(true, approval('export', 'BOSS'))).toEqual([]);
    expect(exporting(true, approval('promotion', 'BOSS'), approval('export', 'BOSS'))).toEqual([]);
    expect(exporting(true)).toEqual([notApproved]);
    expect(exporting(true, approval('promotion', 'BOSS'))).toEqual([notApproved]);
    expect(exporting(false)).toEqual([notWithheld]);
    expect(exporting(false, approval('export', 'BOSS'))).toEqual([notWithheld]);
    expect(find({ lanes: [bareLane({ exports_content: true, withholds_content: true })] })).toEqual([notApproved]);
    expect(find({ lanes: [bareLane({ exports_content: true })] })).toEqual([notWithheld]);
    expect(find({ lanes: [bareLane({ exports_content: false })] })).toEqual([]);
  });
});

describe('actions', () => {
  const acting = (...actions: ActionsPolicy['actions']): readonly string[] => find({ actions: { actions } });

  test('are listed once', () => {
    expect(acting({ action: 'THINK' }, { action: 'DIAL' }, { action: 'THINK' })).toEqual([
      'actions /actions/2 action.duplicate: action "THINK" is there twice',
    ]);
  });

  test('exist', () => {
    expect(acting({ action: 'THINK' }, { action: 'EXECUTE', extensions: { path: ['.txt'] } })).toEqual([
      'actions /actions/1 action.unknown: action "EXECUTE" is not in the catalogue',
    ]);
  });

  test('D12 work in a lane that exists', () => {
    expect(acting({ action: 'DIAL', lane: 'WORK' }, { action: 'THINK', lane: 'NOWHERE' })).toEqual([
      'actions /actions/1/lane action.unknown_lane: action "THINK" works in lane "NOWHERE", which is not in the lanes',
    ]);
  });

  test('restrict their own path arguments', () => {
    expect(acting({ action: 'WRITE_FILE', extensions: { path: ['.txt'], content: ['.txt'] } })).toEqual([
      'actions /actions/0/extensions/content extensions.unknown_argument: ' +
        'action "WRITE_FILE" has no path argument "content"',
    ]);
  });
});

describe('D7 approvals', () => {
  const roles = [
    bareRole(),
    bareRole({ role_id: 'BOSS', class: 'human' }),
    bareRole({ role_id: 'CLOCK', class: 'system' }),
  ];
  const approving = (...approvals: ApprovalRule[]): readonly string[] => find({ roles, actions: { approvals } });

  test('have one rule for each subject', () => {
    expect(approving(approval('export', 'BOSS'), approval('export', 'BOSS'))).toEqual([
      'actions /approvals/1 approval.duplicate: the approval of "export" is there twice',
    ]);
  });

  test('are for promotions, exports and actions with a run', () => {
    expect(approving(...['promotion', 'export', 'DIAL', 'WRITE_FILE'].map((name) => approval(name, 'BOSS')))).toEqual(
      [],
    );
    for (const subject of ['THINK', 'EXECUTE'])
      expect(approving(approval(subject, 'BOSS'))).toEqual([
        `actions /approvals/0 approval.unknown_subject: the approval of "${subject}" is for nothing that could be approved`,
      ]);
  });

  test('are given by people', () => {
    const finding = (entry: number, role: string) =>
      `actions /approvals/0/approver_roles/${entry} approval.unknown_role: ` +
      `the approval of "export" names role "${role}", which is no role of class human`;
    expect(approving(approval('export', 'WORKER', 'BOSS', 'CLOCK', 'GHOST'))).toEqual([
      finding(0, 'WORKER'),
      finding(2, 'CLOCK'),
      finding(3, 'GHOST'),
    ]);
  });
});

describe('limits', () => {
  const limits = (changes: Partial<ActionsPolicy['limits']>): readonly string[] =>
    find({ actions: { limits: { ...BARE_ACTIONS.limits, ...changes } } });

  test('the content fits into a payload', () => {
    expect(limits({ payload_bytes_max: 2_000, content_bytes_max: 1_999 })).toEqual([]);
    expect(limits({ payload_bytes_max: 2_000, content_bytes_max: 2_000 })).toEqual([
      'actions /limits/content_bytes_max limits.content_exceeds_payload: ' +
        'content_bytes_max (2000) does not fit into payload_bytes_max (2000)',
    ]);
  });

  test('a path fits into a payload', () => {
    expect(limits({ payload_bytes_max: 1_025, content_bytes_max: 1 })).toEqual([]);
    expect(limits({ payload_bytes_max: 1_024, content_bytes_max: 1 })).toEqual([
      'actions /limits/path_bytes_max limits.path_exceeds_payload: ' +
        'path_bytes_max (1024) does not fit into payload_bytes_max (1024)',
    ]);
  });
});
