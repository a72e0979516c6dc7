// `turnpike policy check --matrix` against the kernel: for every role, lane and action, this test starts a real agent,
// promotion or export in a tree of its own. The audit must agree with the matrix.

import { expect, test } from '@jest/globals';
import Type from 'typebox';
import { machineDefinitions } from '../../../machines/index.js';
import { artifactRef, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import { type Json, type JsonObject, canonicalJson } from '../../../src/core/contract/json.js';
import { contentOf, NATIVE_TOOLS } from '../../../src/features/hooks/native-calls.js';
import { machinesFor } from '../../../src/kernel/pinned-policy.js';
import { loadPolicy } from '../../../src/core/policy/files/check-policy.js';
import { EMPTY_LABEL } from '../../../src/core/policy/authorize-run.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import {
  catalogueFrom,
  defineAction,
  defineExternalTool,
  defineTool,
  type RegistrationOptions,
} from '../../../src/runtime/effects/define-effects.js';
import {
  listMatrixActions,
  buildPolicyMatrix,
  fullScope,
  type MatrixAction,
  type MatrixCell,
} from '../../../src/features/policy-lint/policy-matrix.js';
import { sized } from '../../fixtures/campaign.js';
import type { BenchOptions } from '../../fixtures/bench.js';
import { service, serviceEdit } from '../../fixtures/service.js';
import { AGENT, CASE, policyArtifacts, TREE, TreeDriver } from '../../fixtures/tree.js';
import '../../fixtures/call-rules.js';

type Edit = NonNullable<BenchOptions['edit']>;

const none = Type.Object({}, { additionalProperties: false });
const more = {
  tools: [
    defineTool({ name: 'mail.send', outside: true, input: none, output: none, run: () => ({}) }),
    defineTool({ name: 'shell.run', input: none, output: none, run: () => ({}) }),
    ...NATIVE_TOOLS.filter(({ name }) => name === 'native.shell' || name === 'native.read').map(
      ({ name, input, timeout }) => defineExternalTool({ name, input, timeout }),
    ),
  ],
  actions: [
    defineAction({ name: 'NOTE', risk: 'write', args: none, needs: { tool: 'mail.send' }, run: () => ({}) }),
    defineAction({
      name: 'NOTE_FACT',
      risk: 'write',
      args: none,
      needs: { write: { table: 'facts', mode: 'append' } },
      run: () => ({}),
    }),
  ],
};

const ofService: Edit = (name, text) => {
  const edited = serviceEdit(name, text);
  return name === 'actions'
    ? edited.replace(
        '  - action: CALL_TOOL',
        '  - action: NOTE\n  - action: NOTE_FACT\n    lane: WRITE_MAPPING_OUTPUTS\n  - action: CALL_TOOL',
      )
    : edited;
};

const CALLS = `
    calls:
      - { id: status, tools: [native.shell], decision: allow, commands: [git status] }
      - { id: mail, tools: [mail.send], decision: allow }
      - { id: charge, tools: [billing.charge], decision: approval }
`;

/** Additions that an operator may make: approvals, call rules, and a lane without a case. */
const ofFirm: Edit = (name, text) => {
  const edited = ofService(name, text);
  if (name === 'lanes') {
    const withoutCase = edited.replace(
      '    purpose: Keep what an interview',
      '    inherits_case_id: false\n    purpose: Keep what an interview',
    );
    return `${withoutCase.replace('tools: [billing', 'tools: [native.shell, native.read, shell.run, billing')}${CALLS}`;
  }
  if (name !== 'actions') return edited;
  const rule = (subject: string): string =>
    `  - { for: ${subject}, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 5 }\n`;
  return `${edited}\napprovals:\n${['promotion', 'export', 'DELETE_FILE', 'CALL_TOOL', 'NOTE_FACT', 'call.charge'].map(rule).join('')}`;
};

/** The pinned material of a tree, and its policy. */
interface Pinned {
  readonly policies: readonly Artifact[];
  readonly machines: Artifact;
  readonly policy: Policy;
}

function pinned(edit: Edit, registered: RegistrationOptions): Pinned {
  const policies = policyArtifacts(edit);
  const [lanes, roles, actions] = policies.map(({ bytes }) => bytes);
  const policy = loadPolicy({ lanes: lanes!, roles: roles!, actions: actions! }, catalogueFrom(registered));
  const bytes = Buffer.from(machineDefinitions(machinesFor(policy), policy.catalogue));
  return { policies, policy, machines: { kind: 'machines', case_id: null, bytes } };
}

function opened({ policies, machines, policy }: Pinned): TreeDriver {
  const driver = new TreeDriver({ policies });
  const pin = (index: number) => {
    const artifact = artifactRef(policies[index]!);
    return { git_sha: 'a'.repeat(40), sha256: artifact.hash_sha256, source: 'manifest' as const, artifact };
  };
  const open = {
    kind: 'open' as const,
    run_id: TREE,
    correlation_id: 'cor_test',
    case_id: CASE,
    taxonomy_versions: null,
    scope: { ...fullScope(policy) },
    policies: { lanes: pin(0), roles: pin(1), actions: pin(2) },
    machines: artifactRef(machines),
  };
  driver.send(open, [...policies, machines]);
  return driver;
}

type CellDecision = Pick<MatrixCell, 'decision' | 'rule_id'>;

/** The decision of the kernel; `depends` if it decides two inputs of the action differently. */
function decidedByKernel(of: Pinned, role_id: string, lane_id: string, act: MatrixAction): CellDecision {
  const { tool } = act.args;
  const inputs = (typeof tool === 'string' ? INPUTS[tool] : undefined) ?? [null];
  const [first, ...others] = inputs.map((input) =>
    decideOne(of, role_id, lane_id, input === null ? act : { ...act, args: { ...act.args, input } }),
  );
  if (first === undefined) throw new Error('an action without an input');
  return others.every(({ rule_id }) => rule_id === first.rule_id) ? first : { decision: 'depends', rule_id: 'call.*' };
}

const INPUTS: Readonly<Record<string, readonly JsonObject[]>> = {
  'native.shell': [{ command: contentOf('git status') }, { command: contentOf('rm x') }],
  'native.read': [{ path: 'a' }, { path: 'b' }],
};

/** The kernel's own decision: what the audit records of the run with this action. */
function decideOne(of: Pinned, role_id: string, lane_id: string, act: MatrixAction): CellDecision {
  const driver = opened(of);
  if (act.action === 'promotion' || act.action === 'export') {
    startRun(driver, act.action, act, { role_id, lane_id });
    return authzOf(driver, AGENT);
  }
  driver.startAgent({ role_id, lane_id });
  const admitted = authzOf(driver, AGENT);
  if (admitted.decision === 'deny') return admitted;
  const args: Record<string, Json> = { ...act.args };
  if (act.action === 'WRITE_FILE') args['content'] = 'x';
  if (act.action === 'FINISH') args['response'] = 'x';
  if (act.action === 'WRITE_RECORD') args['record'] = rowFor(args['target']);
  if (args['tool'] === 'billing.charge') args['input'] = { amount: 1 };
  driver.act(act.action, args);
  const [trace] = driver.traces;
  // Only AUTHORIZE may reject it.
  expect([undefined, null, 'AUTHORIZE']).toContain(trace?.phase_failed_at);
  return driver.audit(`${AGENT}.1`).length === 0 ? admitted : authzOf(driver, `${AGENT}.1`);
}

function startRun(
  driver: TreeDriver,
  run_kind: 'promotion' | 'export',
  { args }: MatrixAction,
  place: { role_id: string; lane_id: string },
): void {
  const act = { action: run_kind === 'export' ? 'EXPORT_BUNDLE' : 'WRITE_RECORD', args };
  const material: Artifact = { kind: 'request', case_id: CASE, bytes: Buffer.from(canonicalJson(act)) };
  const facts = { artifact_flags: [run_kind === 'export' ? 'export_bundle' : 'sanitized_insight'], label: EMPTY_LABEL };
  driver.send(
    {
      kind: 'start_run',
      run_id: TREE,
      run_kind,
      actor: { actor_type: 'human', actor_id: 'somebody' },
      ...place,
      request: artifactRef(material),
      inputs: [],
      facts,
      overlay: null,
    },
    [material],
  );
}

const RECORDS: Readonly<Record<string, Record<string, Json>>> = {
  facts: { id: 'a', text: 'b' },
  entities: { id: 'a', name: 'b' },
  shared_playbooks: { id: 'a', text: 'b' },
};
const rowFor = (target: Json | undefined): Record<string, Json> =>
  RECORDS[typeof target === 'string' ? target : ''] ?? {};

function authzOf(driver: TreeDriver, run_id: string): CellDecision {
  const [event] = driver.audit(run_id).filter(({ action_type }) => action_type === 'authz_decision');
  const { decision, rule_id } = event!.authz!;
  // A promotion or export that waits for approval is allowed by policy so far, and is not executed (D7).
  return { decision: rule_id === 'approval.required' ? 'deny' : decision, rule_id };
}

const made = service();
const OF_SERVICE: RegistrationOptions = { ...more, tools: [...made.tools, ...more.tools], targets: made.targets };

const POLICIES: readonly [string, Edit, RegistrationOptions][] = [
  ['the shipped policy', (_name, text) => text, {}],
  ['the shipped policy beside a service', (_name, text) => text, OF_SERVICE],
  ['a service with tools, tables and actions of its own', ofService, OF_SERVICE],
  ['a policy with approvals', ofFirm, OF_SERVICE],
];
/** The first and the last reach every rule; the campaign covers those between. */
const compared = POLICIES.filter((_, n) => n % sized(POLICIES.length - 1, 1) === 0);

test.each(compared)(
  'S4-81 the matrix of %s equals what the engine decides, cell by cell',
  (_what, edit, registered) => {
    const of = pinned(edit, registered);
    const { policy } = of;
    const acts = listMatrixActions(policy);
    const decided = [...policy.roles.keys()].flatMap((role_id) =>
      [...policy.lanes.keys()].flatMap((lane_id) =>
        acts.map((act) => ({ role_id, lane_id, act: act.name, ...decidedByKernel(of, role_id, lane_id, act) })),
      ),
    );
    const matrix = buildPolicyMatrix(policy);
    expect(decided.length).toBe(policy.roles.size * policy.lanes.size * acts.length);
    expect(matrix).toEqual(decided);
    expect(matrix.some(({ decision, act }) => decision === 'allow' && act !== 'THINK')).toBe(true);
  },
);

test('the compared matrices reach each of these rules', () => {
  const rules = new Set(buildPolicyMatrix(pinned(ofFirm, OF_SERVICE).policy).map(({ rule_id }) => rule_id));
  expect([...rules].toSorted()).toEqual(RULES);
});

const RULES = [
  'agent.lane_granted',
  'approval.required',
  'call.*',
  'call.not_allowed',
  'lane.granted',
  'lane.read_not_allowed',
  'lane.tool_not_allowed',
  'lane.write_mode_not_allowed',
  'lane.write_not_allowed',
  'platform.shared_write',
  'role.lane_not_granted',
  'scope.missing.case_id',
  'target.mode_not_registered',
  'target.not_registered',
  'tool.not_registered',
];
