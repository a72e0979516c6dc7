// A policy of one lane without grants, for tests that add a single thing to it.

import type { ActionsPolicy } from '../../../src/core/contract/policy/actions-policy.js';
import {
  createCatalogue,
  NO_REGISTRATIONS,
  type Catalogue,
  type TargetDefinition,
  type ToolDefinition,
} from '../../../src/core/contract/policy/catalogue.js';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import type { Role } from '../../../src/core/contract/policy/roles.js';
import type { PolicyParts } from '../../../src/core/policy/files/policy-consistency.js';

const HEADER = { version: 'v1', contract_version: 'v1', last_updated: '2026-01-31' } as const;

export const bareLane = (changes: Partial<Lane> = {}): Lane => ({
  lane_id: 'WORK',
  purpose: 'Work.',
  allowed_callers: { roles: [] },
  allowed_actions: {},
  scope: { requires: [], prohibits: [] },
  audit: { required: true, level: 'full' },
  ...changes,
});

export const bareRole = (changes: Partial<Role> = {}): Role => ({
  role_id: 'WORKER',
  description: 'Works.',
  class: 'agent',
  privileges: { lanes: [] },
  ...changes,
});

export const BARE_ACTIONS: ActionsPolicy = {
  ...HEADER,
  actions: [{ action: 'THINK' }],
  limits: {
    payload_bytes_max: 2_048,
    payload_depth_max: 8,
    path_bytes_max: 1_024,
    content_bytes_max: 2_047,
    read_bytes_max: 1,
    list_entries_max: 1,
    steps_per_run_max: 1,
    denials_per_run_max: 1,
  },
  sandbox: { bytes_max: 1, files_max: 1, depth_max: 1, portable_names: false },
  response: { exposure: 'decision' },
  knobs: {
    duplicate_proposal_ids: 'reject',
    dotdot: 'reject',
    extensions_stage: 'authorize',
    on_child_failure: 'fail',
  },
};

export const partsWith = ({
  lanes = [bareLane()],
  roles = [bareRole()],
  actions = {},
}: {
  readonly lanes?: Lane[];
  readonly roles?: Role[];
  readonly actions?: Partial<ActionsPolicy>;
}): PolicyParts => ({
  lanes: { ...HEADER, lanes },
  roles: { ...HEADER, roles },
  actions: { ...BARE_ACTIONS, ...actions },
});

const CODE = { idempotent: true, timeout_ms: 1, result_bytes_max: 2, confidentiality: [] };

const toolNamed = (name: string, outside: boolean): ToolDefinition => ({
  name,
  summary: name,
  input: {},
  output: {},
  ...CODE,
  outside,
});

const targetNamed = (name: string, plane: 'case' | 'shared'): TargetDefinition => ({
  name,
  summary: name,
  record: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: false },
  key: ['id'],
  modes: ['append'],
  plane,
  place: 'elsewhere',
  confidentiality: [],
});

/** Two tools, two tables and an action: `inside.run`, `outside.send`, `case_notes`, `lessons` and DIAL. */
export const CATALOGUE: Catalogue = createCatalogue({
  ...NO_REGISTRATIONS,
  tools: [toolNamed('inside.run', false), toolNamed('outside.send', true)],
  targets: [targetNamed('case_notes', 'case'), targetNamed('lessons', 'shared')],
  actions: [
    {
      name: 'DIAL',
      summary: 'Dials.',
      risk: 'write',
      args: {},
      needs: { tool: 'telephone.dial' },
      ...CODE,
      outside: false,
    },
    {
      name: 'NOTE',
      summary: 'Notes.',
      risk: 'write',
      args: {},
      needs: { write: { table: 'case_notes', mode: 'append' } },
      ...CODE,
      outside: false,
    },
  ],
});
