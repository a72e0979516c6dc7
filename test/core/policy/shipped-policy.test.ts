// The shipped policy against the tables of the contract, as literals.

import { describe, expect, test } from '@jest/globals';
import { ACTION_NAMES, ACTIONS } from '../../../src/core/contract/policy/catalogue.js';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import { checkPolicy } from '../../../src/core/policy/files/check-policy.js';
import { ACTION_POLICIES, shippedBytes, shippedPolicy } from '../../fixtures/shipped-policy.js';

const policy = shippedPolicy();

interface LaneRow {
  readonly roles: readonly string[];
  readonly tools: readonly string[];
  readonly writes: readonly string[];
  readonly requires: readonly string[];
  readonly prohibits: readonly string[];
}

const LANES: Readonly<Record<string, LaneRow>> = {
  SANDBOX_FILES: {
    roles: ['SANDBOX_AGENT'],
    tools: [
      'sandbox.read_file',
      'sandbox.list_files',
      'sandbox.write_file',
      'sandbox.create_directory',
      'sandbox.delete_file',
      'sandbox.rename_file',
    ],
    writes: ['sandbox_files upsert'],
    requires: ['case_id', 'run_id'],
    prohibits: ['cross_case_lookup', 'external_export', 'shared_knowledge_write'],
  },
  SESSION_CHECKS: {
    roles: ['SESSION_RUNNER'],
    tools: ['session.verify', 'session.review'],
    writes: [],
    requires: ['case_id', 'run_id'],
    prohibits: ['cross_case_lookup', 'external_export', 'shared_knowledge_write'],
  },
  TOOL_INTERVIEW_CAPTURE: {
    roles: ['INTERVIEW_AGENT'],
    tools: ['dictation.start', 'dictation.stop', 'transcription.run', 'transcription.status', 'interview.prompt.next'],
    writes: [],
    requires: ['case_id', 'client_session_id', 'run_id'],
    prohibits: ['cross_case_lookup', 'external_export'],
  },
  WRITE_INTAKE_ARTIFACTS: {
    roles: ['INTERVIEW_AGENT', 'INTAKE_AGENT'],
    tools: [],
    writes: ['transcripts append', 'interview_notes append', 'entities upsert'],
    requires: ['case_id', 'run_id'],
    prohibits: ['shared_knowledge_write'],
  },
  WRITE_MAPPING_OUTPUTS: {
    roles: ['MAPPING_AGENT'],
    tools: [],
    writes: ['facts append', 'evidence_map append', 'coa_map append'],
    requires: ['case_id', 'run_id', 'coa_version'],
    prohibits: ['shared_knowledge_write'],
  },
  PROMOTE_SHARED_KNOWLEDGE: {
    roles: ['GOVERNANCE_AGENT', 'ATTORNEY_ADMIN'],
    tools: [],
    writes: ['shared_playbooks append', 'shared_heuristics append'],
    requires: ['promotion_ticket_id', 'run_id'],
    prohibits: ['raw_case_text', 'client_identity', 'privileged_notes'],
  },
  EXPORT_CASE_DATA: {
    roles: ['ATTORNEY_ADMIN'],
    tools: ['export_bundle.create', 'export_bundle.validate', 'export_bundle.signoff', 'export_bundle.download'],
    writes: ['export_bundles append', 'audit_ledger append'],
    requires: ['case_id', 'run_id', 'export_reason'],
    prohibits: ['raw_external_destination', 'unaudited_delivery'],
  },
};

const ROLES: Readonly<Record<string, readonly [string, ...string[]]>> = {
  SYSTEM: ['system'],
  SANDBOX_AGENT: ['agent', 'SANDBOX_FILES'],
  SESSION_RUNNER: ['system', 'SESSION_CHECKS'],
  INTERVIEW_AGENT: ['agent', 'TOOL_INTERVIEW_CAPTURE', 'WRITE_INTAKE_ARTIFACTS'],
  INTAKE_AGENT: ['agent', 'WRITE_INTAKE_ARTIFACTS'],
  MAPPING_AGENT: ['agent', 'WRITE_MAPPING_OUTPUTS'],
  GOVERNANCE_AGENT: ['system', 'PROMOTE_SHARED_KNOWLEDGE'],
  ATTORNEY_ADMIN: ['human', 'PROMOTE_SHARED_KNOWLEDGE', 'EXPORT_CASE_DATA'],
};

const rowOf = ({ allowed_callers, allowed_actions, scope }: Lane): LaneRow => ({
  roles: allowed_callers.roles,
  tools: allowed_actions.tools ?? [],
  writes: (allowed_actions.writes ?? []).map(({ table, mode }) => `${table} ${mode}`),
  requires: scope.requires,
  prohibits: scope.prohibits,
});

test.each(ACTION_POLICIES)('S4-02 D20 lanes, roles and %s have no finding', (actions) => {
  const bytes = shippedBytes(actions);
  const file = (name: keyof typeof bytes) => ({ path: name, bytes: bytes[name] });
  expect(checkPolicy({ lanes: file('lanes'), roles: file('roles'), actions: file('actions') }).findings).toEqual([]);
});

describe('lanes.yaml and roles.yaml', () => {
  test('have the lanes of the contract, SANDBOX_FILES and SESSION_CHECKS', () => {
    expect(Object.fromEntries([...policy.lanes].map(([id, lane]) => [id, rowOf(lane)]))).toEqual(LANES);
  });

  test('have the roles of the contract, SANDBOX_AGENT and SESSION_RUNNER', () => {
    const roles = [...policy.roles].map(([id, role]) => [id, [role.class, ...role.privileges.lanes]]);
    expect(Object.fromEntries(roles)).toEqual(ROLES);
  });

  test('D18 do not have SYSTEM_OVERRIDE', () => {
    expect(policy.lanes.has('SYSTEM_OVERRIDE')).toBe(false);
    expect(policy.roles.get('ATTORNEY_ADMIN')!.privileges.lanes).toEqual([
      'PROMOTE_SHARED_KNOWLEDGE',
      'EXPORT_CASE_DATA',
    ]);
  });

  test('S4-72 let only GOVERNANCE_AGENT and ATTORNEY_ADMIN promote', () => {
    expect(mayUse('PROMOTE_SHARED_KNOWLEDGE')).toEqual(['GOVERNANCE_AGENT', 'ATTORNEY_ADMIN']);
  });

  test('S4-75 let only ATTORNEY_ADMIN export', () => {
    expect(mayUse('EXPORT_CASE_DATA')).toEqual(['ATTORNEY_ADMIN']);
  });

  test("S4-62 let no lane's records contain text, and audit every lane", () => {
    for (const lane of policy.lanes.values()) {
      expect(lane.allow_embedded_text).toBeUndefined();
      expect(lane.audit).toEqual({ required: true, level: 'full' });
    }
  });

  test('let SANDBOX_FILES do what the built-in actions need, and nothing else', () => {
    const definitions = ACTION_NAMES.map((name) => ACTIONS[name]);
    const tools = definitions.flatMap(({ tool }) => (tool === null ? [] : [tool]));
    const writes = definitions.flatMap(({ write }) => (write === null ? [] : [`${write.table} ${write.mode}`]));
    const { tools: allowed, writes: written } = rowOf(policy.lanes.get('SANDBOX_FILES')!);
    expect(new Set(allowed)).toEqual(new Set(tools));
    expect(new Set(written)).toEqual(new Set(writes));
  });
});

const mayUse = (lane_id: string): string[] =>
  [...policy.roles.values()]
    .filter(({ privileges }) => privileges.lanes.includes(lane_id))
    .map(({ role_id }) => role_id);

const TEXT = ['.txt', '.md'];
const CODE = [...TEXT, '.json', '.yaml', '.yml', '.ts', '.js', '.mjs', '.py', '.html', '.css'];

describe.each([
  ['actions.yaml', TEXT],
  ['actions.coding.yaml', CODE],
])('%s', (file, endings) => {
  const { actions, limits, sandbox, exposure, knobs } = shippedPolicy(file);

  test('S0-36 lists the eight actions', () => {
    expect([...actions.keys()]).toEqual([
      'THINK',
      'FINISH',
      'READ_FILE',
      'WRITE_FILE',
      'DELETE_FILE',
      'RENAME_FILE',
      'LIST_FILES',
      'CREATE_DIRECTORY',
    ]);
  });

  test('S1-13 S1-16 S1-18 C24 C25 D20 restricts extensions where files change or are deleted, and nowhere else', () => {
    const extensions = [...actions.values()].flatMap((rule) =>
      rule.extensions ? [[rule.action, rule.extensions]] : [],
    );
    expect(Object.fromEntries(extensions)).toEqual({
      WRITE_FILE: { path: endings },
      DELETE_FILE: { path: endings },
      RENAME_FILE: { source: endings, destination: endings },
    });
  });

  test('C11 C34 has the default limits', () => {
    expect(limits).toEqual({
      payload_bytes_max: 65_536,
      payload_depth_max: 32,
      path_bytes_max: 1_024,
      content_bytes_max: 49_152,
      read_bytes_max: 1_048_576,
      list_entries_max: 10_000,
      steps_per_run_max: 100_000,
      denials_per_run_max: 10,
    });
    expect(sandbox).toEqual({ bytes_max: 104_857_600, files_max: 10_000, depth_max: 16, portable_names: false });
  });

  test('C01 C19 C22 C23 C52 has the knobs of the contract', () => {
    expect(exposure).toBe('detailed');
    expect(knobs).toEqual({
      checkpoints: 'batch',
      duplicate_proposal_ids: 'reject',
      dotdot: 'reject',
      extensions_stage: 'authorize',
      on_child_failure: 'fail',
    });
  });
});

test('D20 neither action policy lets an agent write a shell script', () => {
  for (const file of ACTION_POLICIES) {
    const endings = shippedPolicy(file).actions.get('WRITE_FILE')!.extensions!['path']!;
    expect(endings.filter((ending) => ['.sh', '.bash', '.ps1', '.bat', '.cmd'].includes(ending))).toEqual([]);
  }
});
