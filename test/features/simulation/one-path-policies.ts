// Random policies and requests for the comparison of all ways to decide one proposal.

import type { Artifact } from '../../../src/core/contract/artifact-ref.js';
import {
  createCatalogue,
  type Registrations,
  type ToolDefinition,
} from '../../../src/core/contract/policy/catalogue.js';
import { definitionsOf, newTreeFlags } from '../../../src/kernel/pinned-policy.js';
import { loadPolicy } from '../../../src/core/policy/files/check-policy.js';
import type { PolicyTest } from '../../../src/features/simulation/policy-test-file.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { serviceEdit } from '../../fixtures/service.js';
import { shippedBytes } from '../../fixtures/tree.js';

export type Chance = () => number;
export const pick = <T>(chance: Chance, values: readonly T[]): T => values[Math.floor(chance() * values.length)] as T;

const tool = (name: string, required: readonly string[]): ToolDefinition => ({
  name,
  summary: 'A tool.',
  input: {
    type: 'object',
    properties: {
      amount: { type: 'integer' },
      currency: { type: 'string' },
      to: { type: 'string', format: 'email' },
      due: { type: 'string', format: 'date' },
      rate: { type: 'number' },
    },
    required: [...required],
    additionalProperties: false,
  },
  output: { type: 'object', properties: {}, additionalProperties: false },
  idempotent: false,
  timeout_ms: 1_000,
  result_bytes_max: 1_000,
  outside: name === 'mail.send',
  confidentiality: [],
});

export const REGISTRATIONS: Registrations = {
  actions: [],
  tools: [tool('billing.charge', ['amount', 'currency']), tool('mail.send', ['to'])],
  targets: [],
};

/** Spellings of a few persons. */
const ACTORS = [
  'anna',
  'Anna',
  'ANNA ',
  '\u{430}nna',
  'an\u{200b}na',
  'berta',
  'Berta',
  'robot',
  'Ivan',
  'lvan',
  'ivan',
];

/** Cedar takes no names with letters of several scripts. */
const NAMED = ['anna', 'Anna', 'berta', 'ivan', 'lvan', 'Ivan'];

const AMOUNT = (chance: Chance): number => pick(chance, [0, 5, 50, 500, 5_000]);
const CONDITIONS: readonly ((chance: Chance) => string)[] = [
  (chance) => `(principal, action == Action::"CALL_TOOL:billing.charge", resource)
when { context.args.amount > ${AMOUNT(chance)} }`,
  (chance) => `(principal, action == Action::"CALL_TOOL:billing.charge", resource)
when { context.counters.spent + context.args.amount > ${AMOUNT(chance)} }`,
  () => `(principal, action == Action::"CALL_TOOL:billing.charge", resource)
when { context.args.amount * 9223372036854775807 < 0 }`,
  () => `(principal, action == Action::"CALL_TOOL:billing.charge", resource)
when { context.args has rate && context.args.rate.greaterThan(decimal("0.5")) }`,
  (chance) => `(principal == Actor::"${pick(chance, NAMED)}", action, resource)`,
  (chance) => `(principal, action, resource) when { principal.person == "${pick(chance, ['anna', 'Berta'])}" }`,
  (chance) => `(principal, action in Action::"CALL_TOOL", resource)
unless { principal in Group::"${pick(chance, ['finance', 'staff'])}" }`,
  (
    chance,
  ) => `(principal in Role::"${pick(chance, ['SANDBOX_AGENT', 'CASE_AGENT'])}", action in Action::"risk:write", resource)
when { context.counters.writes >= ${pick(chance, [0, 1, 3])} }`,
  () =>
    `(principal, action, resource is Path) when { resource.name like ".env*" || resource in Path::"/sandbox/.git" }`,
  () => `(principal, action, resource is Path) when { context has file && context.file.exists }`,
  () => `(principal, action == Action::"CALL_TOOL:mail.send", resource)
unless { context.domains has to && context.domains.to == "customer.example" }`,
  () => `(principal, action in Action::"outside", resource)
when { context.now.toTime() < duration("8h") || context.now.toTime() >= duration("18h") }`,
  () => `(principal, action == Action::"WRITE_FILE", resource) when { context.args.content_bytes > 3 }`,
  () => `(principal, action, resource) when { context.scope has matter && context.scope.matter == "closed" }`,
];

const annotations = (chance: Chance): string =>
  pick(chance, ['', '', '@approvals("1")', '@approvals("2") @approver_role("ATTORNEY_ADMIN") @expires("8h")']);

function conditionsText(chance: Chance): string {
  const chosen = CONDITIONS.filter(() => chance() < 0.4);
  return chosen.map((make, index) => `@id("c${index}") ${annotations(chance)}\nforbid ${make(chance)};\n`).join('\n');
}

const COUNTERS = (chance: Chance): string => `version: v1
contract_version: v1
last_updated: 2026-01-05
counters:
  - name: spent
    over: ${pick(chance, ['case', 'actor', 'role', 'run', 'tree'])}
    ${pick(chance, ['window: { sliding: 24h }', 'window: { calendar: day, time_zone: UTC }', ''])}
    currency: EUR
    counts: [{ action: 'CALL_TOOL:billing.charge', sum: amount, currency: currency }]
  - name: writes
    over: ${pick(chance, ['case', 'actor'])}
    counts: [{ action: WRITE_FILE }, { action: RENAME_FILE }]
`;

const POINTS = (chance: Chance): string =>
  `\ndecision_points: ${JSON.stringify([
    {
      name: 'fraud',
      protocol: pick(chance, ['authzen', 'opa']),
      url: 'https://a.example',
      actions: [pick(chance, ['CALL_TOOL:billing.charge', 'WRITE_FILE']), 'RENAME_FILE'],
      sends: ['amount'],
      timeout_ms: 50,
    },
  ])}\n`;

export interface RandomPolicy {
  readonly policy: Policy;
  readonly artifacts: readonly Artifact[];
  readonly machines: Artifact;
}

const catalogue = createCatalogue(REGISTRATIONS);
const artifact = (kind: 'policy' | 'machines', text: string | Uint8Array): Artifact => ({
  kind,
  case_id: null,
  bytes: Buffer.from(text),
});

export function randomPolicy(chance: Chance): RandomPolicy {
  const text = (name: 'lanes' | 'roles' | 'actions'): string => serviceEdit(name, shippedBytes(name).toString('utf8'));
  const scoped = 'requires: [case_id, run_id, matter], prohibits: []';
  const lanes = text('lanes').replace('requires: [case_id, run_id], prohibits: []', scoped);
  const approvals =
    chance() < 0.3
      ? `\napprovals:\n  - { for: DELETE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n`
      : '';
  const budgets = chance() < 0.2 ? `\nbudgets: { tool_calls: ${pick(chance, [1, 5])} }\n` : '';
  const files = {
    lanes: Buffer.from(lanes),
    roles: Buffer.from(
      `${text('roles')}\ngroups:\n  - { group: finance, persons: [anna] }\n  - { group: staff, persons: [Berta, robot] }\n`,
    ),
    actions: Buffer.from(`${text('actions')}${chance() < 0.5 ? POINTS(chance) : ''}${approvals}${budgets}`),
    conditions: Buffer.from(conditionsText(chance)),
    counters: Buffer.from(COUNTERS(chance)),
  };
  const loaded = loadPolicy(files, catalogue);
  const policy = { ...loaded, flags: newTreeFlags(loaded) };
  return {
    policy: loaded,
    artifacts: Object.values(files).map((bytes) => artifact('policy', bytes)),
    machines: artifact('machines', definitionsOf(policy)),
  };
}

const PATHS = [
  '/sandbox/a.txt',
  '/sandbox/.env.txt',
  '/sandbox/.git/x.txt',
  '/sandbox/d/b.md',
  '/sandbox/../x',
  '/etc/passwd',
  '/sandbox/a.sh',
  '/sandbox',
];
const MAILS = ['x@customer.example', 'x@evil.example', 'x@evil.example, y@customer.example', 'x@CUSTOMER.example'];

function randomAct(chance: Chance): Pick<PolicyTest['request'], 'action' | 'args'> {
  const path = pick(chance, PATHS);
  switch (
    pick(chance, ['charge', 'charge', 'charge', 'mail', 'write', 'write', 'read', 'rename', 'delete', 'list', 'other'])
  ) {
    case 'charge': {
      const amount = pick<number | string>(chance, [-5, 0, 3, 50, 400, 6_000, 1.5, 'x']);
      const currency = pick<string | number>(chance, ['EUR', 'EUR', 'USD', 7]);
      const rate = chance() < 0.3 ? { rate: pick(chance, [0.1, 0.7, 0.123_45]) } : {};
      return { action: 'CALL_TOOL', args: { tool: 'billing.charge', input: { amount, currency, ...rate } } };
    }
    case 'mail':
      return { action: 'CALL_TOOL', args: { tool: 'mail.send', input: { to: pick(chance, MAILS) } } };
    case 'write':
      return { action: 'WRITE_FILE', args: { path, content: pick(chance, ['x', 'long text']) } };
    case 'read':
      return { action: 'READ_FILE', args: { path } };
    case 'rename':
      return { action: 'RENAME_FILE', args: { source: path, destination: pick(chance, PATHS) } };
    case 'delete':
      return { action: 'DELETE_FILE', args: { path } };
    case 'list':
      return { action: 'LIST_FILES', args: { path } };
    default:
      return pick(chance, [
        { action: 'FINISH', args: { response: 'Done.' } },
        { action: 'THINK', args: {} },
        { action: 'NO_SUCH', args: {} },
      ]);
  }
}

export function randomRequest(chance: Chance): PolicyTest['request'] {
  const isService = chance() < 0.6;
  const actor = pick(chance, ACTORS);
  const files = chance() < 0.6 ? { '/sandbox/a.txt': 3, '/sandbox/d/b.md': 40 } : {};
  return {
    role: chance() < 0.05 ? 'NOBODY' : isService ? 'CASE_AGENT' : 'SANDBOX_AGENT',
    lane: chance() < 0.05 ? 'NOWHERE' : isService ? 'CASE_WORK' : 'SANDBOX_FILES',
    ...(chance() < 0.1 ? {} : { scope: { matter: pick(chance, ['open', 'closed', 'free text here']) } }),
    actor,
    ...(chance() < 0.2 ? { person: pick(chance, ACTORS) } : {}),
    ...randomAct(chance),
    time: pick(chance, ['2026-01-05T10:00:00Z', '2026-01-05T03:00:00Z']),
    counters: { spent: pick(chance, [0, 10, 490, 4_990]), writes: pick(chance, [0, 1, 2, 3]) },
    ...(chance() < 0.3 ? { decisions: { fraud: pick(chance, ['permit', 'deny', 'none']) } } : {}),
    files,
  };
}
