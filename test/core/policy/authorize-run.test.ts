// Goal: lanes and roles decide as S4 §5 requires, and every denial names its own rule. Method: one request that the
// policy allows, and one row per rule that changes a single fact of run, request or policy, so that only that rule can
// apply.

import { describe, expect, test } from '@jest/globals';
import { CONFIDENTIALITY_FLAGS, LABEL_REFUSALS } from '../../../src/core/contract/policy/labels.js';
import type { ApprovalRule } from '../../../src/core/contract/run/approval.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import type { RunContext } from '../../../src/core/contract/run/run-context.js';
import {
  authorizeAgent,
  authorizeOrchestrator,
  LANE_CHECKS,
  laneContext,
  PRIVILEGED_CHECKS,
  type PrivilegedRequest,
  PROHIBITION_NAMES,
  createLabel,
  EXPORTABLE_CONTENT,
  WITHHELD_CONTENT,
} from '../../../src/core/policy/authorize-run.js';
import { contentOf } from '../../../src/features/hooks/native-calls.js';
import { RULE_IDS, RULES } from '../../../src/core/policy/verdict.js';
import {
  decide,
  DELIVERY,
  EXPORT,
  pins,
  PROMOTION,
  RUN,
  scope,
  SHARED_WRITE,
  type Case,
} from '../../fixtures/privileged.js';
import { shippedPolicy } from '../../fixtures/shipped-policy.js';
import { bareLane } from './bare-policy.js';
import '../../fixtures/call-rules.js';

/** The label of an agent that has read another case, with all its confidential content. */
const READ_ALL = createLabel('case_2', CONFIDENTIALITY_FLAGS);

const APPROVED: ApprovalRule = { for: 'export', approver_roles: ['ATTORNEY_ADMIN'], quorum: 1, expires_minutes: 60 };

/** An export of withheld content, where these rules govern the approval of exports. */
const withheld = (content: string, approvals: readonly ApprovalRule[]): Case => ({
  base: [EXPORT, DELIVERY],
  request: { artifact_flags: ['export_bundle', content] },
  policy: { approvals },
});

/** A call of a shell, in a lane with call rules. */
const calls = (rules: NonNullable<Lane['calls']>, input: JsonObject): Case => ({
  lane: { calls: rules, allowed_actions: { tools: ['native.shell'] } },
  request: { tool: 'native.shell', write: null, input },
});
const SHELL_RULE: NonNullable<Lane['calls']> = [
  { id: 'secrets', tools: ['native.shell'], decision: 'deny', paths: ['**/.env'] },
  { id: 'status', tools: ['native.shell'], decision: 'allow', commands: ['git status'] },
  { id: 'publish', tools: ['native.shell'], decision: 'approval', commands: ['git push'] },
];

const READS_AND_WRITES: Lane['allowed_actions'] = {
  reads: ['facts'],
  tools: ['sandbox.write_file'],
  writes: [{ table: 'sandbox_files', mode: 'upsert' }],
};

const DENIALS: readonly (readonly [string, string, Case])[] = [
  ['contract.unsupported', 'another contract', { run: { contract_version: 'v2' as 'v1' } }],
  ['pin.missing.lanes', 'UNPINNED', { run: pins('lanes', 'UNPINNED') }],
  ['pin.missing.roles', 'UNPINNED', { run: pins('roles', 'UNPINNED') }],
  ['pin.missing.actions', 'UNPINNED', { run: pins('actions', 'UNPINNED') }],
  ['pin.missing.conditions', 'UNPINNED', { run: pins('conditions', 'UNPINNED') }],
  ['pin.missing.counters', 'UNPINNED', { run: pins('counters', 'UNPINNED') }],
  ['pin.missing.machines', 'empty', { run: pins('machines', '') }],
  ['role.unknown', 'an undefined role', { run: { role_id: 'ROOT' } }],
  ['role.unknown', 'the name of an object member', { run: { role_id: 'constructor' } }],
  ['lane.missing', 'no lane', { run: { lane_id: null } }],
  ['lane.unknown', 'an undefined lane', { run: { lane_id: 'SYSTEM_OVERRIDE' } }],
  ['role.lane_not_granted', 'only the lane names the role', { role: { privileges: { lanes: [] } } }],
  ['lane.role_not_allowed', 'only the role lists the lane', { lane: { allowed_callers: { roles: [] } } }],
  ['lane.nothing_requested', 'neither tool nor table', { request: { tool: null, write: null } }],
  ['tool.not_registered', 'an unregistered tool', { request: { unregistered: 'tool.not_registered' } }],
  ['target.not_registered', 'an unregistered table', { request: { unregistered: 'target.not_registered' } }],
  ['target.mode_not_registered', 'upsert into a log', { request: { unregistered: 'target.mode_not_registered' } }],
  ['lane.read_not_allowed', 'a table without read access', { request: { tool: null, write: null, read: 'facts' } }],
  ['lane.tool_not_allowed', 'another tool', { request: { tool: 'shell.run' } }],
  ['lane.tool_not_allowed', 'the same name in capitals', { request: { tool: 'SANDBOX.WRITE_FILE' } }],
  ['lane.tool_not_allowed', 'a lane without tools', { lane: { allowed_actions: { writes: [] } } }],
  ['lane.write_not_allowed', 'another table', { request: { write: { table: 'facts', mode: 'upsert' } } }],
  ['lane.write_not_allowed', 'a lane without writes', { lane: { allowed_actions: { tools: ['sandbox.write_file'] } } }],
  ['call.unreadable', 'a command with an expansion', calls(SHELL_RULE, { command: contentOf('git status $X') })],
  ['call.not_allowed', 'another command', calls(SHELL_RULE, { command: contentOf('rm x') })],
  ['call.denied.secrets', 'a path that a rule denies', calls(SHELL_RULE, { command: contentOf('git status .env') })],
  [
    'lane.write_mode_not_allowed',
    'append instead of upsert',
    { request: { write: { table: 'sandbox_files', mode: 'append' } } },
  ],
  ['scope.missing.case_id', 'no case', { run: { case_id: null }, request: { target_case_id: null } }],
  ['scope.missing.coa_version', 'not given', { lane: { scope: scope(['coa_version']) } }],
  [
    'scope.missing.coa_version',
    'empty',
    { lane: { scope: scope(['coa_version']) }, run: { scope: { coa_version: '' } } },
  ],
  [
    'scope.missing.coa_version',
    'blank',
    { lane: { scope: scope(['coa_version']) }, run: { scope: { coa_version: ' ' } } },
  ],
  [
    'scope.missing.coa_version',
    'a number',
    { lane: { scope: scope(['coa_version']) }, run: { scope: { coa_version: 3 as unknown as string } } },
  ],
  ['scope.missing.constructor', 'an inherited member', { lane: { scope: scope(['constructor']) } }],
  ['scope.mismatch.case_id', 'another case in the scope', { run: { scope: { case_id: 'case_2' } } }],
  ['scope.mismatch.run_id', 'another run in the scope', { run: { scope: { run_id: 'run_root' } } }],
  ['prohibition.unknown', 'an undefined prohibition', { lane: { scope: scope([], ['silent_changes']) } }],
  ['prohibition.cross_case_lookup', 'another case', { request: { target_case_id: 'case_2' } }],
  ['prohibition.external_export', 'outside', { request: { destination: 'outside' } }],
  ['prohibition.shared_knowledge_write', 'shared knowledge', { request: { plane: 'shared' } }],
  [
    'prohibition.raw_case_text',
    'raw text',
    { base: [PROMOTION, SHARED_WRITE], request: { artifact_flags: ['raw_payload'] } },
  ],
  [
    'prohibition.client_identity',
    'a client named',
    { base: [PROMOTION, SHARED_WRITE], request: { artifact_flags: ['contains_pii'] } },
  ],
  [
    'prohibition.privileged_notes',
    'privileged notes',
    { base: [PROMOTION, SHARED_WRITE], request: { artifact_flags: ['contains_privileged'] } },
  ],
  ['prohibition.raw_external_destination', 'no bundle', { base: [EXPORT, DELIVERY], request: { artifact_flags: [] } }],
  ['prohibition.unaudited_delivery', 'no export run', { base: [EXPORT, DELIVERY], run: { run_kind: 'tool_gateway' } }],
  [
    'prohibition.unaudited_delivery',
    'a lane without audit',
    { base: [EXPORT, DELIVERY], lane: { audit: { required: false, level: 'full' } } },
  ],
  ...LABEL_REFUSALS.map((refusal): readonly [string, string, Case] => [
    `label.${refusal}`,
    'a write in a lane that refuses it',
    { lane: { refuses_labels: [refusal] }, request: { label: READ_ALL } },
  ]),
  [
    'platform.label_other_case',
    'a write to shared knowledge after another case was read',
    { base: [PROMOTION, SHARED_WRITE], request: { label: createLabel('case_2', []) } },
  ],
  [
    'platform.label_other_case',
    'what leaves the platform after another case was read',
    { base: [EXPORT, DELIVERY], request: { label: createLabel('case_2', []) } },
  ],
  [
    'platform.cross_case',
    'a lane without prohibitions',
    { lane: { scope: scope([]) }, request: { target_case_id: 'case_2' } },
  ],
  [
    'platform.cross_case',
    'a lane that allows to read other cases, and a write',
    { lane: { scope: scope([]), cross_case_reads: true }, request: { target_case_id: 'case_2' } },
  ],
  [
    'platform.cross_case',
    'a lane that allows to read other cases, and a read with a write',
    {
      lane: { scope: scope([]), cross_case_reads: true, allowed_actions: READS_AND_WRITES },
      request: { tool: null, read: 'facts', target_case_id: 'case_2' },
    },
  ],
  [
    'platform.cross_case',
    'a lane that allows to read other cases, and a read with a tool',
    {
      lane: { scope: scope([]), cross_case_reads: true, allowed_actions: READS_AND_WRITES },
      request: { write: null, read: 'facts', target_case_id: 'case_2' },
    },
  ],
  [
    'platform.shared_write',
    'a lane without prohibitions',
    { lane: { scope: scope([]) }, request: { plane: 'shared' } },
  ],
  ['export.content_withheld', 'content that its lane withholds', withheld(WITHHELD_CONTENT, [APPROVED])],
  ['export.not_approved', 'exportable content, and no approval of exports', withheld(EXPORTABLE_CONTENT, [])],
];

const ruleName = (rule_id: string): string => rule_id.replace(/^(scope\.\w+|call\.denied)\..*$/u, '$1.<field>');

describe('S4-31 S4-32 S4-33 S4-34 S4-35 S4-81 C55 each broken rule denies and is the one that is named', () => {
  test.each(DENIALS)('%s: %s', (rule_id, _why, changed) => {
    expect(decide(changed)).toEqual({ decision: 'deny', rule_id, cause: 'LANE' });
  });

  test('what the rows change is allowed before the change', () => {
    const allowed = { decision: 'allow', rule_id: 'lane.granted', cause: null };
    expect(decide({})).toEqual(allowed);
    expect(decide({ base: [PROMOTION, SHARED_WRITE] })).toEqual(allowed);
    expect(decide({ base: [EXPORT, DELIVERY] })).toEqual(allowed);
    expect(decide({ request: { label: READ_ALL } })).toEqual(allowed);
    expect(decide({ lane: { refuses_labels: [...LABEL_REFUSALS] } })).toEqual(allowed);
    expect(decide({ base: [PROMOTION, SHARED_WRITE], request: { label: createLabel('case_1', []) } })).toEqual(allowed);
    const read = { tool: null, write: null, read: 'facts', target_case_id: 'case_2' };
    const reading = { scope: scope([]), allowed_actions: { reads: ['facts'] } };
    expect(decide({ lane: reading, request: read })).toMatchObject({ rule_id: 'platform.cross_case' });
    expect(decide({ lane: { ...reading, cross_case_reads: true }, request: read })).toEqual(allowed);
    expect(decide(withheld(EXPORTABLE_CONTENT, [APPROVED]))).toEqual(allowed);
    // The approval of a call is checked last, after the lane.
    for (const command of ['git status', 'git push'])
      expect(decide(calls(SHELL_RULE, { command: contentOf(command) }))).toEqual(allowed);
  });

  test('every rule is reached by a row, or is one of the four that allow', () => {
    const reached = DENIALS.map(([rule_id]) => ruleName(rule_id));
    expect(
      new Set([...reached, 'orchestrator.pinned', 'agent.lane_granted', 'operator.not_limited', 'lane.granted']),
    ).toEqual(new Set(RULE_IDS));
  });

  test('every prohibition has a rule', () => {
    expect(PROHIBITION_NAMES.filter((name) => !(`prohibition.${name}` in RULES))).toEqual([]);
  });

  test('the checks run in the order of the contract: the earlier rule is named, whatever else is broken', () => {
    // One mistake per row, in the order in which the rules are listed; all are made together and corrected one by one.
    const mistakes: readonly (readonly [string, Case])[] = [
      ['pin.missing.lanes', { run: pins('lanes', 'UNPINNED') }],
      ['role.unknown', { run: { role_id: 'ROOT' } }],
      ['lane.role_not_allowed', { lane: { allowed_callers: { roles: [] } } }],
      ['lane.tool_not_allowed', { request: { tool: 'shell.run' } }],
      ['call.not_allowed', { lane: { calls: SHELL_RULE }, request: { input: {} } }],
      ['lane.write_not_allowed', { request: { write: { table: 'facts', mode: 'append' } } }],
      ['scope.mismatch.run_id', { run: { scope: { run_id: 'run_root' } } }],
      // The platform itself also forbids this, as the last check.
      ['prohibition.cross_case_lookup', { request: { target_case_id: 'case_2' } }],
      ['label.other_case', { lane: { refuses_labels: ['other_case'] }, request: { label: READ_ALL } }],
    ];
    const named = mistakes.map((_, mended) => {
      const left = mistakes.slice(mended).map(([, mistake]) => mistake);
      return decide({
        run: Object.assign({}, ...left.map(({ run }) => run)) as Partial<RunContext>,
        request: Object.assign({}, ...left.map(({ request }) => request)) as Partial<PrivilegedRequest>,
        lane: Object.assign({}, ...left.map(({ lane }) => lane)) as Partial<Lane>,
      }).rule_id;
    });
    expect(named).toEqual(mistakes.map(([rule_id]) => rule_id));
  });
});

describe('C55 the lists of checks', () => {
  test('have these claims and rules, in this order', () => {
    const lines = [...LANE_CHECKS, ...PRIVILEGED_CHECKS].map(({ claim, rules }) => `${claim}: ${rules.join(' ')}`);
    expect(lines).toEqual([
      'every version that the run is judged by is known: contract.unsupported pin.missing.*',
      'the role is in roles.yaml: role.unknown',
      'the lane is in lanes.yaml: lane.missing lane.unknown',
      'the role lists the lane: role.lane_not_granted',
      'the lane names the role: lane.role_not_allowed',
      'a tool or table is requested, and it is registered: lane.nothing_requested tool.not_registered target.*',
      'the lane lists the tool: lane.tool_not_allowed',
      'the call rules of the lane allow each part of the call: call.*',
      'the lane lists the table among its reads: lane.read_not_allowed',
      'the lane lists the table and mode among its writes: lane.write_not_allowed lane.write_mode_not_allowed',
      'every scope field that the lane requires has its value: scope.*',
      'no prohibition of the lane is violated: prohibition.*',
      'the lane refuses no label of what the run has read: label.* platform.label_other_case',
      'no other case and no shared knowledge is touched: platform.*',
      'no withheld content would be exported: export.*',
    ]);
  });

  test('each lane check denies a run without a role and lane by itself', () => {
    const run = { ...RUN, contract_version: 'v2' as 'v1', role_id: 'ROOT', lane_id: null };
    const subject = { run, policy: shippedPolicy() };
    expect(LANE_CHECKS.map(({ findDenial }) => findDenial(subject))).toEqual([
      'contract.unsupported',
      'role.unknown',
      'lane.missing',
      'role.lane_not_granted',
      'lane.role_not_allowed',
    ]);
    const other = { ...subject, run: { ...run, contract_version: 'v1' as const, lane_id: 'NOWHERE' } };
    expect(LANE_CHECKS.map(({ findDenial }) => findDenial(other))).toEqual([
      null,
      'role.unknown',
      'lane.unknown',
      'role.lane_not_granted',
      'lane.role_not_allowed',
    ]);
  });
});

test('S4-29 C55 an orchestrator needs its pins, and an agent also its role and lane', () => {
  const unpinned = { ...RUN, ...pins('roles', 'UNPINNED') };
  const denied = { decision: 'deny', rule_id: 'pin.missing.roles', cause: 'LANE' };
  expect(authorizeOrchestrator(RUN)).toEqual({ decision: 'allow', rule_id: 'orchestrator.pinned', cause: null });
  expect(authorizeOrchestrator(unpinned)).toEqual(denied);
  expect(authorizeAgent(RUN, shippedPolicy())).toEqual({
    decision: 'allow',
    rule_id: 'agent.lane_granted',
    cause: null,
  });
  expect(authorizeAgent(unpinned, shippedPolicy())).toEqual(denied);
  expect(authorizeAgent({ ...RUN, lane_id: null }, shippedPolicy()).rule_id).toBe('lane.missing');
});

test('C46 a run in a lane has the case, unless the lane does not inherit it', () => {
  const contexts = [undefined, true, false].map((inherits_case_id) =>
    laneContext(RUN, bareLane(inherits_case_id === undefined ? {} : { inherits_case_id })),
  );
  expect(contexts.map(({ lane_id, case_id }) => [lane_id, case_id])).toEqual([
    ['WORK', 'case_1'],
    ['WORK', 'case_1'],
    ['WORK', null],
  ]);
});
