// Goal: every rule that a policy can break is reported, in the right file, at the right line, and a valid policy has no
// finding. Method: a small valid policy, and one row per mistake that makes it invalid.

import { describe, expect, test } from '@jest/globals';
import { POLICY_FILES, type PolicyFile } from '../../../../src/core/contract/policy/pins.js';
import { PolicyError } from '../../../../src/core/errors.js';
import { checkPolicy, formatFinding, loadPolicy } from '../../../../src/core/policy/files/check-policy.js';
import type { NamedPolicyFile } from '../../../../src/core/policy/files/read-policy-file.js';
import { FINDING_RULES, type FindingRule } from '../../../../src/core/policy/files/policy-finding.js';
import '../../../fixtures/approvals.js';
import '../../../fixtures/decision-points.js';

const RIGHT: Readonly<Record<PolicyFile, string>> = {
  lanes: `version: v1
contract_version: v1
last_updated: 2026-01-31
lanes:
  - lane_id: FILES
    purpose: Files.
    allowed_callers: { roles: [WORKER] }
    allowed_actions: { tools: [sandbox.read_file] }
    scope: { requires: [case_id], prohibits: [external_export] }
    audit: { required: true, level: full }
`,
  roles: `version: v1
contract_version: v1
last_updated: 2026-01-31
roles:
  - role_id: WORKER
    description: Works.
    class: agent
    privileges: { lanes: [FILES] }
`,
  actions: `version: v1
contract_version: v1
last_updated: 2026-01-31
actions:
  - action: THINK
  - action: WRITE_FILE
    extensions: { path: [.txt] }
    lane: FILES
limits:
  payload_bytes_max: 2048
  payload_depth_max: 8
  path_bytes_max: 1024
  content_bytes_max: 2047
  read_bytes_max: 1
  list_entries_max: 1
  steps_per_run_max: 1
  denials_per_run_max: 1
sandbox: { bytes_max: 1, files_max: 1, depth_max: 1, portable_names: false }
response: { exposure: decision }
knobs:
  duplicate_proposal_ids: reject
  dotdot: reject
  extensions_stage: authorize
  on_child_failure: fail
`,
};

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function filesWith(changes: Partial<Record<PolicyFile, Uint8Array>>): Record<PolicyFile, NamedPolicyFile> {
  const file = (name: PolicyFile) => ({ path: `conf/${name}.yaml`, bytes: changes[name] ?? utf8(RIGHT[name]) });
  return { lanes: file('lanes'), roles: file('roles'), actions: file('actions') };
}

/** The valid policy with one passage replaced, which must occur. */
function edit(name: PolicyFile, passage: string, replacement: string): Partial<Record<PolicyFile, Uint8Array>> {
  if (!RIGHT[name].includes(passage)) throw new Error(`no such passage: ${passage}`);
  return { [name]: utf8(RIGHT[name].replace(passage, () => replacement)) };
}

const POINT = {
  ...{ name: 'fraud', protocol: 'opa', url: 'https://a.example/v1/data/x', actions: ['WRITE_FILE'], timeout_ms: 100 },
};
const points = (...all: readonly object[]): Partial<Record<PolicyFile, Uint8Array>> =>
  edit('actions', 'knobs:', `decision_points: ${JSON.stringify(all)}\nknobs:`);

const LANE = RIGHT.lanes.slice(RIGHT.lanes.indexOf('  - lane_id'));
const ROLE = RIGHT.roles.slice(RIGHT.roles.indexOf('  - role_id'));

/** The valid policy with two approval rules: a valid one, and this one. */
function approvals(subject: string, role_id: string): Partial<Record<PolicyFile, Uint8Array>> {
  const rule = (name: string, role: string) =>
    `  - { for: ${name}, approver_roles: [${role}], quorum: 1, expires_minutes: 5 }\n`;
  const boss = '  - { role_id: BOSS, description: A person., class: human, privileges: { lanes: [] } }\n';
  return {
    roles: utf8(RIGHT.roles + boss),
    actions: utf8(`${RIGHT.actions}approvals:\n${rule('WRITE_FILE', 'BOSS')}${rule(subject, role_id)}`),
  };
}

/** The valid policy with these lines added at the end of its lane. */
const laneWith = (...lines: readonly string[]): Partial<Record<PolicyFile, Uint8Array>> => ({
  lanes: utf8(`${RIGHT.lanes}${lines.map((line) => `    ${line}\n`).join('')}`),
});

const CALL_RULE = '  - { id: reads, tools: [sandbox.read_file], decision: allow }';

interface Row {
  readonly rule: FindingRule;
  readonly why: string;
  readonly at: `${PolicyFile}:${number}`;
  readonly change: Partial<Record<PolicyFile, Uint8Array>>;
}

const row = (
  rule: FindingRule,
  why: string,
  at: `${PolicyFile}:${number}`,
  change: Partial<Record<PolicyFile, Uint8Array>>,
): Row => ({ rule, why, at, change });

const ROWS: readonly Row[] = [
  row('yaml.too_large', '1 MiB and one byte', 'roles:1', { roles: utf8(RIGHT.roles.padEnd(1_048_577, '\n')) }),
  row('yaml.encoding', 'UTF-16', 'roles:1', { roles: Buffer.from(`\ufeff${RIGHT.roles}`, 'utf16le') }),
  row('yaml.encoding', 'Latin-1', 'roles:1', { roles: Buffer.from(RIGHT.roles.replace('Works', 'Wörks'), 'latin1') }),
  row('yaml.bom', 'a byte order mark', 'roles:1', { roles: utf8(`\ufeff${RIGHT.roles}`) }),
  row('yaml.control_character', 'an escape character', 'roles:6', edit('roles', 'Works', 'W\u001b[2Jorks')),
  row('yaml.powershell_wrapping', "@' '@", 'lanes:1', { lanes: utf8(`@'\r\n${RIGHT.lanes}'@\r\n`) }),
  row('yaml.powershell_wrapping', '@" "@', 'lanes:1', { lanes: utf8(`@"\n${RIGHT.lanes}"@\n`) }),
  row('yaml.too_complex', 'a megabyte of brackets', 'lanes:1', { lanes: utf8('['.repeat(1_000_000)) }),
  row('yaml.too_complex', 'a megabyte of brackets, one a line', 'lanes:17', { lanes: utf8('[\n'.repeat(500_000)) }),
  row('yaml.too_complex', 'dashes in a bracket', 'lanes:1', { lanes: utf8(`a: [ ${'- '.repeat(10)}`) }),
  row('yaml.too_complex', 'dashes', 'lanes:1', { lanes: utf8('- '.repeat(10)) }),
  row('yaml.too_complex', 'indentation', 'lanes:2', { lanes: utf8(`a:\n${' '.repeat(65)}b: 1\n`) }),
  row('yaml.too_complex', 'parts', 'lanes:3000', { lanes: utf8('- a\n'.repeat(20_000)) }),
  row('yaml.too_complex', 'escapes', 'lanes:1', { lanes: utf8(`a: "${'\\q'.repeat(60_000)}"`) }),
  row('yaml.anchor', 'an anchor', 'lanes:7', edit('lanes', '{ roles: [WORKER] }', '&a { roles: [WORKER] }')),
  row('yaml.alias', 'an alias', 'lanes:7', edit('lanes', '[WORKER]', '[*a]')),
  row('yaml.tag', 'a custom tag', 'lanes:6', edit('lanes', 'Files.', '!include x')),
  row('yaml.tag', 'a standard tag', 'lanes:6', edit('lanes', 'Files.', '!!binary x')),
  row('yaml.directive', 'YAML 1.1, where yes is true', 'lanes:1', { lanes: utf8(`%YAML 1.1\n---\n${RIGHT.lanes}`) }),
  row('yaml.multiple_documents', 'a second document', 'roles:9', { roles: utf8(`${RIGHT.roles}---\na: 1\n`) }),
  row('yaml.syntax', 'an open quote', 'roles:9', edit('roles', 'Works.', '"Works.')),
  row('yaml.syntax', 'a tab', 'roles:7', edit('roles', '    class', '\tclass')),
  row('yaml.syntax', 'a bracket that closes nothing', 'lanes:2', { lanes: utf8(`a: 1\n${']'.repeat(9_000)}`) }),
  row('yaml.syntax', 'dashes after an open bracket', 'lanes:2', { lanes: utf8(`a: [\n${'- '.repeat(9_000)}`) }),
  row('yaml.syntax', 'a document after an open bracket', 'lanes:2', {
    lanes: utf8(`a: [\n--- \n${'- '.repeat(9_000)}`),
  }),
  row('yaml.merge_key', 'a merge key', 'roles:7', edit('roles', 'class: agent', '<<: { class: agent }')),
  row('yaml.key', 'a number as key', 'roles:7', edit('roles', 'class: agent', '1: agent')),
  row('yaml.key', 'a list as key', 'roles:7', edit('roles', 'class: agent', '? [a]\n    : agent')),
  row('yaml.key', 'no key', 'roles:7', edit('roles', 'class: agent', ': agent')),
  row('yaml.duplicate_key', 'a key twice', 'roles:8', edit('roles', 'class: agent', 'class: agent\n    class: human')),
  row(
    'yaml.number',
    'a number that some readers parse as 8',
    'actions:18',
    edit('actions', 'bytes_max: 1,', 'bytes_max: 010,'),
  ),
  row('yaml.number', 'a number in hexadecimal', 'actions:18', edit('actions', 'bytes_max: 1,', 'bytes_max: 0x1F,')),
  row('yaml.not_a_mapping', 'nothing', 'actions:1', { actions: utf8('') }),
  row('yaml.not_a_mapping', 'comments', 'actions:1', { actions: utf8('# version: v1\n') }),
  row('yaml.not_a_mapping', 'a list', 'actions:1', { actions: utf8('- version: v1\n') }),
  row('yaml.not_a_mapping', 'a text', 'actions:1', { actions: utf8('version v1\n') }),
  row('version.mismatch', 'another version', 'roles:1', edit('roles', 'version: v1', 'version: v2')),
  row('version.mismatch', 'another contract', 'lanes:2', edit('lanes', 'contract_version: v1', 'contract_version: 1')),
  row(
    'schema.unknown_key',
    'a key too many',
    'lanes:7',
    edit('lanes', '    allowed_c', '    owner: me\n    allowed_c'),
  ),
  row('schema.unknown_key', '__proto__', 'roles:7', edit('roles', 'class: agent', '__proto__: { class: agent }')),
  row('schema.missing_key', 'a key too few', 'roles:5', edit('roles', '    class: agent\n', '')),
  row('schema.type', 'a text for a list', 'roles:8', edit('roles', '[FILES]', 'FILES')),
  row('schema.type', 'no list at all', 'roles:8', edit('roles', '{ lanes: [FILES] }', '')),
  row('schema.value', 'an unknown class', 'roles:7', edit('roles', 'class: agent', 'class: robot')),
  row('schema.value', 'an invalid id', 'roles:5', edit('roles', 'role_id: WORKER', 'role_id: WÖRKER')),
  row('schema.value', 'a limit of 0', 'actions:14', edit('actions', 'read_bytes_max: 1', 'read_bytes_max: 0')),
  row('schema.type', 'a limit without end', 'actions:14', edit('actions', 'read_bytes_max: 1', 'read_bytes_max: .inf')),
  row('schema.value', 'a limit beyond all limits', 'actions:11', edit('actions', 'depth_max: 8', 'depth_max: 65')),
  row('schema.value', 'a pattern as extension', 'actions:7', edit('actions', '[.txt]', "['.*']")),
  row('schema.type', 'yes for true', 'lanes:10', edit('lanes', 'required: true', 'required: yes')),
  row('lane.duplicate_id', 'a lane twice', 'lanes:11', { lanes: utf8(RIGHT.lanes + LANE) }),
  row('lane.unknown_role', 'a role that there is not', 'lanes:7', edit('lanes', '[WORKER]', '[WORKER, GHOST]')),
  row('role.duplicate_id', 'a role twice', 'roles:9', { roles: utf8(RIGHT.roles + ROLE) }),
  row('role.unknown_lane', 'a lane that there is not', 'roles:8', edit('roles', '[FILES]', '[FILES, EXPORT]')),
  row('pair.one_sided', 'the role does not list the lane', 'lanes:7', edit('roles', '[FILES]', '[]')),
  row('pair.one_sided', 'the lane does not name the role', 'roles:8', edit('lanes', '[WORKER]', '[]')),
  row('prohibition.unknown', 'silent_changes', 'lanes:9', edit('lanes', '[external_export]', '[silent_changes]')),
  row('prohibition.unknown', 'constructor', 'lanes:9', edit('lanes', '[external_export]', '[constructor]')),
  row('lane.exports_content', 'nothing is withheld', 'lanes:11', laneWith('exports_content: true')),
  row(
    'lane.exports_content',
    'exports need no approval',
    'lanes:12',
    laneWith('withholds_content: true', 'exports_content: true'),
  ),
  row('call.duplicate_id', 'a rule twice', 'lanes:13', laneWith('calls:', CALL_RULE, CALL_RULE)),
  row(
    'call.tool_not_listed',
    'a tool that the lane does not list',
    'lanes:12',
    laneWith('calls:', CALL_RULE.replace('sandbox.read_file', 'mail.send')),
  ),
  row(
    'call.approval_missing',
    'no approval rule for it',
    'lanes:12',
    laneWith('calls:', CALL_RULE.replace('allow', 'approval')),
  ),
  row('approval.unknown_subject', 'no call rule has this id', 'actions:27', approvals('call.reads', 'BOSS')),
  row('action.duplicate', 'THINK twice', 'actions:6', edit('actions', 'action: WRITE_FILE', 'action: THINK')),
  row('action.unknown', 'EXECUTE_SHELL', 'actions:5', edit('actions', 'action: THINK', 'action: EXECUTE_SHELL')),
  row('action.unknown_lane', 'a lane that there is not', 'actions:8', edit('actions', 'lane: FILES', 'lane: OTHER')),
  row('extensions.unknown_argument', 'content', 'actions:7', edit('actions', '{ path:', '{ content:')),
  row('extensions.unknown_argument', '__proto__', 'actions:7', edit('actions', '{ path:', '{ __proto__:')),
  row(
    'extensions.unknown_argument',
    'not even a list',
    'actions:7',
    edit('actions', '{ path: [.txt] }', '{ PATH: 1 }'),
  ),
  row('limits.content_exceeds_payload', 'no room', 'actions:13', edit('actions', ' 2047', ' 2048')),
  row('approval.duplicate', 'WRITE_FILE twice', 'actions:27', approvals('WRITE_FILE', 'BOSS')),
  row('approval.unknown_subject', 'THINK', 'actions:27', approvals('THINK', 'BOSS')),
  row('approval.unknown_subject', 'no action', 'actions:27', approvals('EXECUTE_SHELL', 'BOSS')),
  row('approval.unknown_role', 'an unknown role', 'actions:27', approvals('promotion', 'GHOST')),
  row('approval.unknown_role', 'an agent', 'actions:27', approvals('promotion', 'WORKER')),
  row('decision_point.duplicate_name', 'two of one name', 'actions:20', points(POINT, POINT)),
  row('decision_point.url', 'no TLS', 'actions:20', points({ ...POINT, url: 'http://a.example' })),
  row('decision_point.url', 'a password', 'actions:20', points({ ...POINT, url: 'https://u:p@a.example' })),
  row('decision_point.url', 'no address', 'actions:20', points({ ...POINT, url: '/v1' })),
  row('decision_point.unknown_action', 'no tool', 'actions:20', points({ ...POINT, actions: ['CALL_TOOL:x.y'] })),
  row('decision_point.unknown_action', 'no step', 'actions:20', points({ ...POINT, actions: ['export'] })),
  row('decision_point.unknown_action', 'no run', 'actions:20', points({ ...POINT, actions: ['THINK'] })),
  row(
    'limits.path_exceeds_payload',
    'no room',
    'actions:12',
    edit('actions', 'payload_bytes_max: 2048', 'payload_bytes_max: 1024'),
  ),
];

test('a valid policy has no finding, and is indexed by its ids', () => {
  const { findings, policy } = checkPolicy(filesWith({}));
  expect(findings).toEqual([]);
  expect([...policy!.lanes.keys()]).toEqual(['FILES']);
  expect([...policy!.roles.keys()]).toEqual(['WORKER']);
  expect([...policy!.actions.keys()]).toEqual(['THINK', 'WRITE_FILE']);
  expect(policy!.lanes.get('FILES')!.scope.prohibits).toEqual(['external_export']);
  expect(policy!.limits.content_bytes_max).toBe(2047);
  expect(policy!.exposure).toBe('decision');
  expect(policy!.approvals).toEqual([]);
  expect(policy!.budgets).toEqual({});
  expect(policy!.retries).toEqual({ max: 0, backoff_ms: 0 });
  expect(policy!.flags.size).toBe(0);
  expect(checkPolicy(filesWith(approvals('promotion', 'BOSS'))).findings).toEqual([]);
});

describe('C55 an invalid policy is rejected, with the rule, the file and the line', () => {
  test.each(ROWS)('$rule: $why', ({ rule, at, change }) => {
    const { findings, policy } = checkPolicy(filesWith(change));
    expect(policy).toBeNull();
    const [name, line] = at.split(':');
    expect(findings).toContainEqual(expect.objectContaining({ rule, file: `conf/${name}.yaml`, line: Number(line) }));
  });

  test('every rule has a row', () => {
    expect(new Set(ROWS.map(({ rule }) => rule))).toEqual(new Set(FINDING_RULES));
  });

  test.each(ROWS)('$rule: $why: is reported once', ({ change }) => {
    const lines = checkPolicy(filesWith(change)).findings.map(formatFinding);
    expect(new Set(lines).size).toBe(lines.length);
  });
});

describe('the text of a finding', () => {
  test('is one line of printable ASCII, whatever the file contains', () => {
    const { findings } = checkPolicy(filesWith(edit('roles', 'class: agent', '"a\\u202e\\n\\u001b[31mÄ😀": 1')));
    expect(findings.map(({ message }) => message)).toContain(
      '/roles/0/a\\u{202e}\\u{a}\\u{1b}[31m\\u{c4}\\u{1f600} is not known',
    );
    for (const finding of findings) expect(formatFinding(finding)).toMatch(/^[ -~]*$/u);
  });

  test('names file and line in the form that editors expect', () => {
    const { findings } = checkPolicy(filesWith(edit('roles', '[FILES]', '[]')));
    expect(findings.map(formatFinding)).toEqual([
      'conf/lanes.yaml:7 pair.one_sided: lane "FILES" names role "WORKER", which does not list the lane',
    ]);
  });

  test('findings of all three files are reported together', () => {
    const { findings } = checkPolicy({
      lanes: { path: 'a', bytes: utf8('[]') },
      roles: { path: 'b', bytes: utf8('a: *b') },
      actions: { path: 'c', bytes: utf8('a: 1') },
    });
    expect(new Set(findings.map(({ file }) => file))).toEqual(new Set(['a', 'b', 'c']));
  });

  test('a file with more unknown keys than are reported still has findings', () => {
    const keys = Array.from({ length: 300 }, (_, index) => `    k${index}: 1\n`).join('');
    const { findings, policy } = checkPolicy(filesWith({ roles: utf8(RIGHT.roles + keys) }));
    expect(policy).toBeNull();
    expect(findings[0]).toMatchObject({ rule: 'schema.unknown_key', line: 9, message: '/roles/0/k0 is not known' });
  });

  test('names the version that a file must have', () => {
    const { findings } = checkPolicy(filesWith(edit('roles', 'contract_version: v1', 'contract_version: v2')));
    expect(findings.map(formatFinding)).toEqual(['conf/roles.yaml:2 version.mismatch: contract_version must be v1']);
  });

  test('a policy with endless mistakes has 200 findings', () => {
    const roles = RIGHT.roles.replace('[FILES]', `[${'GHOST, '.repeat(256).slice(0, -2)}]`);
    const { findings } = checkPolicy(filesWith({ roles: utf8(roles) }));
    expect(findings).toHaveLength(200);
  });
});

describe('loadPolicy', () => {
  const bytes = (change: Partial<Record<PolicyFile, Uint8Array>>) => {
    const files = filesWith(change);
    return { lanes: files.lanes.bytes, roles: files.roles.bytes, actions: files.actions.bytes };
  };

  test('returns the checked policy', () => {
    expect(loadPolicy(bytes({}))).toEqual(checkPolicy(filesWith({})).policy);
  });

  test.each(ROWS)('throws POLICY_INVALID for $rule: $why', ({ rule, change }) => {
    const load = () => loadPolicy(bytes(change));
    expect(load).toThrow(PolicyError);
    expect(load).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }));
    expect(load).toThrow(rule);
  });

  test('names each of up to five findings', () => {
    const unknown = (lane: string) =>
      `roles.yaml:8 role.unknown_lane: role "WORKER" lists lane "${lane}", which is not in the lanes`;
    const load = (...lanes: string[]) => {
      const roles = RIGHT.roles.replace('[FILES]', `[${['FILES', ...lanes].join(', ')}]`);
      return () => loadPolicy(bytes({ roles: utf8(roles) }));
    };
    expect(load('A')).toThrow(
      new PolicyError({ code: 'POLICY_INVALID', message: `the policy is invalid: ${unknown('A')}` }),
    );
    const five = ['A', 'B', 'C', 'D', 'E'];
    expect(load(...five)).toThrow(
      new PolicyError({
        code: 'POLICY_INVALID',
        message: `the policy is invalid: ${five.map(unknown).join('; ')}`,
      }),
    );
  });

  test('names the first five findings and the number of the others', () => {
    const roles = RIGHT.roles.replace('[FILES]', '[FILES, A, B, C, D, E, F, G]');
    expect(() => loadPolicy(bytes({ roles: utf8(roles) }))).toThrow(
      /^the policy is invalid: (?:[^;]+; ){5}and 2 more$/,
    );
  });

  test('a policy consists of exactly three files', () => {
    expect(Object.keys(RIGHT)).toEqual([...POLICY_FILES]);
  });
});
