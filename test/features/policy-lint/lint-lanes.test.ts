// The findings about lanes: their places and texts.

import { describe, expect, test } from '@jest/globals';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import type { Role } from '../../../src/core/contract/policy/roles.js';
import type { ApprovalRule } from '../../../src/core/contract/run/approval.js';
import { lintLanes } from '../../../src/features/policy-lint/lint-lanes.js';
import { bareLane, bareRole, CATALOGUE, partsWith } from '../../core/policy/bare-policy.js';

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

const lint = (
  changes: Partial<Lane>,
  { approved, role = {} }: { readonly approved?: readonly string[]; readonly role?: Partial<Role> } = {},
): readonly string[] => {
  const rules = approved?.map((subject): ApprovalRule => ({
    for: subject,
    approver_roles: ['BOSS'],
    quorum: 1,
    expires_minutes: 1,
  }));
  const parts = partsWith({
    lanes: [bareLane({ scope: SCOPE }), bareLane({ lane_id: 'NEXT', scope: SCOPE, ...changes })],
    roles: [bareRole(role)],
    actions: rules === undefined ? {} : { approvals: rules },
  });
  return [...lintLanes(parts, CATALOGUE)].map(
    ({ name, pointer, rule, severity, message }) => `${name} ${pointer} ${severity} ${rule}: ${message}`,
  );
};
const callers = (...roles: string[]): Pick<Lane, 'allowed_callers'> => ({ allowed_callers: { roles } });
const tools = (...names: string[]): Pick<Lane, 'allowed_actions'> => ({ allowed_actions: { tools: names } });
const writes = (...tables: string[]): Pick<Lane, 'allowed_actions'> => ({
  allowed_actions: { writes: tables.map((table) => ({ table, mode: 'append' })) },
});

const CALLER = 'lanes /lanes/1/allowed_callers/roles/0';

test('a lane without grants has no finding', () => {
  expect(lint({})).toEqual([]);
});

describe('a lane with exports', () => {
  const exporting = tools('export_bundle.create');
  const noApproval = 'lanes /lanes/1/lane_id error export.no_approval: lane "NEXT" exports data without an approval';
  const byAgent = 'export.by_agent: lane "NEXT" lets role "WORKER", an agent, start exports';

  test('needs an approval, if it has callers', () => {
    expect(lint(exporting)).toEqual([]);
    expect(lint({ ...exporting, ...callers('BOSS') })).toEqual([noApproval]);
    expect(lint({ ...exporting, ...callers('BOSS') }, { approved: ['promotion'] })).toEqual([noApproval]);
    expect(lint({ ...exporting, ...callers('BOSS') }, { approved: ['export'] })).toEqual([]);
  });

  test('is not for agents', () => {
    expect(lint({ ...exporting, ...callers('WORKER') })).toEqual([`${CALLER} error ${byAgent}`, noApproval]);
    expect(lint({ ...exporting, ...callers('WORKER') }, { approved: ['export'] })).toEqual([
      `${CALLER} warning ${byAgent}`,
    ]);
    expect(lint({ ...exporting, ...callers('WORKER') }, { approved: ['export'], role: { class: 'human' } })).toEqual(
      [],
    );
  });

  test('needs prohibitions and fields of its own', () => {
    expect(lint({ ...exporting, scope: { requires: [], prohibits: [] } })).toEqual([
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
    expect(lint(promoting)).toEqual([]);
    expect(lint({ ...promoting, ...callers('BOSS') }, { approved: ['export'] })).toEqual([noApproval]);
    expect(lint({ ...promoting, ...callers('WORKER') }, { approved: ['promotion'] })).toEqual([
      `${CALLER} error promotion.by_agent: lane "NEXT" lets role "WORKER", an agent, start promotions`,
    ]);
  });

  test('needs prohibitions and fields of its own', () => {
    const missing = lint({ ...promoting, scope: { requires: [], prohibits: [] } });
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
    expect(lint({ ...tools('session.verify'), ...callers('WORKER') })).toEqual([finding]);
    expect(lint({ ...tools('session.verify'), ...callers('WORKER') }, { role: { class: 'human' } })).toEqual([finding]);
    expect(lint({ ...tools('session.verify'), ...callers('WORKER') }, { role: { class: 'system' } })).toEqual([]);
  });

  test.each(['sandbox.read_file', 'export_bundle.create'])('does not also use %s', (tool) => {
    const changes = { ...tools('session.verify', tool), ...callers('WORKER') };
    expect(lint(changes, { approved: ['export'], role: { class: 'system' } })).toEqual([
      'lanes /lanes/1/allowed_actions/tools error lane.session_checks: ' +
        'lane "NEXT" mixes verifications and reviews with other tools',
    ]);
    expect(lint({ ...changes, ...tools('session.verify', 'inside.run') }, { role: { class: 'system' } })).toEqual([]);
  });
});

describe('a lane for work', () => {
  const lacking = (changes: Partial<Lane>): readonly string[] =>
    lint({ ...changes, scope: { requires: [...ALL_FIELDS], prohibits: [] } }).map(
      (line) => line.split(' ').at(-1) ?? '',
    );

  test('needs the prohibitions of what it does', () => {
    expect(lacking(tools('inside.run'))).toEqual(['cross_case_lookup', 'external_export']);
    expect(lacking(tools('outside.send'))).toEqual(['cross_case_lookup']);
    expect(lacking(writes('case_notes'))).toEqual(['shared_knowledge_write']);
    expect(lacking({})).toEqual([]);
    expect(lint({ ...writes('case_notes'), scope: { requires: ALL_FIELDS, prohibits: [] } })).toEqual([
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
    expect(lint(tools(tool))).toEqual([finding]);
  });

  test('that writes coa_map needs the field coa_version', () => {
    expect(lint(writes('coa_map'))).toEqual([
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
    expect(lint(changes)).toEqual([`lanes /lanes/1${finding}`]);
  });

  test.each([
    ['cross_case_reads in a lane that only reads', { cross_case_reads: true, allowed_actions: { reads: ['facts'] } }],
    ['allow_embedded_text: false', { allow_embedded_text: false }],
    ['inherits_case_id: true', { inherits_case_id: true }],
    ['partial_outputs: false', { partial_outputs: false }],
    ['cross_case_reads: false', { cross_case_reads: false, ...tools('inside.run') }],
  ])('%s is not reported', (_, changes: Partial<Lane>) => {
    expect(lint(changes)).toEqual([]);
  });

  test('inherits_case_id: false is not reported in a lane that requires no case', () => {
    const changes = { inherits_case_id: false, scope: PROMOTION_SCOPE };
    expect(lint(changes)).toEqual([]);
  });
});
