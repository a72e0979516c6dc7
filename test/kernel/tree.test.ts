import { describe, expect, test } from '@jest/globals';
import { findAction } from '../../src/core/contract/policy/catalogue.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { DetailedResponse } from '../../src/core/contract/run/response.js';
import { isConforming } from '../../src/core/contract/validators.js';
import { POLICIES, randomTree } from '../fixtures/random-tree.js';
import { AGENT, CASE, FILE, proposal, TREE, TreeDriver } from '../fixtures/tree.js';

/** Random trees, each run to its end. */
const trees = Array.from({ length: 200 }, (_, i) => randomTree(i + 1, { close: true }));
const READ = { path: '/sandbox/a.txt' };
const WRITE = { path: '/sandbox/a.txt', content: 'hello' };

test('S4-44 S4-45 S4-46 S4-47 S4-48 S0-13 C47: the whole lifecycle of a tree, entry by entry', () => {
  const d = new TreeDriver().ready();
  d.act('THINK', {});
  d.act('READ_FILE', READ);
  d.done(`${AGENT}.1`, { content: 'hello' });
  d.act('WRITE_FILE', WRITE);
  d.done(`${AGENT}.2.1`, { bytes_written: 5 });
  d.act('DELETE_FILE', { path: '/sandbox/a.sh' });
  d.propose('{');
  d.act('FINISH', { response: 'bye' });
  expect(d.story()).toEqual([
    'input:open',
    `created:orchestrator@${TREE}`,
    `authz_decision:allow(orchestrator.pinned)@${TREE}`,
    `system:success(running)@${TREE}`,
    'input:start_agent',
    `created:agent@${AGENT}`,
    `authz_decision:allow(agent.lane_granted)@${AGENT}`,
    `system:success(running)@${AGENT}`,
    'input:proposal',
    'trace:SUCCESS',
    'input:proposal',
    'input:facts',
    `created:tool_gateway@${AGENT}.1`,
    `authz_decision:allow(lane.granted)@${AGENT}.1`,
    `system:success(running)@${AGENT}.1`,
    'input:result',
    `tool_call:success()@${AGENT}.1`,
    `system:success(completed)@${AGENT}.1`,
    'trace:SUCCESS',
    'input:proposal',
    'input:facts',
    `created:tool_gateway@${AGENT}.2`,
    `authz_decision:allow(lane.granted)@${AGENT}.2`,
    `system:success(running)@${AGENT}.2`,
    `created:db_write@${AGENT}.2.1`,
    `authz_decision:allow(lane.granted)@${AGENT}.2.1`,
    `system:success(running)@${AGENT}.2.1`,
    'input:result',
    `db_write:success()@${AGENT}.2.1`,
    `system:success(completed)@${AGENT}.2.1`,
    `tool_call:success()@${AGENT}.2`,
    `system:success(completed)@${AGENT}.2`,
    'trace:SUCCESS',
    'input:proposal',
    `created:tool_gateway@${AGENT}.3`,
    `authz_decision:deny(extension.not_allowed)@${AGENT}.3`,
    `system:deny(denied:extension.not_allowed)@${AGENT}.3`,
    'trace:DENIED',
    'input:proposal',
    'trace:VALIDATION_ERROR',
    'input:proposal',
    'trace:SUCCESS',
    `system:success(completed:finished)@${AGENT}`,
    `system:success(completed:finished)@${TREE}`,
  ]);
});

/** Every perform command without an earlier allow and running of its run and of all runs above it. */
function unlicensed(d: TreeDriver): string[] {
  const allowed = new Set<string>();
  const running = new Set<string>();
  const ended = new Set<string>();
  const parents = new Map<string, string | null>();
  const bad: string[] = [];
  for (const { entries, commands } of d.decisions) {
    for (const { entry } of entries) {
      if (entry.type === 'run_created') parents.set(entry.body.run_id, entry.body.parent_run_id);
      if (entry.type !== 'audit_event') continue;
      const { run_id, action_type, outcome, outcome_reason } = entry.body;
      if (action_type === 'authz_decision' && outcome === 'allow') allowed.add(run_id);
      if (action_type !== 'system' || outcome_reason === 'INVALID_STATE_TRANSITION') continue;
      (outcome_reason === 'running' ? running : ended).add(run_id);
    }
    for (const command of commands) {
      if (command.kind !== 'perform') continue;
      for (let run_id: string | null = command.run_id; run_id !== null; run_id = parents.get(run_id) ?? null) {
        if (!allowed.has(run_id) || !running.has(run_id) || ended.has(run_id)) bad.push(`${command.run_id}: ${run_id}`);
      }
    }
  }
  return bad;
}

test('S2-04 S2-14 S2-17 S4-19 S4-38 S4-81: in random trees, an effect is executed only if every run above it was allowed', () => {
  let performed = 0;
  for (const d of trees) {
    expect(unlicensed(d)).toEqual([]);
    const runs = d.commands.flatMap(({ kind, run_id }) => (kind === 'perform' ? [run_id] : []));
    expect(new Set(runs).size).toBe(runs.length);
    performed += runs.length;
  }
  expect(performed).toBeGreaterThan(trees.length);
});

test('S0-03 S0-04 S2-19 S2-20 S0-56: in random trees, every accepted proposal has one trace and one response', () => {
  for (const d of trees) {
    const accepted = d.inputs.filter(({ recorded }, i) => recorded.kind === 'proposal' && !d.decisions[i]!.refused);
    const replies = d.decisions.flatMap((decision) => decision.replies);
    expect(replies.map(({ input_id }) => input_id).sort()).toEqual(
      accepted.map(({ recorded }) => recorded.input_id).sort(),
    );
    expect(d.traces).toHaveLength(accepted.length);
    const hashes = replies.map(({ response }) => sha256(response)).sort();
    expect(d.traces.map(({ response_sha256 }) => response_sha256).sort()).toEqual(hashes);
  }
});

test('S2-07 S2-08 S4-36: in random trees, a step is ALLOW if every check passed, else DENY; both are audited', () => {
  for (const d of trees) {
    for (const trace of d.traces.filter(({ replay_of }) => replay_of === null)) {
      const passed = trace.phase_failed_at === null || trace.phase_failed_at === 'EXECUTE';
      expect(trace.decision).toBe(passed ? 'ALLOW' : 'DENY');
      if (trace.mediated_run_id === null) continue;
      const below = d.audit().filter(({ run_id }) => `${run_id}.`.startsWith(`${trace.mediated_run_id!}.`));
      const verdicts = below
        .filter(({ action_type }) => action_type === 'authz_decision')
        .map(({ outcome }) => outcome);
      expect(verdicts.every((verdict) => verdict === 'allow')).toBe(passed);
    }
  }
});

test('S2-09: the reason of a denial is in the trace and the audit, and not in the response', () => {
  const d = new TreeDriver().ready();
  const { replies } = d.act('DELETE_FILE', { path: '/sandbox/a.sh' });
  expect(d.traces[0]).toMatchObject({ cause: 'EXTENSION', rule_id: 'extension.not_allowed' });
  expect(d.audit(`${AGENT}.1`)[0]?.authz?.rule_id).toBe('extension.not_allowed');
  expect(replies[0]?.response).not.toMatch(/extension\.not_allowed|EXTENSION|authz|lane/);
});

test('C38: in random trees, the steps of every agent run count from 1 without a gap', () => {
  for (const d of trees) {
    for (const { context } of d.tree.runs) {
      const indices = d.traces.filter(({ run_id }) => run_id === context.run_id).map(({ step_index }) => step_index);
      expect(indices).toEqual(indices.map((_index, i) => i + 1));
    }
  }
});

describe('the executed effect', () => {
  test.each([
    ['READ_FILE', READ, `${AGENT}.1`, true, { repeatable: true }],
    ['LIST_FILES', { path: '/sandbox/d/' }, `${AGENT}.1`, true, { repeatable: true }],
    ['WRITE_FILE', WRITE, `${AGENT}.1.1`, false, { repeatable: true }],
    ['CREATE_DIRECTORY', { path: '/sandbox/d' }, `${AGENT}.1.1`, false, {}],
    ['DELETE_FILE', READ, `${AGENT}.1.1`, false, {}],
    ['RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/b.txt' }, `${AGENT}.1.1`, false, {}],
  ])(
    'S0-46 S0-52 S0-53 S2-03: of %s is what was proposed and authorized, with nothing added',
    (action, args, run_id, in_commit, more) => {
      const d = new TreeDriver().ready();
      const { commands } = d.act(action, args);
      const before = findAction(action)!.paths.map(() => FILE);
      const request_hash = sha256(canonicalJson({ action, args, case_id: CASE }));
      const effect = {
        action,
        args,
        case_id: CASE,
        run_id,
        idempotency_key: run_id,
        request_hash,
        before,
        partial_outputs: false,
        ...more,
      };
      const limits = { read_bytes_max: 1_048_576, list_entries_max: 10_000 };
      expect(commands).toEqual([{ kind: 'perform', run_id, in_commit, effect: { ...effect, limits } }]);
    },
  );

  test('S0-53 C22: has the canonical paths, if policy resolves paths', () => {
    const d = new TreeDriver({ policies: POLICIES['tight']! }).ready();
    expect(d.act('READ_FILE', { path: '/sandbox/d/../a.txt' }).commands).toMatchObject([
      { effect: { args: { path: '/sandbox/a.txt' } } },
    ]);
  });
});

test('S0-57 S0-58 S0-59 S0-60 S0-61 S0-62 S0-63 S0-64 S0-65 S0-66: the trace of a denied step', () => {
  const d = new TreeDriver().ready();
  const payload = proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'é' }, { schema_version: '1.2.3' });
  d.propose(payload);
  d.wait(5_000).facts({ paths: [{ status: 'refused', kind: 'symlink' }], usage: { bytes: 0, files: 0 } });
  const bytes = JSON.stringify(payload);
  expect(d.traces).toEqual([
    {
      run_id: AGENT,
      step_index: 1,
      proposal_id: payload['id'],
      schema_version: '1.2.3',
      action: 'WRITE_FILE',
      args_summary: { path: '/sandbox/a.txt', content: { sha256: sha256('é'), bytes: 2 } },
      outcome: 'DENIED',
      decision: 'DENY',
      error_code: 'POLICY_VIOLATION',
      cause: 'SANDBOX',
      rule_id: 'sandbox.symlink',
      phase_failed_at: 'AUTHORIZE',
      received_at: '2026-01-01T00:00:03.000Z',
      completed_at: '2026-01-01T00:00:09.000Z',
      reasoning: { sha256: sha256('Because it is needed.'), chars: 21 },
      payload: {
        artifact_id: `sha256:${sha256(bytes)}`,
        artifact_kind: 'raw_payload',
        hash_sha256: sha256(bytes),
        byte_size: Buffer.byteLength(bytes),
        scope: 'case',
        case_id: CASE,
      },
      result: null,
      mediated_run_id: `${AGENT}.1`,
      response_sha256: sha256(d.decisions.at(-1)!.replies[0]!.response),
      replay_of: null,
    },
  ]);
});

test('S0-17 S0-18: the raw payload is stored unchanged, byte for byte, even if it is not text', () => {
  const d = new TreeDriver().ready();
  const raw = new Uint8Array([0xff, 0x00, 0x7b]);
  const { artifacts } = d.propose(raw);
  expect(artifacts.map(({ bytes }) => [...bytes])).toEqual([[0xff, 0x00, 0x7b]]);
  expect(d.traces[0]).toMatchObject({ error_code: 'INVALID_ENCODING', payload: { hash_sha256: sha256(raw) } });
});

test('S0-69 S0-70 S0-71 S0-72: in random trees, every detailed response has the five keys, and either a result or an error', () => {
  for (const d of trees) {
    for (const response of d.responses) {
      if ('decision' in response) continue;
      expect(isConforming(DetailedResponse, response)).toBe(true);
      expect(Object.keys(response)).toEqual(['proposal_id', 'action', 'outcome', 'result', 'error']);
      expect(response.result !== null).toBe(response.outcome === 'SUCCESS');
      expect(response.error === null).toBe(response.outcome === 'SUCCESS');
    }
  }
});

test('S2-05 S2-11: an agent can use a response in its next proposal, until it finishes', () => {
  const d = new TreeDriver().ready();
  d.act('LIST_FILES', { path: '/sandbox/' });
  d.done(`${AGENT}.1`, { entries: [{ name: 'found.txt', type: 'file' }] });
  const listed = d.responses.at(-1)!.result as { entries: { name: string }[] };
  d.act('READ_FILE', { path: `/sandbox/${listed.entries[0]!.name}` });
  d.done(`${AGENT}.2`, { content: 'hello' });
  const { content } = d.responses.at(-1)!.result as { content: string };
  d.act('FINISH', { response: content });
  expect(d.responses.map(({ outcome, result }) => [outcome, result])).toEqual([
    ['SUCCESS', { entries: [{ name: 'found.txt', type: 'file' }] }],
    ['SUCCESS', { content: 'hello' }],
    ['SUCCESS', { response: 'hello' }],
  ]);
  expect(d.endings[AGENT]).toBe('completed:finished');
});

test('D12: an action runs in the lane that policy names for it', () => {
  const d = new TreeDriver({ policies: POLICIES['readLane']! }).ready();
  d.act('READ_FILE', READ);
  d.act('LIST_FILES', { path: '/sandbox/' });
  expect(d.created(`${AGENT}.1`)).toMatchObject({ lane_id: 'SANDBOX_READ', case_id: CASE });
  expect(d.audit(`${AGENT}.1`).every(({ lane_id }) => lane_id === 'SANDBOX_READ')).toBe(true);
  expect(d.created(AGENT).lane_id).toBe('SANDBOX_FILES');
});

test('C46 S4-56: a lane that does not inherit the case gives its runs none, and keeps everything else', () => {
  const d = new TreeDriver({ policies: POLICIES['noCaseLane']! }).ready();
  d.act('READ_FILE', READ);
  const { case_id, policy_versions, correlation_id, root_run_id } = d.created(`${AGENT}.1`);
  expect(case_id).toBeNull();
  expect({ policy_versions, correlation_id, root_run_id }).toEqual({
    policy_versions: d.created(AGENT).policy_versions,
    correlation_id: 'cor_test',
    root_run_id: TREE,
  });
  expect(d.endings).toEqual({ [`${AGENT}.1`]: 'denied:sandbox.no_case' });
  expect(d.audit(`${AGENT}.1`).every((event) => event.case_id === undefined)).toBe(true);
});
