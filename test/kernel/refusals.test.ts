import { describe, expect, test } from '@jest/globals';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import type { RecordedInput } from '../../src/core/contract/run/entry.js';
import type { TreeInput } from '../../src/kernel/decision.js';
import { restoreTree, Tree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { MAINTAINER, SessionDriver } from '../fixtures/session.js';
import { AGENT, CASE, FILE, proposal, SHIPPED, tell, TREE, TreeDriver } from '../fixtures/tree.js';

const GATEWAY = `${AGENT}.1`;
const DB_WRITE = `${AGENT}.1.1`;
const GATHERING = `${TREE}.2`;
const READY = `${TREE}.3`;
const ENDED = `${TREE}.4`;
const RUNS = [TREE, AGENT, GATEWAY, DB_WRITE, GATHERING, READY, ENDED, 'run_nobody'];

/** One agent executes, one gathers, one waits, one has ended. */
function midway(): TreeDriver {
  const d = new TreeDriver().ready();
  for (let more = 0; more < 3; more += 1) d.startAgent();
  d.act('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });
  d.propose(proposal('READ_FILE', { path: '/sandbox/a.txt' }), null, GATHERING);
  d.send({ kind: 'end', run_id: ENDED });
  return d;
}

const d = midway();
const open = d.inputs[0]!;
const payload: Artifact = { kind: 'raw_payload', case_id: CASE, bytes: Buffer.from('{}') };
const request: Artifact = {
  kind: 'request',
  case_id: CASE,
  bytes: Buffer.from('{"action":"WRITE_RECORD","args":{"target":"shared_playbooks","record":{}}}'),
};
const SESSION_OPEN = new SessionDriver().start().inputs[0]!;
const envelope = { input_id: 'forged', time: '2026-02-01T00:00:00.000Z' };

/** An input of each kind, addressed to a run. */
const INPUTS: Record<RecordedInput['kind'], (run_id: string) => TreeInput> = {
  open: (run_id) => ({ ...open, recorded: { ...open.recorded, ...envelope, run_id } }),
  start_agent: (run_id) => ({ recorded: { ...d.inputs[1]!.recorded, ...envelope, run_id }, materials: [] }),
  proposal: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'proposal',
      run_id,
      payload: artifactRef(payload),
      seen: null,
      tokens: null,
      overlay: null,
    },
    materials: [payload],
  }),
  facts: (run_id) => ({
    recorded: { ...envelope, kind: 'facts', run_id, facts: { paths: [FILE], usage: null } },
    materials: [],
  }),
  result: (run_id) => ({
    recorded: { ...envelope, kind: 'result', run_id, status: 'unknown', cause: null, result: null, settled: false },
    materials: [],
  }),
  report: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'report',
      run_id,
      status: 'done',
      result: null,
      match: 'exact',
      actor: { actor_type: 'agent', actor_id: 'clerk' },
    },
    materials: [],
  }),
  open_session: (run_id) => ({
    recorded: { ...SESSION_OPEN.recorded, ...envelope, run_id },
    materials: SESSION_OPEN.materials,
  }),
  session: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'session',
      feature: 'sessions',
      run_id,
      by: MAINTAINER,
      command: { name: 'replay' },
      vouch: { issue: { step_id: 's', issue: 1, proof_sha256: 'a'.repeat(64) }, evidence_intact: null },
      overlay: null,
    },
    materials: [],
  }),
  access: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'access',
      run_id,
      entry: 3,
      artifact_kind: 'raw_payload',
      hash_sha256: 'a'.repeat(64),
      actor: { actor_type: 'human', actor_id: 'auditor' },
      role_id: 'auditor',
    },
    materials: [],
  }),
  restore: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'restore',
      run_id,
      event: 'restored',
      lineage: 1,
      kept: { size: 10, root: 'a'.repeat(64) },
      lost: { size: 12, root: 'b'.repeat(64) },
      backup_sha256: 'c'.repeat(64),
      actor: { actor_type: 'human', actor_id: 'anna' },
      role_id: 'operator',
    },
    materials: [],
  }),
  rotate_key: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'rotate_key',
      run_id,
      rotation: { purpose: 'ledger', number: 1, old_key: 'log+a+A', new_key: 'log+b+B', note: 'a note' },
      actor: { actor_type: 'human', actor_id: 'anna' },
      role_id: 'operator',
    },
    materials: [],
  }),
  end: (run_id) => ({ recorded: { ...envelope, kind: 'end', run_id }, materials: [] }),
  cancel: (run_id) => ({ recorded: { ...envelope, kind: 'cancel', run_id, reason: 'stop' }, materials: [] }),
  interrupt: (run_id) => ({ recorded: { ...envelope, kind: 'interrupt', run_id }, materials: [] }),
  wake: (run_id) => ({ recorded: { ...envelope, kind: 'wake', run_id, overlay: null }, materials: [] }),
  start_run: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'start_run',
      run_id,
      run_kind: 'promotion',
      actor: { actor_type: 'human', actor_id: 'anna' },
      role_id: 'ATTORNEY_ADMIN',
      lane_id: 'PROMOTE_SHARED_KNOWLEDGE',
      request: artifactRef(request),
      inputs: [],
      facts: { artifact_flags: [], label: { cases: [], flags: [], many: false } },
      overlay: null,
    },
    materials: [request],
  }),
  vote: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'vote',
      run_id,
      digests: ['a'.repeat(64)],
      decision: 'approve',
      approver: { actor: { actor_type: 'human', actor_id: 'anna' }, role_id: 'ATTORNEY_ADMIN' },
      overlay: null,
    },
    materials: [],
  }),
  resolve: (run_id) => ({
    recorded: {
      ...envelope,
      kind: 'resolve',
      run_id,
      outcome: 'done',
      actor: { actor_type: 'human', actor_id: 'anna' },
      role_id: 'ATTORNEY_ADMIN',
      note: '',
    },
    materials: [],
  }),
};
/** An access is recorded for any run of the tree, in any state (below). */
const KINDS = (Object.keys(INPUTS) as RecordedInput['kind'][]).filter((kind) => kind !== 'access');

// What each run accepts in its state. Every other input is rejected.
const TAKES: Record<string, readonly string[]> = {
  [TREE]: ['start_agent', 'start_run', 'cancel', 'restore', 'rotate_key'],
  [AGENT]: ['end', 'cancel', 'interrupt', 'wake', 'vote'],
  [GATEWAY]: ['cancel'],
  [DB_WRITE]: ['result', 'cancel'],
  [GATHERING]: ['facts', 'end', 'cancel', 'interrupt', 'wake', 'vote'],
  [READY]: ['proposal', 'end', 'cancel', 'interrupt', 'wake', 'vote'],
};

/** The state of a tree, without its position in the ledger. */
const stateOf = (tree: Tree): string => JSON.stringify({ ...tree.snapshot(), seq: 0, prev: '' });
const copyOf = (tree: Tree): Tree => restoreTree(JSON.parse(JSON.stringify(tree.snapshot())) as TreeSnapshot, SHIPPED);

/** Expects that the tree rejects the input, changes no state, and records the rejection. */
function expectRefused(tree: Tree, input: TreeInput, told_of: string): void {
  const before = stateOf(tree);
  const { entries, ...rest } = tree.decide(input);
  const nothing = { commands: [], replies: [], timers: [], marks: [], ended: [] };
  expect(rest).toEqual({ ...nothing, artifacts: input.materials, refused: true });
  expect(entries.map(tell)).toEqual([
    `input:${input.recorded.kind}`,
    `system:failure(INVALID_STATE_TRANSITION)@${told_of}`,
  ]);
  expect(entries[1]!.entry.body).toMatchObject({
    target: { target_type: 'system', name: input.recorded.run_id, operation: input.recorded.kind },
    error: { error_code: 'INVALID_STATE_TRANSITION', retryable: false },
  });
  expect(stateOf(tree)).toBe(before);
}

describe('C50 S4-80: every kind of input, addressed to every run of a tree at work', () => {
  const cases = RUNS.flatMap((run_id) => KINDS.map((kind) => [kind, run_id] as const));
  test.each(cases)('%s to %s', (kind, run_id) => {
    const tree = copyOf(d.tree);
    const input = INPUTS[kind](run_id);
    if (TAKES[run_id]?.includes(kind) === true) expect(tree.decide(input).refused).toBe(false);
    else expectRefused(tree, input, tree.run(run_id) === null ? TREE : run_id);
  });
});

describe('S4-23 S4-24 C50: an ended tree changes no state', () => {
  const endings: Record<string, (ending: TreeDriver) => unknown> = {
    completed: (ending) => ending.ready().send({ kind: 'end', run_id: AGENT }),
    failed: (ending) => ending.ready().send({ kind: 'interrupt', run_id: AGENT }),
    denied: (ending) => ending.open({ problems: { roles: 'stale' } }),
    cancelled: (ending) => ending.ready().cancel(),
  };
  test.each(Object.entries(endings))('as %s, for any input to any run', (state, end) => {
    const ended = new TreeDriver();
    end(ended);
    expect(ended.tree.ending.state).toBe(state);
    for (const kind of KINDS) {
      for (const run_id of [TREE, AGENT, GATEWAY, 'run_nobody']) {
        if (run_id === TREE && (kind === 'restore' || kind === 'rotate_key')) continue;
        const known = ended.tree.run(run_id) === null ? TREE : run_id;
        expectRefused(ended.tree, INPUTS[kind](run_id), known);
      }
    }
    expect(ended.tree.ending.state).toBe(state);
  });

  const OF_LEDGER = { restore: 'LEDGER_RESTORED', rotate_key: 'KEY_ROTATED' } as const;
  test.each(Object.keys(OF_LEDGER) as (keyof typeof OF_LEDGER)[])('%s of the ledger is recorded there', (kind) => {
    const ended = new TreeDriver();
    ended.ready().cancel();
    const before = stateOf(ended.tree);
    const { entries, refused } = ended.tree.decide(INPUTS[kind](TREE));
    expect(refused).toBe(false);
    expect(entries.map(({ entry }) => entry.type)).toEqual(['input', 'audit_event']);
    expect(entries[1]!.entry.body).toMatchObject({ run_id: TREE, outcome_reason: OF_LEDGER[kind] });
    expect(stateOf(ended.tree)).toBe(before);
  });
});

describe('reads are audited: access to content', () => {
  const by = { actor: { actor_type: 'human', actor_id: 'auditor' }, role_id: 'auditor' };
  const readEvent = {
    ...by,
    action_type: 'system',
    outcome: 'success',
    outcome_reason: 'CONTENT_READ',
    target: { target_type: 'artifact', name: 'raw_payload', operation: 'read entry 3' },
  };
  /** The run that the entry names: of mediated runs only their agent is remembered. */
  const recordedFor: Record<string, string> = { [GATEWAY]: AGENT, [DB_WRITE]: AGENT };
  const of = (run_id: string): string => (d.tree.run(run_id) === null ? (recordedFor[run_id] ?? AGENT) : run_id);

  test.each(RUNS.filter((run_id) => run_id.startsWith(TREE)))('is recorded for %s, and changes no state', (run_id) => {
    const tree = copyOf(d.tree);
    const before = stateOf(tree);
    const { entries, refused } = tree.decide(INPUTS.access(run_id));
    expect(refused).toBe(false);
    expect(entries.map(({ entry }) => entry.type)).toEqual(['input', 'audit_event']);
    expect(entries[1]!.entry.body).toMatchObject({ ...readEvent, run_id: of(run_id) });
    expect(stateOf(tree)).toBe(before);
  });

  test('is recorded for ended runs, and for a session', () => {
    const ended = new TreeDriver();
    ended.ready().cancel();
    expect(ended.tree.decide(INPUTS.access(AGENT)).entries[1]!.entry.body).toMatchObject({
      ...readEvent,
      run_id: AGENT,
    });
    const session = new SessionDriver().start();
    const { entries, refused } = session.tree.decide(INPUTS.access(session.tree.tree_id));
    expect([refused, entries[1]!.entry.body]).toEqual([
      false,
      expect.objectContaining({ outcome_reason: 'CONTENT_READ' }),
    ]);
  });

  test('is rejected for a run that is not in the tree', () => {
    for (const run_id of ['run_nobody', `${TREE}x`, `${TREE}x.1`])
      expectRefused(copyOf(d.tree), INPUTS.access(run_id), TREE);
  });
});

describe('invalid inputs', () => {
  const forged = (recorded: object): TreeInput => ({ recorded: recorded as RecordedInput, materials: [] });
  test.each<[string, TreeInput]>([
    ...['xstate.init', 'xstate.stop', `xstate.done.actor.${AGENT}`, 'xstate.error.actor.x', 'AUTHORIZE', 'STARTED'].map(
      (kind): [string, TreeInput] => [
        `the event ${kind}`,
        forged({ ...envelope, kind, run_id: AGENT, verdict: { decision: 'allow' }, output: { state: 'completed' } }),
      ],
    ),
    ['the name of a member that every object has', forged({ ...envelope, kind: 'constructor', run_id: AGENT })],
    ['an input without a kind', forged({ ...envelope, run_id: AGENT })],
    ['an input for a step', forged({ ...envelope, kind: 'cancel', run_id: `${GATHERING}/step`, reason: 'x' })],
    ['an input with a field too many', forged({ ...envelope, kind: 'end', run_id: AGENT, verdict: 'allow' })],
    ['a wake at an invalid time', forged({ ...envelope, kind: 'wake', run_id: AGENT, time: 'zzz' })],
    ['facts of another form', forged({ ...envelope, kind: 'facts', run_id: GATHERING, facts: { paths: ['file'] } })],
  ])('S2-14 K2: %s is rejected, and the tree is unchanged', (_what, input) => {
    const tree = copyOf(d.tree);
    const before = [stateOf(tree), tree.head];
    expect(() => tree.decide(input)).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
    expect([stateOf(tree), tree.head]).toEqual(before);
    expect(tree.decide(INPUTS.end(READY)).refused).toBe(false);
  });

  test.each(KINDS.filter((kind) => kind !== 'open' && kind !== 'open_session'))(
    'a tree does not begin with %s',
    (kind) => {
      expect(() => new Tree(TREE).decide(INPUTS[kind](TREE))).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
    },
  );

  test('a tree does not begin with the opening of another tree', () => {
    expect(() => new Tree('run_othertree').decide(open)).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  });
});

test('D4: a second result, or facts for an ended step, are rejected and change nothing', () => {
  const again = midway();
  again.done(DB_WRITE, { bytes_written: 1 });
  expectRefused(again.tree, INPUTS.result(DB_WRITE), TREE);
  expectRefused(again.tree, INPUTS.facts(AGENT), AGENT);
  expect(again.responses).toHaveLength(1);
});
