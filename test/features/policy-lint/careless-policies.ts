// Careless policies: each is the shipped one with one small edit, and the finding that the linter must report, with its
// rule and line.

import type { PolicyFile } from '../../../src/core/contract/policy/pins.js';
import type { LintSeverity } from '../../../src/home/policy/policy-linter.js';
import type { LintRule } from '../../../src/features/policy-lint/lint-rules.js';

export interface Edit {
  readonly file: PolicyFile;
  /** The lane, role or action whose text is edited; the whole file if absent. */
  readonly in?: string;
  readonly from: string;
  readonly to: string;
}

export interface Careless {
  readonly what: string;
  readonly edits: readonly Edit[];
  readonly finds: {
    readonly rule: LintRule;
    readonly file: PolicyFile;
    /** After the place of `in`, the first line that contains this text. */
    readonly in?: string;
    readonly at: string;
    /** Default: error. */
    readonly severity?: LintSeverity;
  };
}

const EXPORT_RULE = '  - { for: export, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 10080 }\n';
const PROMOTION_RULE = EXPORT_RULE.replace('export', 'promotion');
const edit = (file: PolicyFile, where: string, from: string, to: string): Edit => ({ file, in: where, from, to });
const lane = (lane_id: string, from: string, to: string): Edit => edit('lanes', lane_id, from, to);
/** Lets a role use a lane, in both files. */
const granting = (role_id: string, lane_id: string, [lanes, callers]: readonly [string, string]): readonly Edit[] => [
  edit('roles', role_id, `lanes: [${lanes}]`, `lanes: [${lanes}, ${lane_id}]`),
  lane(lane_id, `roles: [${callers}]`, `roles: [${callers}, ${role_id}]`),
];
/** A lane without one item, and the finding about it. */
const without = (
  what: string,
  [lane_id, from, to]: readonly [string, string, string],
  [rule, at]: readonly [LintRule, string],
): Careless => ({
  what: `${lane_id} ${what}`,
  edits: [lane(lane_id, from, to)],
  finds: { rule, file: 'lanes', in: lane_id, at },
});
const without_prohibition = (lane_id: string, rule: LintRule, name: string, all: string): Careless => {
  const left = all.split(', ').filter((other) => other !== name);
  return without(
    `without ${name}`,
    [lane_id, `prohibits: [${all}]`, `prohibits: [${left.join(', ')}]`],
    [rule, 'prohibits:'],
  );
};
const without_field = (lane_id: string, name: string, all: string): Careless => {
  const left = all.split(', ').filter((other) => other !== name);
  return without(
    `without ${name}`,
    [lane_id, `requires: [${all}]`, `requires: [${left.join(', ')}]`],
    ['lane.scope_missing', 'requires:'],
  );
};
const with_key = (lane_id: string, key: string, rule: LintRule, severity: LintSeverity = 'error'): Careless => ({
  what: `${lane_id} with ${key}`,
  edits: [lane(lane_id, '    audit:', `    ${key}\n    audit:`)],
  finds: { rule, file: 'lanes', in: lane_id, at: key, severity },
});
/** A lane with a shell, and one call rule with these conditions. */
const with_calls = (what: string, conditions: string, rule: LintRule, severity: LintSeverity): Careless => {
  const id = 'TOOL_INTERVIEW_CAPTURE';
  const decision = severity === 'error' ? 'deny' : 'allow';
  const calls = `calls: [{ id: run, tools: [native.shell], decision: ${decision}${conditions} }]`;
  return {
    what,
    edits: [lane(id, '- dictation.start', '- native.shell'), lane(id, '    audit:', `    ${calls}\n    audit:`)],
    finds: { rule, file: 'lanes', in: id, at: 'calls:', severity },
  };
};
const ending = (what: string, action: string, [path, to]: readonly [string, string]): Careless => ({
  what,
  edits: [edit('actions', `action: ${action}`, `${path}: [.txt, .md]`, `${path}: ${to}`)],
  finds: { rule: 'action.runs', file: 'actions', in: `action: ${action}`, at: `${path}:` },
});
const as_class = (role_id: string, from: string, to: string, rule: LintRule): Careless => ({
  what: `${role_id} as ${to}`,
  edits: [edit('roles', role_id, `class: ${from}`, `class: ${to}`)],
  finds: { rule, file: 'roles', in: role_id, at: 'class:' },
});
const misspelt = (lane_id: string, from: string, to: string, rule: LintRule): Careless => ({
  what: `${lane_id} with ${to} for ${from}`,
  edits: [lane(lane_id, from, to)],
  finds: { rule, file: 'lanes', in: lane_id, at: to },
});

const PROMOTING = 'raw_case_text, client_identity, privileged_notes';
const WORKING = 'cross_case_lookup, external_export, shared_knowledge_write';

export const CARELESS: readonly Careless[] = [
  {
    what: 'exports without an approval',
    edits: [{ file: 'actions', from: EXPORT_RULE, to: '' }],
    finds: { rule: 'export.no_approval', file: 'lanes', in: 'EXPORT_CASE_DATA', at: 'EXPORT_CASE_DATA' },
  },
  {
    what: 'promotions without an approval',
    edits: [{ file: 'actions', from: PROMOTION_RULE, to: '' }],
    finds: { rule: 'promotion.no_approval', file: 'lanes', in: 'PROMOTE_SHARED', at: 'PROMOTE_SHARED_KNOWLEDGE' },
  },
  {
    what: 'an agent role that starts exports, without an approval',
    edits: [
      ...granting('SANDBOX_AGENT', 'EXPORT_CASE_DATA', ['SANDBOX_FILES', 'ATTORNEY_ADMIN']),
      { file: 'actions', from: EXPORT_RULE, to: '' },
    ],
    finds: { rule: 'export.by_agent', file: 'lanes', in: 'EXPORT_CASE_DATA', at: 'roles:' },
  },
  {
    what: 'an agent role that starts exports, with an approval',
    edits: granting('MAPPING_AGENT', 'EXPORT_CASE_DATA', ['WRITE_MAPPING_OUTPUTS', 'ATTORNEY_ADMIN']),
    finds: { rule: 'export.by_agent', file: 'lanes', in: 'EXPORT_CASE_DATA', at: 'roles:', severity: 'warning' },
  },
  {
    what: 'an agent role that starts promotions',
    edits: granting('MAPPING_AGENT', 'PROMOTE_SHARED_KNOWLEDGE', [
      'WRITE_MAPPING_OUTPUTS',
      'GOVERNANCE_AGENT, ATTORNEY_ADMIN',
    ]),
    finds: { rule: 'promotion.by_agent', file: 'lanes', in: 'PROMOTE_SHARED', at: 'roles:' },
  },
  {
    what: 'an agent role that verifies its own session',
    edits: granting('SANDBOX_AGENT', 'SESSION_CHECKS', ['SANDBOX_FILES', 'SESSION_RUNNER']),
    finds: { rule: 'lane.session_checks', file: 'lanes', in: 'SESSION_CHECKS', at: 'roles:' },
  },
  without(
    'that verifies as well',
    ['SANDBOX_FILES', '- sandbox.read_file', '- session.verify\n        - sandbox.read_file'],
    ['lane.session_checks', 'tools:'],
  ),
  without(
    'with an export tool',
    ['SANDBOX_FILES', '- sandbox.read_file', '- export_bundle.create'],
    ['export.prohibition_missing', 'prohibits:'],
  ),
  ...PROMOTING.split(', ').map((name) =>
    without_prohibition('PROMOTE_SHARED_KNOWLEDGE', 'promotion.prohibition_missing', name, PROMOTING),
  ),
  without(
    'without any prohibition',
    ['PROMOTE_SHARED_KNOWLEDGE', `prohibits: [${PROMOTING}]`, 'prohibits: []'],
    ['promotion.prohibition_missing', 'prohibits:'],
  ),
  ...['raw_external_destination', 'unaudited_delivery'].map((name) =>
    without_prohibition(
      'EXPORT_CASE_DATA',
      'export.prohibition_missing',
      name,
      'raw_external_destination, unaudited_delivery',
    ),
  ),
  ...WORKING.split(', ').map((name) => without_prohibition('SANDBOX_FILES', 'lane.prohibition_missing', name, WORKING)),
  ...['cross_case_lookup', 'external_export'].map((name) =>
    without_prohibition('SESSION_CHECKS', 'lane.prohibition_missing', name, WORKING),
  ),
  without_prohibition(
    'WRITE_INTAKE_ARTIFACTS',
    'lane.prohibition_missing',
    'shared_knowledge_write',
    'shared_knowledge_write',
  ),
  ...['SANDBOX_FILES', 'SESSION_CHECKS', 'WRITE_MAPPING_OUTPUTS', 'PROMOTE_SHARED_KNOWLEDGE', 'EXPORT_CASE_DATA'].map(
    (lane_id) =>
      without(
        'without an audit',
        [lane_id, 'required: true', 'required: false'],
        ['lane.audit_not_required', 'required: false'],
      ),
  ),
  without_field('SANDBOX_FILES', 'case_id', 'case_id, run_id'),
  without_field('SANDBOX_FILES', 'run_id', 'case_id, run_id'),
  without_field('EXPORT_CASE_DATA', 'export_reason', 'case_id, run_id, export_reason'),
  without_field('EXPORT_CASE_DATA', 'case_id', 'case_id, run_id, export_reason'),
  without_field('PROMOTE_SHARED_KNOWLEDGE', 'promotion_ticket_id', 'promotion_ticket_id, run_id'),
  without_field('TOOL_INTERVIEW_CAPTURE', 'client_session_id', 'case_id, client_session_id, run_id'),
  without_field('WRITE_MAPPING_OUTPUTS', 'coa_version', 'case_id, run_id, coa_version'),
  with_key('WRITE_MAPPING_OUTPUTS', 'cross_case_reads: true', 'lane.cross_case_reads'),
  with_key('WRITE_INTAKE_ARTIFACTS', 'allow_embedded_text: true', 'lane.embedded_text'),
  with_key('SANDBOX_FILES', 'inherits_case_id: false', 'lane.drops_case'),
  with_key('SANDBOX_FILES', 'partial_outputs: true', 'lane.partial_outputs', 'warning'),
  as_class('SANDBOX_AGENT', 'agent', 'human', 'role.agent_as_human'),
  as_class('INTERVIEW_AGENT', 'agent', 'human', 'role.agent_as_human'),
  ...['intake-bot', 'IntakeAgent', 'intake.ai', 'intake:llm2'].map((name) => ({
    what: `a person's role that is called ${name}`,
    edits: [
      edit(
        'roles',
        'ATTORNEY_ADMIN',
        'EXPORT_CASE_DATA]',
        `EXPORT_CASE_DATA]\n  - role_id: ${name}\n    description: x\n    class: human\n    privileges: { lanes: [] }`,
      ),
    ],
    finds: { rule: 'role.agent_as_human', file: 'roles', in: name, at: 'class:' } as const,
  })),
  as_class('SANDBOX_AGENT', 'agent', 'system', 'role.agent_as_system'),
  as_class('MAPPING_AGENT', 'agent', 'system', 'role.agent_as_system'),
  {
    what: 'checks of sessions made by an agent role',
    edits: [edit('roles', 'SESSION_RUNNER', 'class: system', 'class: agent')],
    finds: { rule: 'lane.session_checks', file: 'lanes', in: 'SESSION_CHECKS', at: 'roles:' },
  },
  {
    what: 'an approver who works on files as an agent does',
    edits: granting('ATTORNEY_ADMIN', 'SANDBOX_FILES', ['PROMOTE_SHARED_KNOWLEDGE, EXPORT_CASE_DATA', 'SANDBOX_AGENT']),
    finds: { rule: 'role.agent_as_human', file: 'roles', in: 'ATTORNEY_ADMIN', at: 'class:' },
  },
  {
    what: 'an approver who writes records as an agent does',
    edits: granting('ATTORNEY_ADMIN', 'WRITE_MAPPING_OUTPUTS', [
      'PROMOTE_SHARED_KNOWLEDGE, EXPORT_CASE_DATA',
      'MAPPING_AGENT',
    ]),
    finds: { rule: 'role.acts_and_approves', file: 'roles', in: 'ATTORNEY_ADMIN', at: 'class:' },
  },
  {
    what: 'a rename from any file',
    edits: [edit('actions', 'action: RENAME_FILE', '      source: [.txt, .md]\n', '')],
    finds: { rule: 'action.path_unrestricted', file: 'actions', in: 'action: RENAME_FILE', at: 'RENAME_FILE' },
  },
  {
    what: 'a rename to any file',
    edits: [edit('actions', 'action: RENAME_FILE', '      destination: [.txt, .md]\n', '')],
    finds: { rule: 'action.path_unrestricted', file: 'actions', in: 'action: RENAME_FILE', at: 'RENAME_FILE' },
  },
  {
    what: 'a write to any file',
    edits: [edit('actions', 'action: WRITE_FILE', '    extensions:\n      path: [.txt, .md]\n', '')],
    finds: { rule: 'action.path_unrestricted', file: 'actions', in: 'action: WRITE_FILE', at: 'WRITE_FILE' },
  },
  {
    what: 'a deletion of any file',
    edits: [edit('actions', 'action: DELETE_FILE', '    extensions:\n      path: [.txt, .md]\n', '')],
    finds: { rule: 'action.path_unrestricted', file: 'actions', in: 'action: DELETE_FILE', at: 'DELETE_FILE' },
  },
  ending('a write of shell scripts', 'WRITE_FILE', ['path', '[.txt, .md, .sh]']),
  ending('a write of JavaScript', 'WRITE_FILE', ['path', '[.txt, .js]']),
  ending('a write of package.json', 'WRITE_FILE', ['path', '[.md, .json]']),
  ending('a write of a Makefile by its ending', 'WRITE_FILE', ['path', '[.mk]']),
  ending('a write of Python in capitals', 'WRITE_FILE', ['path', '[.PY]']),
  ending('a rename to a script', 'RENAME_FILE', ['destination', '[.txt, .md, .bat]']),
  ending('a rename of a script', 'RENAME_FILE', ['source', '[.txt, .md, .py]']),
  ending('a deletion of build files', 'DELETE_FILE', ['path', '[.txt, .md, .toml]']),
  {
    what: 'an action in the export lane',
    edits: [edit('actions', 'action: WRITE_FILE', '    extensions:', '    lane: EXPORT_CASE_DATA\n    extensions:')],
    finds: { rule: 'action.privileged_lane', file: 'actions', in: 'action: WRITE_FILE', at: 'lane:' },
  },
  {
    what: 'an approval for an action that is not listed',
    edits: [{ file: 'actions', from: EXPORT_RULE, to: EXPORT_RULE + EXPORT_RULE.replace('export', 'CALL_TOOL') }],
    finds: { rule: 'approval.unlisted_action', file: 'actions', at: 'for: CALL_TOOL' },
  },
  {
    what: 'an approval that holds for a year',
    edits: [{ file: 'actions', from: EXPORT_RULE, to: EXPORT_RULE.replace('10080', '525600') }],
    finds: { rule: 'approval.long_lived', file: 'actions', at: '525600', severity: 'warning' },
  },
  {
    what: 'tools without a budget',
    edits: [{ file: 'actions', from: '  - action: CREATE_DIRECTORY\n', to: '  - action: CALL_TOOL\n' }],
    finds: { rule: 'budget.no_tool_calls', file: 'actions', at: 'CALL_TOOL', severity: 'warning' },
  },
  {
    what: 'denials without an end',
    edits: [{ file: 'actions', from: 'denials_per_run_max: 10 ', to: 'denials_per_run_max: 100000 ' }],
    finds: { rule: 'limits.denials', file: 'actions', at: 'denials_per_run_max: 100000' },
  },
  {
    what: 'a shell without call rules',
    edits: [lane('TOOL_INTERVIEW_CAPTURE', '- dictation.start', '- native.shell')],
    finds: {
      rule: 'call.unrestricted',
      file: 'lanes',
      in: 'TOOL_INTERVIEW_CAPTURE',
      at: 'native.shell',
      severity: 'warning',
    },
  },
  with_calls('a call rule for any command', '', 'call.any_command', 'warning'),
  with_calls('a call rule for every option', ', commands: [ls]', 'call.any_option', 'warning'),
  with_calls('a call rule that denies nothing', ', commands: [rm], names: [rm]', 'call.never_matches', 'error'),
  {
    what: 'heads that are signed late',
    edits: [{ file: 'actions', from: 'checkpoints: batch', to: 'checkpoints: tree_end' }],
    finds: { rule: 'checkpoints.late', file: 'actions', at: 'checkpoints: tree_end', severity: 'warning' },
  },
  {
    what: 'a rule for requests that no agent makes',
    edits: [
      {
        file: 'actions',
        from: 'checkpoints: batch',
        to: 'checkpoints: batch\n  finish_with_pending_request: wait',
      },
    ],
    finds: {
      rule: 'finish.no_request',
      file: 'actions',
      at: 'finish_with_pending_request: wait',
      severity: 'warning',
    },
  },
  misspelt('SANDBOX_FILES', 'sandbox.read_file', 'sandbox.raed_file', 'tool.misspelt'),
  misspelt('EXPORT_CASE_DATA', 'export_bundle.create', 'export_bundle.creat', 'tool.misspelt'),
  misspelt('SESSION_CHECKS', 'session.verify', 'session.verifyy', 'tool.misspelt'),
  misspelt('WRITE_MAPPING_OUTPUTS', 'evidence_map', 'evidence_mop', 'table.misspelt'),
  misspelt('SANDBOX_FILES', 'table: sandbox_files', 'table: sandbox_file', 'table.misspelt'),
  {
    what: 'a tool without a registration',
    edits: [lane('TOOL_INTERVIEW_CAPTURE', '- dictation.start', '- telephone.dial')],
    finds: {
      rule: 'tool.unknown',
      file: 'lanes',
      in: 'TOOL_INTERVIEW_CAPTURE',
      at: 'telephone.dial',
      severity: 'warning',
    },
  },
];
