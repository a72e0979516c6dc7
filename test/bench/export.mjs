// A case of 10,000 artifacts and 100,000 audit events: the duration of its export as a folder and as a .zip, of `export
// verify`, and the peak memory of each. Each part is a separate process.
// `npm run build && node test/bench/export.mjs [--steps 25000] [--fresh 5000]`

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    /** Each is a run with four events. */
    steps: { type: 'string', default: '25000' },
    /** This number of them brings two artifacts; the others repeat the same ones. */
    fresh: { type: 'string', default: '5000' },
    dist: { type: 'string', default: '../../build/compiled/src' },
    part: { type: 'string' },
    at: { type: 'string' },
  },
});
const [steps, fresh] = [Number(values.steps), Number(values.fresh)];
const load = (path) => import(new URL(`${values.dist}/${path}`, import.meta.url).href);

const CASE = 'case-0001';
const TREE = 'run_000000000000000000001';
const TIME = '2026-01-02T03:04:05.678Z';
const ACTOR = { actor_type: 'agent', actor_id: 'agent-1' };

/** A ledger without a kernel: entries are sealed here, and committed a few steps at a time. */
async function writeLedger(folder) {
  const { createSqliteStore } = await load('stores/sqlite/sqlite-ledger-store.js');
  const { artifactRef } = await load('core/contract/artifact-ref.js');
  const { sealEntry } = await load('core/ledger/seal-entry.js');
  const { EMPTY_HEAD, extendHead } = await load('core/ledger/proof/merkle.js');
  const store = createSqliteStore({ file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') });
  const epoch = await store.acquire();
  let [head, seq, prev] = [EMPTY_HEAD, 0, '0'.repeat(64)];
  let [entries, artifacts] = [[], []];
  const content = (kind, text, case_id = CASE) => ({ kind, case_id, bytes: Buffer.from(text) });
  const hashOf = (artifact) => artifactRef(artifact).hash_sha256;
  const add = (type, body, brought = []) => {
    const sealed = sealEntry({ type, tree_id: TREE, seq, prev, body });
    for (const artifact of brought) artifacts.push({ entry: entries.length, artifact, sha256: hashOf(artifact) });
    entries.push(sealed);
    [seq, prev] = [seq + 1, sealed.leaf_hash];
  };
  const commit = async () => {
    const from = head.size;
    const leaves = entries.map(({ leaf_hash }) => leaf_hash);
    head = extendHead(head, leaves);
    await store.commit({ epoch, from, entries, artifacts, proposals: [], inputs: [], trees: [], head });
    [entries, artifacts] = [[], []];
  };
  const policies = ['lanes', 'roles', 'actions'].map((name) => content('policy', `${name}: of the bench`, null));
  const machines = content('machines', '{"machines":"of the bench"}', null);
  const pins = { lanes: '1'.repeat(40), roles: '2'.repeat(40), actions: '3'.repeat(40), machines: hashOf(machines) };
  const pin = (policy) => ({
    git_sha: '5'.repeat(40),
    sha256: hashOf(policy),
    source: 'git',
    artifact: artifactRef(policy),
  });
  const common = {
    contract_version: 'v1',
    policy_versions: pins,
    correlation_id: 'cor_0001',
    case_id: CASE,
    actor: ACTOR,
  };
  const parentOf = (run_id) => (run_id.includes('.') ? run_id.replace(/\.\d+$/, '') : null);
  const born = (run_id, run_kind) => {
    const parents = { root_run_id: TREE, parent_run_id: parentOf(run_id) };
    const governed = { role_id: 'agent_restricted', lane_id: 'sandbox_files', scope: {}, taxonomy_versions: null };
    const more = {
      created_at_utc: TIME,
      request: null,
      exposure: null,
      link: null,
      budget: null,
      label: null,
      retry: null,
    };
    add('run_created', { run_id, run_kind, ...parents, ...common, ...governed, ...more });
  };
  const addEvent = (run_id, event) => {
    const parent_run_id = parentOf(run_id);
    const place = { event_id: `${TREE}:${seq}`, timestamp_utc: TIME, sequence: seq, action_type: 'system' };
    const parents = { root_run_id: TREE, ...(parent_run_id === null ? {} : { parent_run_id }) };
    add('audit_event', { ...place, outcome: 'success', run_id, ...parents, ...common, ...event });
  };
  const begin = (run_id, run_kind) => {
    born(run_id, run_kind);
    addEvent(run_id, { action_type: 'authz_decision', outcome: 'allow' });
    addEvent(run_id, { outcome_reason: 'running' });
  };
  const opened = {
    kind: 'open',
    input_id: 'open',
    time: TIME,
    run_id: TREE,
    correlation_id: 'cor_0001',
    case_id: CASE,
  };
  const [lanes, roles, actions] = policies.map(pin);
  const judged = { policies: { lanes, roles, actions }, machines: artifactRef(machines) };
  add('input', { ...opened, taxonomy_versions: null, scope: {}, ...judged }, [...policies, machines]);
  begin(TREE, 'orchestrator');
  begin(`${TREE}.1`, 'agent');
  for (let step = 1; step <= steps; step += 1) {
    const run_id = `${TREE}.1.${step}`;
    const payload = content('raw_payload', `{"payload":${step % fresh},"text":"${'x'.repeat(600)}"}`);
    const result = content('result', `{"result":${step % fresh},"text":"${'y'.repeat(2_000)}"}`);
    const input = { kind: 'proposal', input_id: `p${step}`, time: TIME, run_id: `${TREE}.1` };
    add('input', { ...input, payload: artifactRef(payload), seen: null, tokens: null, overlay: null }, [payload]);
    begin(run_id, 'tool_gateway');
    const done = {
      kind: 'result',
      input_id: `r${step}`,
      time: TIME,
      run_id,
      status: 'done',
      cause: null,
      settled: false,
    };
    add('input', { ...done, result: artifactRef(result) }, [result]);
    addEvent(run_id, {
      action_type: 'tool_call',
      input_artifacts: [artifactRef(payload)],
      output_artifacts: [artifactRef(result)],
    });
    addEvent(run_id, { outcome_reason: 'completed' });
    if (step % 4 === 0) await commit();
  }
  begin(`${TREE}.2`, 'export');
  await commit();
  await store.close();
  return { entries: head.size };
}

async function exportCase(folder, format) {
  const { openSqliteStore } = await load('stores/sqlite/sqlite-ledger-store.js');
  const { assembleExportBag } = await load('features/exports/assemble-bag.js');
  const options = { file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts'), readOnly: true };
  const store = openSqliteStore(options);
  const pins = { lanes: '1'.repeat(40), roles: '2'.repeat(40), actions: '3'.repeat(40), machines: '4'.repeat(64) };
  const asked = { bundle_id: 'bundle_bench', bundle_kind: 'other', export_reason: 'bench', case_id: CASE };
  const by = { created_at_utc: TIME, created_by: { actor_type: 'human', actor_id: 'ada' }, policy_versions: pins };
  const run = { run_id: `${TREE}.2`, root_run_id: TREE, approvals: [] };
  const destination = join(folder, format === 'zip' ? 'case.zip' : 'case');
  const { artifacts, audit_events, runs, bytes } = await assembleExportBag(store, {
    ...asked,
    ...by,
    ...run,
    format,
    destination,
  });
  await store.close();
  return { artifacts, audit_events, runs, bytes };
}

async function verify(folder, format) {
  const { openBagFolder } = await load('features/exports/bag/bag-folder.js');
  const { openBagZip } = await load('features/exports/bag/bag-zip.js');
  const { verifyBundle } = await load('features/exports/verify/verify-bag.js');
  const tree = format === 'zip' ? await openBagZip(join(folder, 'case.zip')) : openBagFolder(join(folder, 'case'));
  const { valid, findings } = await verifyBundle(tree);
  await tree.close();
  return { valid, findings: findings.length };
}

const PARTS = {
  ledger: writeLedger,
  folder: (folder) => exportCase(folder, 'folder'),
  'verify folder': (folder) => verify(folder, 'folder'),
  zip: (folder) => exportCase(folder, 'zip'),
  'verify zip': (folder) => verify(folder, 'zip'),
};

if (values.part !== undefined) {
  const begin = performance.now();
  const result = await PARTS[values.part](values.at);
  const seconds = ((performance.now() - begin) / 1_000).toFixed(1);
  const peak = Math.round((process.resourceUsage().maxRSS * 1_024) / 1e6);
  console.log(`${values.part}: ${seconds} s, ${peak} MB resident at most, ${JSON.stringify(result)}`);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-export-'));
  try {
    for (const part of Object.keys(PARTS)) {
      const own = process.argv.slice(2);
      const args = [fileURLToPath(import.meta.url), ...own, '--part', part, '--at', folder];
      const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' });
      if (status !== 0) process.exitCode = 1;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
