// Shared by the tests of bags: ledgers of several cases, requests, and bags that can be changed and sealed again.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openBagFolder } from '../../../src/features/exports/bag/bag-folder.js';
import { openBagZip } from '../../../src/features/exports/bag/bag-zip.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { artifactRef, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import type { Entry, RunCreated } from '../../../src/core/contract/run/entry.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { exportAudience } from '../../../src/runtime/content/audience.js';
import { assembleExportBag as assemble, type ExportBagSummary } from '../../../src/features/exports/assemble-bag.js';
import type { ExportBagRequest } from '../../../src/features/exports/bag-manifest.js';
import type { ExportBagReport } from '../../../src/features/exports/verify/bag-report.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { answered, content, opening, scribeOf, TIME, treeId, type Draft } from '../../fixtures/entries.js';

export { place, writeFiles } from './bagit/material.js';

export const CASE = 'case-0001';
export const OTHER = 'case-0002';
/** Occurs in all content of the other case. */
export const FOREIGN = 'xyzzy';
export const [TREE, SECOND, FOREIGN_TREE] = [treeId(1), treeId(2), treeId(3)];

const PINS = {
  lanes: '1'.repeat(40),
  roles: '2'.repeat(40),
  actions: '3'.repeat(40),
  machines: sha256('{"machines":"of the tests"}'),
};
const ACTOR = { actor_type: 'agent', actor_id: 'agent-1' } as const;

type Run = Pick<RunCreated, 'run_id' | 'run_kind'> & Partial<RunCreated>;

const rootOf = (run_id: string): string => run_id.split('.', 1)[0]!;
const parentOf = (run_id: string): string | null => (run_id.includes('.') ? run_id.replace(/\.\d+$/, '') : null);

/** The creation of a run. */
export const runCreated = (run: Run): Draft => ({
  tree_id: rootOf(run.run_id),
  type: 'run_created',
  artifacts: [],
  body: () => ({
    root_run_id: rootOf(run.run_id),
    parent_run_id: parentOf(run.run_id),
    correlation_id: 'cor_0001',
    contract_version: 'v1',
    policy_versions: PINS,
    taxonomy_versions: null,
    case_id: CASE,
    actor: ACTOR,
    role_id: 'agent_restricted',
    lane_id: 'sandbox_files',
    scope: {},
    created_at_utc: TIME,
    request: null,
    exposure: null,
    link: null,
    budget: null,
    label: null,
    retry: null,
    ...run,
  }),
});

/** An audit event of a run. */
export const auditEvent = (run_id: string, event: Partial<AuditEvent>, case_id: string | null = CASE): Draft => ({
  tree_id: rootOf(run_id),
  type: 'audit_event',
  artifacts: [],
  body: ({ tree_id, seq }): Entry['body'] => {
    const parent_run_id = parentOf(run_id);
    return {
      event_id: `${tree_id}:${seq}`,
      timestamp_utc: TIME,
      sequence: seq,
      action_type: 'system',
      outcome: 'success',
      actor: ACTOR,
      contract_version: 'v1',
      policy_versions: PINS,
      run_id,
      root_run_id: rootOf(run_id),
      ...(parent_run_id === null ? {} : { parent_run_id }),
      correlation_id: 'cor_0001',
      ...(case_id === null ? {} : { case_id }),
      ...event,
    };
  },
});

const begun = (run_id: string, case_id: string | null): readonly Draft[] => [
  auditEvent(run_id, { action_type: 'authz_decision', outcome: 'allow' }, case_id),
  auditEvent(run_id, { outcome_reason: 'running' }, case_id),
];

/** A tree with its orchestrator and agent runs. */
export const treeOf = (tree_id: string, case_id: string = CASE): readonly Draft[] => [
  opening(tree_id, case_id),
  runCreated({ run_id: tree_id, run_kind: 'orchestrator', case_id }),
  ...begun(tree_id, case_id),
  runCreated({ run_id: `${tree_id}.1`, run_kind: 'agent', case_id }),
  ...begun(`${tree_id}.1`, case_id),
];

/** A proposal of the agent. */
const proposed = (tree_id: string, bytes: Artifact): Draft => ({
  tree_id,
  type: 'input',
  artifacts: [bytes],
  body: ({ seq }): Entry['body'] => ({
    kind: 'proposal',
    input_id: `proposal:${seq}`,
    time: TIME,
    run_id: `${tree_id}.1`,
    payload: artifactRef(bytes),
    seen: null,
    tokens: null,
    overlay: null,
  }),
});

/** A read by an agent: four events of a run of its own. */
export function readStep(tree_id: string, n: number, payload: Artifact, result: Artifact): readonly Draft[] {
  const run_id = `${tree_id}.1.${n}`;
  const { case_id } = payload;
  return [
    proposed(tree_id, payload),
    runCreated({
      run_id,
      run_kind: 'tool_gateway',
      case_id,
      request: { name: 'sandbox.read_file', hash_sha256: PINS.machines },
    }),
    ...begun(run_id, case_id),
    answered(tree_id, result),
    auditEvent(
      run_id,
      {
        action_type: 'tool_call',
        input_artifacts: [artifactRef(payload)],
        output_artifacts: [{ ...artifactRef(content('file_content', `cut out ${n}`, case_id)), lineage: {} }],
      },
      case_id,
    ),
    auditEvent(run_id, { outcome_reason: 'completed' }, case_id),
  ];
}

/** The n-th payload and result of a case. */
export const payload = (n: number, case_id: string | null = CASE): Artifact =>
  content('raw_payload', `{"payload":${n},"of":"${case_id === OTHER ? FOREIGN : 'here'}"}`, case_id);
export const result = (n: number, case_id: string | null = CASE): Artifact =>
  content('result', `{"result":${n},"of":"${case_id === OTHER ? FOREIGN : 'here'}"}`, case_id);

/** The export run, which is running when its bag is made. */
export const exportRun = (tree_id: string): readonly Draft[] => [
  runCreated({ run_id: `${tree_id}.2`, run_kind: 'export', actor: { actor_type: 'human', actor_id: 'ada' } }),
  ...begun(`${tree_id}.2`, CASE),
];

/** The input that started the export run, with the request that `requestFor` makes. */
export function exportRequested(tree_id: string): Draft {
  const { bundle_id, bundle_kind, export_reason, created_at_utc, created_by, policy_versions } = requestFor('/nowhere');
  const args = { bundle_id, bundle_kind, export_reason, created_at_utc, created_by, policy_versions };
  const request = content('request', canonicalJson({ action: 'EXPORT_BUNDLE', args }));
  return {
    tree_id,
    type: 'input',
    artifacts: [request],
    body: ({ seq }): Entry['body'] => ({
      kind: 'start_run',
      input_id: `start_run:${seq}`,
      time: TIME,
      run_id: tree_id,
      run_kind: 'export',
      actor: { actor_type: 'human', actor_id: 'ada' },
      role_id: 'ATTORNEY_ADMIN',
      lane_id: 'EXPORT_CASE_DATA',
      request: artifactRef(request),
      inputs: [],
      facts: { artifact_flags: ['export_bundle'], label: { cases: [], flags: [], many: false } },
      overlay: null,
    }),
  };
}

/** Two trees of the case and one of another, with interleaved entries; one run in a tree of the case has no case. */
export const STORY: readonly Draft[] = [
  ...treeOf(TREE),
  ...treeOf(FOREIGN_TREE, OTHER),
  ...readStep(TREE, 1, payload(1), result(1)),
  ...readStep(FOREIGN_TREE, 1, payload(1, OTHER), result(1, OTHER)),
  ...treeOf(SECOND),
  ...readStep(SECOND, 1, payload(2), result(2)),
  ...readStep(TREE, 2, payload(1), result(3)),
  ...readStep(TREE, 3, content('raw_payload', `${FOREIGN} without a case`, null), content('result', FOREIGN, null)),
  // The same bytes as in the other case, with two kinds: one file, two references.
  ...readStep(TREE, 4, content('raw_payload', 'shared'), content('result', 'shared')),
  ...readStep(FOREIGN_TREE, 2, content('raw_payload', 'shared', OTHER), content('result', FOREIGN, OTHER)),
  auditEvent(`${TREE}.1.1`, { outcome: 'failure', outcome_reason: 'INVALID_STATE_TRANSITION' }),
  // This run has no further events.
  runCreated({ run_id: `${TREE}.2`, run_kind: 'agent' }),
  ...exportRun(SECOND),
];

export async function ledgerOf(
  drafts: readonly Draft[] = STORY,
  store: LedgerStore = memoryStore(),
): Promise<LedgerStore> {
  const scribe = await scribeOf(store);
  await scribe.write(store, drafts);
  return store;
}

export const requestFor = (destination: string, over: Partial<ExportBagRequest> = {}): ExportBagRequest => ({
  bundle_id: 'bundle_0001',
  bundle_kind: 'discovery_production',
  export_reason: 'asked for by the\ncourt',
  case_id: CASE,
  run_id: `${SECOND}.2`,
  root_run_id: SECOND,
  created_at_utc: '2026-02-03T04:05:06.007Z',
  created_by: { actor_type: 'human', actor_id: 'ada', role_id: 'ATTORNEY_ADMIN', lane_id: 'EXPORT_CASE_DATA' },
  policy_versions: PINS,
  approvals: [{ approval_type: 'attorney_admin', approved_by: 'ada', approved_at_utc: TIME }],
  format: 'folder',
  destination,
  locator: basename(destination),
  ...over,
});

/** Like an approved export run. */
export const assembleBundle = (
  store: LedgerStore,
  request: ExportBagRequest,
  how?: Parameters<typeof assemble>[2],
): Promise<ExportBagSummary> => assemble({ store, audience: exportAudience(request.case_id) }, request, how);

export async function verified(path: string): Promise<ExportBagReport> {
  const tree = path.endsWith('.zip') ? await openBagZip(path) : openBagFolder(path);
  try {
    return await verifyExportBag(tree);
  } finally {
    await tree.close();
  }
}

export const rulesOf = ({ findings }: ExportBagReport): readonly string[] =>
  [...new Set(findings.map(({ rule_id }) => rule_id))].sort();

/** Rules that only a bag with a proof can violate: bag-proof.test.ts violates each. */
export const RULES_OF_PROOFS: readonly string[] = [
  'bundle.entry_malformed',
  'bundle.entry_place',
  'bundle.not_logged',
  'bundle.proof_differs',
  'bundle.proof_malformed',
  'bundle.proof_unsigned',
  'bundle.request_differs',
];

export type Files = Record<string, Buffer>;

/** The files of a folder, by path. */
export function filesOf(folder: string): Files {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path))]));
}

/** Makes a valid bag of changed files: writes manifests, sizes and tag manifests again. */
export function sealed(files: Files): Files {
  const payloads = Object.entries(files).filter(([path]) => path.startsWith('data/'));
  const bytes = payloads.reduce((sum, [, content]) => sum + content.length, 0);
  const info = files['bag-info.txt']!.toString().replace(
    /Payload-Oxum: .*/,
    `Payload-Oxum: ${bytes}.${payloads.length}`,
  );
  const tags: Files = { 'bagit.txt': files['bagit.txt']!, 'bag-info.txt': Buffer.from(info) };
  const listing = (algorithm: string, entries: readonly (readonly [string, Buffer])[]): Buffer =>
    Buffer.from(
      entries.map(([path, content]) => `${createHash(algorithm).update(content).digest('hex')}  ${path}\n`).join(''),
    );
  for (const algorithm of ['sha256', 'sha512']) tags[`manifest-${algorithm}.txt`] = listing(algorithm, payloads);
  const whole = Object.entries(tags);
  for (const algorithm of ['sha256', 'sha512']) tags[`tagmanifest-${algorithm}.txt`] = listing(algorithm, whole);
  return { ...Object.fromEntries(payloads), ...tags };
}
