// The findings of the rules about lanes, names, call rules, roles and actions: their places, texts and limits.

import { describe, expect, test } from '@jest/globals';
import type { ActionsPolicy } from '../../../src/core/contract/policy/actions-policy.js';
import type { CallRule } from '../../../src/core/contract/policy/call-rules.js';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import { NATIVE_TOOL_NAMES } from '../../../src/core/contract/policy/native-tool-names.js';
import { isNear } from '../../../src/core/contract/policy/near-names.js';
import type { Role } from '../../../src/core/contract/policy/roles.js';
import type { ApprovalRule } from '../../../src/core/contract/run/approval.js';
import { NATIVE_TOOLS } from '../../../src/features/hooks/native-calls.js';
import {
  laneKindOf,
  PROMOTION_PROHIBITS,
  lintCalls,
  lintLanes,
  lintNames,
} from '../../../src/features/policy-lint/lint-lanes.js';
import { lintActions } from '../../../src/features/policy-lint/lint-actions.js';
import { lintRoles } from '../../../src/features/policy-lint/lint-policy.js';
import type { LintFinding } from '../../../src/features/policy-lint/lint-rules.js';
import { BARE_ACTIONS, bareLane, bareRole, CATALOGUE, partsWith } from '../../core/policy/bare-policy.js';

const shown = (findings: Iterable<LintFinding>): readonly string[] =>
  [...findings].map(
    ({ name, pointer, rule, severity, message }) => `${name} ${pointer} ${severity} ${rule}: ${message}`,
  );
const tools = (...names: string[]): Pick<Lane, 'allowed_actions'> => ({ allowed_actions: { tools: names } });
const writes = (...tables: string[]): Pick<Lane, 'allowed_actions'> => ({
  allowed_actions: { writes: tables.map((table) => ({ table, mode: 'append' })) },
});
const approval = (subject: string, more: Partial<ApprovalRule> = {}): ApprovalRule => ({
  for: subject,
  approver_roles: ['BOSS'],
  quorum: 1,
  expires_minutes: 60,
  ...more,
});

const ALL_PROHIBITIONS = [
  'cross_case_lookup',
  'external_export',
  'shared_knowledge_write',
  'raw_external_destination',
  'unaudited_delivery',
];
const ALL_FIELDS = ['run_id', 'case_id', 'export_reason'];
const SCOPE = { requires: ALL_FIELDS, prohibits: ALL_PROHIBITIONS };
const PROMOTION_SCOPE = {
  requires: ['run_id', 'promotion_ticket_id'],
  prohibits: ['raw_case_text', 'client_identity', 'privileged_notes'],
};

const lintLane = (
  changes: Partial<Lane>,
  { approved, role = {} }: { readonly approved?: readonly string[]; readonly role?: Partial<Role> } = {},
): readonly string[] => {
  const parts = partsWith({
    lanes: [bareLane({ scope: SCOPE }), bareLane({ lane_id: 'NEXT', scope: SCOPE, ...changes })],
    roles: [bareRole(role)],
    actions: approved === undefined ? {} : { approvals: approved.map((subject) => approval(subject)) },
  });
  return shown(lintLanes(parts, CATALOGUE));
};
const callers = (...roles: string[]): Pick<Lane, 'allowed_callers'> => ({ allowed_callers: { roles } });
const CALLER = 'lanes /lanes/1/allowed_callers/roles/0';

test('a lane without grants has no finding', () => {
  expect(lintLane({})).toEqual([]);
});

describe('a lane with exports', () => {
  const exporting = tools('export_bundle.create');
  const noApproval = 'lanes /lanes/1/lane_id error export.no_approval: lane "NEXT" exports data without an approval';
  const byAgent = 'export.by_agent: lane "NEXT" lets role "WORKER", an agent, start exports';

  test('needs an approval, if it has callers', () => {
    expect(lintLane(exporting)).toEqual([]);
    expect(lintLane({ ...exporting, ...callers('BOSS') })).toEqual([noApproval]);
    expect(lintLane({ ...exporting, ...callers('BOSS') }, { approved: ['promotion'] })).toEqual([noApproval]);
    expect(lintLane({ ...exporting, ...callers('BOSS') }, { approved: ['export'] })).toEqual([]);
  });

  test('is not for agents', () => {
    expect(lintLane({ ...exporting, ...callers('WORKER') })).toEqual([`${CALLER} error ${byAgent}`, noApproval]);
    expect(lintLane({ ...exporting, ...callers('WORKER') }, { approved: ['export'] })).toEqual([
      `${CALLER} warning ${byAgent}`,
    ]);
    expect(
      lintLane({ ...exporting, ...callers('WORKER') }, { approved: ['export'], role: { class: 'human' } }),
    ).toEqual([]);
  });

  test('needs prohibitions and fields of its own', () => {
    expect(lintLane({ ...exporting, scope: { requires: [], prohibits: [] } })).toEqual([
      'lanes /lanes/1/scope/prohibits error export.prohibition_missing: ' +
        'lane "NEXT" does not prohibit raw_external_destination',
      'lanes /lanes/1/scope/prohibits error export.prohibition_missing: ' +
        'lane "NEXT" does not prohibit unaudited_delivery',
      'lanes /lanes/1/scope/requires error lane.scope_missing: lane "NEXT" does not require run_id',
      'lanes /lanes/1/scope/requires error lane.scope_missing: lane "NEXT" does not require case_id',
      'lanes /lanes/1/scope/requires error lane.scope_missing: lane "NEXT" does not require export_reason',
    ]);
  });
});

describe('a lane with promotions', () => {
  const promoting = { ...writes('lessons'), scope: PROMOTION_SCOPE };

  test('needs an approval, and is not for agents', () => {
    const noApproval =
      'lanes /lanes/1/lane_id error promotion.no_approval: ' +
      'lane "NEXT" writes shared knowledge without an approval of promotions';
    expect(lintLane(promoting)).toEqual([]);
    expect(lintLane({ ...promoting, ...callers('BOSS') }, { approved: ['export'] })).toEqual([noApproval]);
    expect(lintLane({ ...promoting, ...callers('WORKER') }, { approved: ['promotion'] })).toEqual([
      `${CALLER} error promotion.by_agent: lane "NEXT" lets role "WORKER", an agent, start promotions`,
    ]);
  });

  test('needs prohibitions and fields of its own', () => {
    const missing = lintLane({ ...promoting, scope: { requires: [], prohibits: [] } });
    expect(missing.map((line) => line.split(' ').slice(-1)[0])).toEqual([
      ...PROMOTION_SCOPE.prohibits,
      ...PROMOTION_SCOPE.requires,
    ]);
    expect(missing[0]).toContain('promotion.prohibition_missing: lane "NEXT" does not prohibit raw_case_text');
  });
});

describe('a lane that verifies and reviews', () => {
  test('is for the system alone', () => {
    const finding =
      `${CALLER} error lane.session_checks: ` + 'lane "NEXT" lets role "WORKER" verify and review the work of sessions';
    expect(lintLane({ ...tools('session.verify'), ...callers('WORKER') })).toEqual([finding]);
    expect(lintLane({ ...tools('session.verify'), ...callers('WORKER') }, { role: { class: 'human' } })).toEqual([
      finding,
    ]);
    expect(lintLane({ ...tools('session.verify'), ...callers('WORKER') }, { role: { class: 'system' } })).toEqual([]);
    expect(lintLane({ ...tools('my.session.verify'), ...callers('WORKER') })).toEqual([]);
  });

  test.each(['sandbox.read_file', 'export_bundle.create'])('does not also use %s', (tool) => {
    const changes = { ...tools('session.verify', tool), ...callers('WORKER') };
    expect(lintLane(changes, { approved: ['export'], role: { class: 'system' } })).toEqual([
      'lanes /lanes/1/allowed_actions/tools error lane.session_checks: ' +
        'lane "NEXT" mixes verifications and reviews with other tools',
    ]);
    expect(lintLane({ ...changes, ...tools('session.verify', 'inside.run') }, { role: { class: 'system' } })).toEqual(
      [],
    );
  });
});

describe('a lane for work', () => {
  const lacking = (changes: Partial<Lane>): readonly string[] =>
    lintLane({ ...changes, scope: { requires: [...ALL_FIELDS], prohibits: [] } }).map(
      (line) => line.split(' ').at(-1) ?? '',
    );

  test('needs the prohibitions of what it does', () => {
    expect(lacking(tools('inside.run'))).toEqual(['cross_case_lookup', 'external_export']);
    expect(lacking(tools('outside.send'))).toEqual(['cross_case_lookup']);
    expect(lacking(writes('case_notes'))).toEqual(['shared_knowledge_write']);
    expect(lacking({})).toEqual([]);
    expect(lintLane({ ...writes('case_notes'), scope: { requires: ALL_FIELDS, prohibits: [] } })).toEqual([
      'lanes /lanes/1/scope/prohibits error lane.prohibition_missing: ' +
        'lane "NEXT" does not prohibit shared_knowledge_write',
    ]);
  });

  test.each([
    ['dictation.start', 'client_session_id'],
    ['dictation.stop', 'client_session_id'],
    ['transcription.run', 'client_session_id'],
    ['transcription.status', 'client_session_id'],
    ['interview.prompt.next', 'client_session_id'],
  ])('that calls %s needs the field %s', (tool, field) => {
    const finding = `lanes /lanes/1/scope/requires error lane.scope_missing: lane "NEXT" does not require ${field}`;
    expect(lintLane(tools(tool))).toEqual([finding]);
  });

  test('that writes coa_map needs the field coa_version', () => {
    expect(lintLane(writes('coa_map'))).toEqual([
      'lanes /lanes/1/scope/requires error lane.scope_missing: lane "NEXT" does not require coa_version',
    ]);
  });
});

describe('a key of a lane', () => {
  test.each([
    [
      'audit',
      { audit: { required: false, level: 'full' } as const },
      '/audit/required error lane.audit_not_required: lane "NEXT" does not require an audit',
    ],
    [
      'allow_embedded_text',
      { allow_embedded_text: true },
      '/allow_embedded_text error lane.embedded_text: lane "NEXT" lets records hold the text of a case',
    ],
    [
      'inherits_case_id',
      { inherits_case_id: false },
      '/inherits_case_id error lane.drops_case: ' +
        'lane "NEXT" requires case_id and takes it from its runs: all of them are denied',
    ],
    [
      'partial_outputs',
      { partial_outputs: true },
      '/partial_outputs warning lane.partial_outputs: lane "NEXT" leaves behind what failed runs have made',
    ],
    [
      'cross_case_reads with tools',
      { cross_case_reads: true, ...tools('inside.run') },
      '/cross_case_reads error lane.cross_case_reads: lane "NEXT" reads other cases, and writes or calls tools',
    ],
    [
      'cross_case_reads with writes',
      { cross_case_reads: true, ...writes('case_notes') },
      '/cross_case_reads error lane.cross_case_reads: lane "NEXT" reads other cases, and writes or calls tools',
    ],
  ])('%s is reported', (_, changes: Partial<Lane>, finding) => {
    expect(lintLane(changes)).toEqual([`lanes /lanes/1${finding}`]);
  });

  test.each([
    ['cross_case_reads in a lane that only reads', { cross_case_reads: true, allowed_actions: { reads: ['facts'] } }],
    ['allow_embedded_text: false', { allow_embedded_text: false }],
    ['inherits_case_id: true', { inherits_case_id: true }],
    ['partial_outputs: false', { partial_outputs: false }],
    ['cross_case_reads: false', { cross_case_reads: false, ...tools('inside.run') }],
  ])('%s is not reported', (_, changes: Partial<Lane>) => {
    expect(lintLane(changes)).toEqual([]);
  });

  test('inherits_case_id: false is not reported in a lane that requires no case', () => {
    const changes = { inherits_case_id: false, scope: PROMOTION_SCOPE };
    expect(lintLane(changes)).toEqual([]);
  });
});

const promotes = (changes: Partial<Lane>): boolean => laneKindOf(bareLane(changes), CATALOGUE).promotes;

describe('a lane is for promotions', () => {
  test('if it requires a ticket, or has a prohibition that only promotions need, whatever else it lists', () => {
    const other = { allowed_actions: { tools: ['inside.run'], ...writes('case_notes').allowed_actions } };
    const scopes = [
      { requires: ['case_id', 'promotion_ticket_id'], prohibits: [] },
      ...PROMOTION_PROHIBITS.map((name) => ({ requires: [], prohibits: ['external_export', name] })),
    ];
    for (const scope of scopes) expect(promotes({ scope, ...other })).toBe(true);
    expect(promotes({ scope: { requires: ['case_id'], prohibits: ['external_export'] } })).toBe(false);
  });

  test('if it writes a shared table, and no tool and no table of a case', () => {
    expect(promotes(writes('lessons'))).toBe(true);
    expect(promotes(writes('shared_playbooks'))).toBe(true);
    expect(promotes(writes('unknown', 'lessons'))).toBe(true);
    expect(promotes(writes('lessons', 'case_notes'))).toBe(false);
    expect(promotes(writes('case_notes'))).toBe(false);
    expect(promotes(writes('case_shared_'))).toBe(false);
    expect(promotes(writes('unknown'))).toBe(false);
    const called = { allowed_actions: { tools: ['inside.run'], ...writes('lessons').allowed_actions } };
    expect(promotes(called)).toBe(false);
  });
});

test('0061: a lane sends with the tools of coding agents that reach beyond the machine', () => {
  for (const { name, outside } of NATIVE_TOOLS) {
    expect([name, laneKindOf(bareLane(tools(name)), CATALOGUE).sends]).toEqual([name, outside]);
  }
});

const lintListed = (allowed_actions: Lane['allowed_actions']): readonly string[] =>
  shown(lintNames(partsWith({ lanes: [bareLane(), bareLane({ lane_id: 'NEXT', allowed_actions })] }), CATALOGUE));
const toolPlace = (entry: number): string => `lanes /lanes/1/allowed_actions/tools/${entry}`;

/** Tools of the platform, of the shipped lanes, and of the test's registrations. */
const TOOLS = [
  'sandbox.read_file',
  'sandbox.rename_file',
  'session.verify',
  'session.review',
  'export_bundle.create',
  'export_bundle.validate',
  'export_bundle.signoff',
  'export_bundle.download',
  'dictation.start',
  'dictation.stop',
  'transcription.run',
  'transcription.status',
  'interview.prompt.next',
  'inside.run',
  'outside.send',
  'telephone.dial',
];
const TABLES = [
  'sandbox_files',
  'export_bundles',
  'audit_ledger',
  'transcripts',
  'interview_notes',
  'entities',
  'facts',
  'evidence_map',
  'coa_map',
  'shared_playbooks',
  'shared_heuristics',
  'case_notes',
  'lessons',
];

test('known tools and tables have no finding', () => {
  expect(
    lintListed({ tools: TOOLS, reads: TABLES, writes: TABLES.map((table) => ({ table, mode: 'append' })) }),
  ).toEqual([]);
});

test.each(TOOLS)('a tool that is spelt almost like %s is reported', (tool) => {
  expect(lintListed({ tools: ['session.verify', `${tool}xy`] })).toEqual([
    `${toolPlace(1)} error tool.misspelt: lane "NEXT" lists the tool "${tool}xy", which is not registered; ` +
      `there is "${tool}"`,
  ]);
});

test.each(TABLES)('a table that is spelt almost like %s is reported', (table) => {
  const message = `lane "NEXT" lists the table "${table}xy", which is not registered; there is "${table}"`;
  expect(lintListed({ reads: ['facts', `${table}xy`] })).toEqual([
    `lanes /lanes/1/allowed_actions/reads/1 error table.misspelt: ${message}`,
  ]);
  expect(lintListed({ writes: [{ table: `${table}xy`, mode: 'append' }] })).toEqual([
    `lanes /lanes/1/allowed_actions/writes/0 error table.misspelt: ${message}`,
  ]);
});

test('another tool is a warning, and another table is not reported', () => {
  expect(lintListed({ tools: ['radio.send'], reads: ['radio'], writes: [{ table: 'radio', mode: 'append' }] })).toEqual(
    [`${toolPlace(0)} warning tool.unknown: lane "NEXT" lists the tool "radio.send", which is not registered`],
  );
});

describe('two names are similar if', () => {
  test.each([
    ['they are equal', 'facts', 'facts', true],
    ['two characters are missing', 'facts', 'fac', true],
    ['three characters are missing', 'facts', 'fa', false],
    ['two characters differ', 'facts', 'fxxts', true],
    ['three characters differ', 'facts', 'fxxxs', false],
    ['one is replaced and one is missing', 'facts', 'fxct', true],
    ['two are replaced and one is missing', 'facts', 'fxxt', false],
    ['one is empty', '', 'abc', false],
    ['one is empty and the other has two', '', 'ab', true],
  ])('%s', (_, a, b, near) => {
    expect(isNear(a, b)).toBe(near);
    expect(isNear(b, a)).toBe(near);
  });
});

const lintRules = (calls?: CallRule[], listed = ['sandbox.read_file', 'native.shell']): readonly string[] => {
  const lane = bareLane({ ...tools(...listed), ...(calls === undefined ? {} : { calls }) });
  return shown(lintCalls(partsWith({ lanes: [lane] })));
};
const callRule = (more: Partial<CallRule>): CallRule => ({
  id: 'x',
  tools: ['native.shell'],
  decision: 'allow',
  ...more,
});

describe('0061: a lane', () => {
  test('with a shell has call rules', () => {
    expect(lintRules()).toEqual([
      'lanes /lanes/0/allowed_actions/tools/1 warning call.unrestricted: lane "WORK" lists native.shell, and has no rules about its commands',
    ]);
    expect(lintRules([callRule({ commands: ['ls'], options: ['-l'] })])).toEqual([]);
    expect(lintRules(undefined, ['native.read'])).toEqual([]);
    expect(lintRules(undefined, [])).toEqual([]);
  });
});

describe('0061: a call rule', () => {
  test('does not allow all commands', () => {
    const found = [
      'lanes /lanes/0/calls/1 warning call.any_command: lane "WORK" has the call rule "x", which allows all commands',
    ];
    const first = callRule({ id: 'first', commands: ['ls'], options: ['-l'] });
    expect(lintRules([first, callRule({})])).toEqual(found);
    expect(lintRules([first, callRule({ tools: ['native.read', 'native.shell'] })])).toEqual(found);
    expect(lintRules([first, callRule({ decision: 'deny' })])).toEqual([]);
    expect(lintRules([first, callRule({ decision: 'approval' })])).toEqual([]);
    expect(lintRules([first, callRule({ tools: ['native.read'] })])).toEqual([]);
  });

  test.each<[Partial<CallRule>, boolean]>([
    [{ commands: ['ls'] }, true],
    [{ commands: ['ls'], options: ['-l'] }, true],
    [{ options: ['-l'], tools: ['native.read'] }, false],
    [{ commands: ['ls'], options: ['-l'], decision: 'approval' }, true],
    [{ commands: ['ls'], tools: ['native.read'] }, false],
    [{ commands: ['ls'], tools: ['native.read', 'native.shell'] }, true],
    [{ commands: ['ls'], paths: ['a'] }, false],
    [{ commands: ['ls'], paths: ['a'], decision: 'deny' }, true],
    [{ commands: ['ls'], hosts: ['a'], decision: 'deny' }, false],
    [{ paths: ['a'] }, false],
    [{ paths: ['a'], decision: 'deny' }, true],
    [{ paths: ['a'], decision: 'approval' }, false],
    [{ paths: ['a'], tools: ['native.patch'] }, true],
    [{ paths: ['a'], tools: ['native.fetch'], decision: 'deny' }, false],
    [{ hosts: ['a'], tools: ['native.fetch'] }, true],
    [{ names: ['a'], tools: ['native.mcp'] }, true],
    [{ names: ['a'], tools: ['native.other'] }, true],
    [{ names: ['a'], tools: ['native.web_search'] }, false],
    [{ paths: ['a'], tools: ['mail.send'], decision: 'deny' }, false],
    [{ tools: ['mail.send'], decision: 'deny' }, true],
    [{ tools: ['constructor'], names: ['a'] }, false],
  ])('%j can match a part of a call: %s', (more, matches) => {
    const never =
      'lanes /lanes/0/calls/0 error call.never_matches: lane "WORK" has the call rule "x", which matches no part of any call';
    const found = lintRules([callRule(more)], ['mail.send']).filter((line) => line.includes('call.never_matches'));
    expect(found).toEqual(matches ? [] : [never]);
  });

  test('lists the options of commands that it allows, and only of those', () => {
    expect(lintRules([callRule({ commands: ['ls'] })])).toEqual([
      'lanes /lanes/0/calls/0 warning call.any_option: lane "WORK" has the call rule "x", which allows all options of its commands, also those that execute programs or write files',
    ]);
    expect(lintRules([callRule({ commands: ['ls'], decision: 'approval' })])).toEqual([]);
    expect(lintRules([callRule({ commands: ['ls'], options: ['-l'], decision: 'deny' })])).toEqual([
      'lanes /lanes/0/calls/0/options error call.never_matches: lane "WORK" has the call rule "x", which denies whatever its options are: only a rule that allows or asks has options',
    ]);
  });
});

test('0061: the kinds of parts are stated for every tool of coding agents', () => {
  expect(NATIVE_TOOL_NAMES.toSorted()).toEqual(NATIVE_TOOLS.map(({ name }) => name));
});

const ROLE_LANES = [
  bareLane(),
  bareLane({ lane_id: 'FILES', ...tools('sandbox.read_file') }),
  bareLane({ lane_id: 'EXPORTS', ...tools('export_bundle.create') }),
];
const lintRole = (role_id: string, kind: Role['class'], lanes: string[] = [], approver?: string): readonly string[] => {
  const parts = partsWith({
    lanes: ROLE_LANES,
    roles: [bareRole(), bareRole({ role_id, class: kind, privileges: { lanes } })],
    actions: approver === undefined ? {} : { approvals: [approval('export', { approver_roles: [approver] })] },
  });
  return shown(lintRoles(parts, CATALOGUE));
};
const roleFinding = (rule: string, problem: string): string =>
  `roles /roles/1/class error ${rule}: role "BOSS" ${problem}`;

describe('a role', () => {
  test.each(['INTAKE-AGENT', 'intake.bot2', 'IntakeAgent', 'my..llm', '2AI'])('of people is not called %s', (name) => {
    const message = `role "${name}" is called an agent, and counts as a person who may approve`;
    expect(lintRole(name, 'human')).toEqual([`roles /roles/1/class error role.agent_as_human: ${message}`]);
    expect(lintRole(name, 'agent')).toEqual([]);
    expect(lintRole(name, 'system')).toEqual([]);
  });

  test.each(['AGENCY', 'BOTTOM', 'MAINTAINER', 'BOSS'])('of people may be called %s', (name) => {
    expect(lintRole(name, 'human')).toEqual([]);
  });

  test('of people does not work on files', () => {
    expect(lintRole('BOSS', 'human', ['WORK', 'FILES'])).toEqual([
      roleFinding('role.agent_as_human', 'works on files as agents do, and counts as a person'),
    ]);
    expect(lintRole('BOSS', 'agent', ['FILES'])).toEqual([]);
  });

  test('does not both work as agents do and approve', () => {
    expect(lintRole('BOSS', 'human', ['EXPORTS', 'WORK'], 'BOSS')).toEqual([
      roleFinding('role.acts_and_approves', 'has a lane for the work of agents, and approves'),
    ]);
    expect(lintRole('BOSS', 'human', ['EXPORTS'], 'BOSS')).toEqual([]);
    expect(lintRole('BOSS', 'human', ['WORK'], 'OTHER')).toEqual([]);
    expect(lintRole('BOSS', 'human', ['WORK'])).toEqual([]);
    expect(lintRole('BOSS', 'human', ['NOWHERE'], 'BOSS')).toEqual([]);
  });

  test('of the system does not work as agents do', () => {
    expect(lintRole('BOSS', 'system', ['EXPORTS', 'WORK'])).toEqual([
      roleFinding('role.agent_as_system', 'has a lane for the work of agents, and counts as the platform'),
    ]);
    expect(lintRole('BOSS', 'system', ['EXPORTS'])).toEqual([]);
    expect(lintRole('BOSS', 'system', ['NOWHERE'])).toEqual([]);
  });
});

const lintPolicyActions = (actions: Partial<ActionsPolicy>, lanes = [bareLane()]): readonly string[] =>
  shown(lintActions(partsWith({ actions, lanes }), CATALOGUE));
const listed = (...names: string[]) => names.map((action) => ({ action }));

test('a policy with one harmless action has no finding', () => {
  expect(lintPolicyActions({})).toEqual([]);
});

describe('approvals', () => {
  test('of promotions, exports and listed actions have no finding', () => {
    const approvals = [approval('promotion'), approval('export'), approval('READ_FILE')];
    expect(lintPolicyActions({ actions: listed('THINK', 'READ_FILE'), approvals })).toEqual([]);
  });

  test('of other actions are reported', () => {
    expect(lintPolicyActions({ approvals: [approval('export'), approval('DIAL')] })).toEqual([
      'actions /approvals/1/for error approval.unlisted_action: ' +
        'the approval of "DIAL" is for an action that is not listed',
    ]);
  });

  test('may hold for 43,200 minutes', () => {
    expect(lintPolicyActions({ approvals: [approval('export', { expires_minutes: 43_200 })] })).toEqual([]);
    expect(lintPolicyActions({ approvals: [approval('export', { expires_minutes: 43_201 })] })).toEqual([
      'actions /approvals/0/expires_minutes warning approval.long_lived: ' +
        'the approval of "export" holds for 43201 minutes',
    ]);
  });
});

describe('limits', () => {
  test('tool calls need a budget', () => {
    const finding = (index: number) =>
      `actions /actions/${index} warning budget.no_tool_calls: a run tree may call tools without a limit`;
    expect(lintPolicyActions({ actions: listed('CALL_TOOL', 'THINK') })).toEqual([finding(0)]);
    expect(lintPolicyActions({ actions: listed('THINK', 'CALL_TOOL'), budgets: {} })).toEqual([finding(1)]);
    expect(lintPolicyActions({ actions: listed('CALL_TOOL'), budgets: { tool_calls: 0 } })).toEqual([]);
  });

  test('an agent may be denied 1,000 times', () => {
    const limits = (denials_per_run_max: number) => ({ limits: { ...BARE_ACTIONS.limits, denials_per_run_max } });
    expect(lintPolicyActions(limits(1_000))).toEqual([]);
    expect(lintPolicyActions(limits(1_001))).toEqual([
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
    for (const rule of ['cancel', 'deny', 'wait'] as const) expect(lintPolicyActions(parts(rule))).toEqual([]);
    expect(lintPolicyActions(parts('cancel', []))).toEqual([]);
    expect(lintPolicyActions(parts('deny', [approval('export')]))).toEqual([
      'actions /knobs/finish_with_pending_request warning finish.no_request: ' +
        'FINISH would deny on pending requests, but no action of an agent needs an approval',
    ]);
  });

  test('the head is signed after every batch', () => {
    const knobs = (checkpoints: 'batch' | 'tree_end') => ({ knobs: { ...BARE_ACTIONS.knobs, checkpoints } });
    expect(lintPolicyActions(knobs('batch'))).toEqual([]);
    expect(lintPolicyActions(knobs('tree_end'))).toEqual([
      'actions /knobs/checkpoints warning checkpoints.late: ' +
        'a ledger that is cut while a tree is under way is not noticed at opening',
    ]);
  });
});

describe('actions', () => {
  const writing = (...path: string[]) =>
    lintPolicyActions({ actions: [{ action: 'WRITE_FILE', extensions: { path } }] });

  test('that write files need extensions for each path', () => {
    const finding = (path: string) =>
      `actions /actions/0 error action.path_unrestricted: action "RENAME_FILE" takes any file as its ${path}, ` +
      'also scripts and Makefiles';
    expect(lintPolicyActions({ actions: listed('RENAME_FILE') })).toEqual([finding('source'), finding('destination')]);
    expect(lintPolicyActions({ actions: [{ action: 'RENAME_FILE', extensions: { source: ['.txt'] } }] })).toEqual([
      finding('destination'),
    ]);
  });

  test.each(['THINK', 'READ_FILE', 'CREATE_DIRECTORY', 'DIAL', 'UNKNOWN', 'constructor'])(
    'like %s need none',
    (name) => {
      expect(lintPolicyActions({ actions: listed(name) })).toEqual([]);
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
    expect(lintPolicyActions({ actions: [{ action: 'THINK' }, { action: 'DIAL', lane: 'HIGH' }] }, lanes)).toEqual([
      'actions /actions/1/lane error action.privileged_lane: ' +
        'action "DIAL" works in lane "HIGH", which is not for agents',
    ]);
    expect(lintPolicyActions({ actions: [{ action: 'DIAL', lane: 'WORK' }] }, lanes)).toEqual([]);
    expect(lintPolicyActions({ actions: [{ action: 'DIAL', lane: 'GHOST' }] }, lanes)).toEqual([]);
  });
});
