// The findings about actions, approvals and limits: their places, texts and limits.

import { describe, expect, test } from '@jest/globals';
import type { ActionsPolicy } from '../../../src/core/contract/policy/actions-policy.js';
import type { ApprovalRule } from '../../../src/core/contract/run/approval.js';
import { lintActions } from '../../../src/features/policy-lint/lint-actions.js';
import { BARE_ACTIONS, bareLane, CATALOGUE, partsWith } from '../../core/policy/bare-policy.js';

const lint = (actions: Partial<ActionsPolicy>, lanes = [bareLane()]): readonly string[] =>
  [...lintActions(partsWith({ actions, lanes }), CATALOGUE)].map(
    ({ name, pointer, rule, severity, message }) => `${name} ${pointer} ${severity} ${rule}: ${message}`,
  );
const approval = (subject: string, expires_minutes = 60): ApprovalRule => ({
  for: subject,
  approver_roles: ['BOSS'],
  quorum: 1,
  expires_minutes,
});
const listed = (...names: string[]) => names.map((action) => ({ action }));

test('a policy with one harmless action has no finding', () => {
  expect(lint({})).toEqual([]);
});

describe('approvals', () => {
  test('of promotions, exports and listed actions have no finding', () => {
    const approvals = [approval('promotion'), approval('export'), approval('READ_FILE')];
    expect(lint({ actions: listed('THINK', 'READ_FILE'), approvals })).toEqual([]);
  });

  test('of other actions are reported', () => {
    expect(lint({ approvals: [approval('export'), approval('DIAL')] })).toEqual([
      'actions /approvals/1/for error approval.unlisted_action: ' +
        'the approval of "DIAL" is for an action that is not listed',
    ]);
  });

  test('may hold for 43,200 minutes', () => {
    expect(lint({ approvals: [approval('export', 43_200)] })).toEqual([]);
    expect(lint({ approvals: [approval('export', 43_201)] })).toEqual([
      'actions /approvals/0/expires_minutes warning approval.long_lived: ' +
        'the approval of "export" holds for 43201 minutes',
    ]);
  });
});

describe('limits', () => {
  test('tool calls need a budget', () => {
    const finding = (index: number) =>
      `actions /actions/${index} warning budget.no_tool_calls: a run tree may call tools without a limit`;
    expect(lint({ actions: listed('CALL_TOOL', 'THINK') })).toEqual([finding(0)]);
    expect(lint({ actions: listed('THINK', 'CALL_TOOL'), budgets: {} })).toEqual([finding(1)]);
    expect(lint({ actions: listed('CALL_TOOL'), budgets: { tool_calls: 0 } })).toEqual([]);
  });

  test('an agent may be denied 1,000 times', () => {
    const limits = (denials_per_run_max: number) => ({ limits: { ...BARE_ACTIONS.limits, denials_per_run_max } });
    expect(lint(limits(1_000))).toEqual([]);
    expect(lint(limits(1_001))).toEqual([
      'actions /limits/denials_per_run_max error limits.denials: ' +
        'an agent may be denied 1001 times before its run ends',
    ]);
  });

  test('a rule for FINISH with pending requests needs an action that needs an approval', () => {
    const parts = (rule: 'cancel' | 'deny' | 'wait', approvals = [approval('THINK')]) => ({
      actions: listed('THINK'),
      approvals,
      knobs: { ...BARE_ACTIONS.knobs, finish_with_pending_request: rule },
    });
    for (const rule of ['cancel', 'deny', 'wait'] as const) expect(lint(parts(rule))).toEqual([]);
    expect(lint(parts('cancel', []))).toEqual([]);
    expect(lint(parts('deny', [approval('export')]))).toEqual([
      'actions /knobs/finish_with_pending_request warning finish.no_request: ' +
        'FINISH would deny on pending requests, but no action of an agent needs an approval',
    ]);
  });

  test('the head is signed after every batch', () => {
    const knobs = (checkpoints: 'batch' | 'tree_end') => ({ knobs: { ...BARE_ACTIONS.knobs, checkpoints } });
    expect(lint(knobs('batch'))).toEqual([]);
    expect(lint(knobs('tree_end'))).toEqual([
      'actions /knobs/checkpoints warning checkpoints.late: ' +
        'a ledger that is cut while a tree is under way is not noticed at opening',
    ]);
  });
});

describe('actions', () => {
  const writing = (...path: string[]) => lint({ actions: [{ action: 'WRITE_FILE', extensions: { path } }] });

  test('that write files need extensions for each path', () => {
    const finding = (path: string) =>
      `actions /actions/0 error action.path_unrestricted: action "RENAME_FILE" takes any file as its ${path}, ` +
      'also scripts and Makefiles';
    expect(lint({ actions: listed('RENAME_FILE') })).toEqual([finding('source'), finding('destination')]);
    expect(lint({ actions: [{ action: 'RENAME_FILE', extensions: { source: ['.txt'] } }] })).toEqual([
      finding('destination'),
    ]);
  });

  test.each(['THINK', 'READ_FILE', 'CREATE_DIRECTORY', 'DIAL', 'UNKNOWN', 'constructor'])(
    'like %s need none',
    (name) => {
      expect(lint({ actions: listed(name) })).toEqual([]);
    },
  );

  test.each(['.sh', '.Py', '.JSON', '.html', '.dll', '.swift', '.plist', '.lnk', '.com', '.js', '.css', 'Makefile'])(
    'that write %s files are reported',
    (ending) => {
      expect(writing('.txt', ending, '.md')).toEqual([
        'actions /actions/0/extensions/path error action.runs: ' +
          `action "WRITE_FILE" takes files as its path that programs run or obey: ${ending}`,
      ]);
    },
  );

  test('that write several kinds of executable files are reported once', () => {
    expect(writing('.sh', '.txt', '.yaml')).toEqual([
      expect.stringMatching(/that programs run or obey: \.sh \.yaml$/u),
    ]);
    expect(writing('.txt', '.md')).toEqual([]);
  });

  test.each([
    ['exports', { allowed_actions: { tools: ['export_bundle.create'] } }],
    ['promotes', { scope: { requires: ['promotion_ticket_id'], prohibits: [] } }],
    ['checks', { allowed_actions: { tools: ['session.review'] } }],
  ])('in a lane that %s are reported', (_, changes) => {
    const lanes = [bareLane(), bareLane({ lane_id: 'HIGH', ...changes })];
    expect(lint({ actions: [{ action: 'THINK' }, { action: 'DIAL', lane: 'HIGH' }] }, lanes)).toEqual([
      'actions /actions/1/lane error action.privileged_lane: ' +
        'action "DIAL" works in lane "HIGH", which is not for agents',
    ]);
    expect(lint({ actions: [{ action: 'DIAL', lane: 'WORK' }] }, lanes)).toEqual([]);
    expect(lint({ actions: [{ action: 'DIAL', lane: 'GHOST' }] }, lanes)).toEqual([]);
  });
});
