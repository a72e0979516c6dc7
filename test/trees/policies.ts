// The policies of random trees: the shipped files, with additional lanes for tools and records, and small limits, so
// that every limit is reached within a few turns.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { machineDefinitions } from '../../machines/index.js';
import type { Artifact } from '../../src/core/contract/artifact-ref.js';
import type { Registrations } from '../../src/core/contract/policy/catalogue.js';
import { machinesFor, policyOf } from '../../src/kernel/pinned-policy.js';
import type { Policy } from '../../src/core/policy/policy.js';
import { unapproved } from '../fixtures/unapproved.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';

const closed = (properties: Readonly<Record<string, object>>, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const text = { type: 'string', maxLength: 80 };
const bounds = { timeout_ms: 1_000, result_bytes_max: 10_000 };
const tool = (name: string, over: object = {}) => ({
  name,
  summary: 'A tool.',
  input: closed({ n: { type: 'integer' } }),
  output: closed({}, []),
  idempotent: false,
  ...bounds,
  outside: false,
  confidentiality: [],
  ...over,
});
const target = (name: string, over: object = {}) => ({
  name,
  summary: 'A table.',
  record: closed({ id: text }),
  key: ['id'],
  modes: ['append', 'upsert'],
  plane: 'case',
  place: 'ledger',
  confidentiality: [],
  ...over,
});
const action = (name: string, needs: object, over: object = {}) => ({
  name,
  summary: 'An action.',
  risk: 'write',
  args: closed({ n: { type: 'integer' } }),
  needs,
  idempotent: true,
  ...bounds,
  outside: false,
  confidentiality: [],
  ...over,
});

const REGISTRATIONS = {
  actions: [
    action('LOOK_UP', { read: 'entities' }, { risk: 'read', confidentiality: ['contains_phi'] }),
    action('STAMP', { write: { table: 'facts', mode: 'append' } }, { idempotent: false }),
    action('TELL', { tool: 'mail.send' }, { outside: true }),
  ],
  targets: [
    target('entities', { place: 'elsewhere', confidentiality: ['contains_privileged'] }),
    target('facts'),
    target('shared_heuristics', { plane: 'shared', place: 'elsewhere' }),
    target('shared_playbooks', { plane: 'shared' }),
  ],
  tools: [
    tool('billing.charge', { confidentiality: ['contains_pii'] }),
    tool('mail.send', { outside: true, idempotent: true }),
    tool('news.fetch', { idempotent: true }),
  ],
} as unknown as Registrations;

const LANES = `
  - lane_id: CASE_WORK
    purpose: Tools and records of one case.
    allowed_callers: { roles: [CASE_AGENT] }
    allowed_actions:
      tools: [billing.charge, mail.send, news.fetch, sandbox.read_file, sandbox.write_file]
      writes:
        - { table: facts, mode: append }
        - { table: entities, mode: upsert }
        - { table: shared_playbooks, mode: append }
        - { table: sandbox_files, mode: upsert }
      reads: [facts, entities, shared_playbooks]
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
  - lane_id: CROSS_READ
    purpose: Looks into other cases.
    allowed_callers: { roles: [CASE_AGENT] }
    allowed_actions:
      tools: [mail.send, news.fetch]
      writes: [{ table: facts, mode: append }, { table: entities, mode: append }]
      reads: [facts, entities]
    scope: { requires: [run_id], prohibits: [] }
    audit: { required: true, level: full }
    cross_case_reads: true
  - lane_id: STRICT
    purpose: Writes nothing that has come from elsewhere.
    allowed_callers: { roles: [CASE_AGENT] }
    allowed_actions:
      tools: [billing.charge, mail.send]
      writes: [{ table: facts, mode: append }]
      reads: [facts, entities]
    scope: { requires: [case_id], prohibits: [external_export] }
    audit: { required: true, level: full }
    cross_case_reads: true
    refuses_labels: [other_case, contains_pii, contains_phi]
  - lane_id: NO_CASE
    purpose: Knows no case.
    allowed_callers: { roles: [CASE_AGENT] }
    allowed_actions:
      tools: [news.fetch, mail.send]
      reads: [shared_playbooks, facts]
    scope: { requires: [run_id], prohibits: [] }
    audit: { required: true, level: full }
    inherits_case_id: false
`;
const ROLES = `
  - role_id: CASE_AGENT
    description: An agent with tools and records.
    class: agent
    privileges: { lanes: [CASE_WORK, CROSS_READ, STRICT, NO_CASE] }
  - role_id: REVIEWER
    description: A second person.
    class: human
    privileges: { lanes: [] }
`;

type Edit = readonly [string, string];
const SMALL: readonly Edit[] = [
  ['denials_per_run_max: 10 ', 'denials_per_run_max: 8 '],
  ['steps_per_run_max: 100000', 'steps_per_run_max: 40'],
];
const RECORDS: Edit = [
  '  - action: CREATE_DIRECTORY',
  '  - action: CREATE_DIRECTORY\n  - action: CALL_TOOL\n  - action: WRITE_RECORD\n  - action: READ_RECORDS\n' +
    '  - action: LOOK_UP\n    lane: CROSS_READ\n  - action: STAMP\n  - action: TELL',
];
const section = (body: string): Edit => ['\nknobs:', `\n${body}\nknobs:`];
const RETRIES = section('retries: { max: 3, backoff_ms: 1000 }');
const rule = (subject: string, quorum: number, minutes: number): string =>
  `  - { for: ${subject}, approver_roles: [ATTORNEY_ADMIN, REVIEWER], quorum: ${quorum}, expires_minutes: ${minutes} }`;
const APPROVALS = section(
  ['approvals:', rule('promotion', 1, 5), rule('export', 2, 5), rule('CALL_TOOL', 1, 2), rule('WRITE_FILE', 2, 3)].join(
    '\n',
  ),
);
const FEW_APPROVALS = section(['approvals:', rule('promotion', 2, 1), rule('WRITE_RECORD', 1, 1)].join('\n'));
const budgets = (text: string): Edit => section(`budgets: { ${text} }`);
const CONTINUE: Edit = ['on_child_failure: fail', 'on_child_failure: continue'];
const REPLAY: Edit = ['duplicate_proposal_ids: reject', 'duplicate_proposal_ids: replay'];

/** Each with its edits of actions.yaml. */
const VARIANTS = {
  plain: [RETRIES],
  patient: [RETRIES, CONTINUE, REPLAY],
  approved: [RETRIES, APPROVALS, CONTINUE],
  strict: [FEW_APPROVALS, CONTINUE],
  small: [RETRIES, CONTINUE, budgets('steps: 12, tool_calls: 6, wall_ms: 60000, bytes: 4000, tokens: 60')],
  narrow: [RETRIES, APPROVALS, CONTINUE, budgets('steps: 9, tool_calls: 4')],
  brief: [CONTINUE, RETRIES, budgets('wall_ms: 20000, tokens: 30')],
} as const satisfies Record<string, readonly Edit[]>;
export type PolicyName = keyof typeof VARIANTS;
export const POLICY_NAMES = Object.keys(VARIANTS) as readonly PolicyName[];

/** The materials of an `open`: lanes, roles, actions, machines. */
export interface Pinned {
  readonly materials: readonly Artifact[];
  readonly policy: Policy;
}

const made = new Map<PolicyName, Pinned>();

export function pinned(name: PolicyName): Pinned {
  const known = made.get(name) ?? pin(name);
  made.set(name, known);
  return known;
}

const pin = (name: PolicyName): Pinned => pinTexts(textsOf(name));

/** The files of a policy: lanes, roles, actions. */
export function textsOf(name: PolicyName): readonly [string, string, string] {
  const actions = [...SMALL, RECORDS, ...VARIANTS[name]].reduce(edited, shipped('actions'));
  return [shipped('lanes') + LANES, shipped('roles') + ROLES, actions];
}

/** @throws PolicyError POLICY_INVALID */
export function pinTexts(files: readonly string[]): Pinned {
  const policies = files.map((text): Artifact => ({ kind: 'policy', case_id: null, bytes: Buffer.from(text) }));
  // The machines are the same for every catalogue: checking the policy needs their text.
  const registered = JSON.stringify({ registrations: REGISTRATIONS });
  const bare: Artifact = { kind: 'machines', case_id: null, bytes: Buffer.from(registered) };
  const policy = policyOf([...policies, bare]);
  const text = machineDefinitions(machinesFor(policy), policy.catalogue);
  const materials = [...policies, { kind: 'machines' as const, case_id: null, bytes: Buffer.from(text) }];
  return { materials, policy: policyOf(materials) };
}

function shipped(name: string): string {
  const text = readFileSync(join(shippedContract(), 'policy', `${name}.yaml`), 'utf8');
  return name === 'actions' ? unapproved(text) : text;
}

function edited(text: string, [from, to]: Edit): string {
  if (!text.includes(from)) throw new Error(`actions.yaml has no ${from}`);
  return text.replace(from, () => to);
}
