import { describe, expect, test } from '@jest/globals';
import type { OrchestratorEvent } from '../../machines/orchestrator.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import type { RunContext, TerminalState } from '../../src/core/contract/run/run-context.js';
import { EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import { AGENT, editedPolicy, proposal, TREE, TreeDriver } from '../fixtures/tree.js';
import { recordMachine, machines, stateText, topState } from './chart.js';

const NO_MORE = { overlay: null, digest: null } as const;

const READY = new TreeDriver().ready();
const ROOT = READY.tree.run(TREE)!.context;
const SECOND = `${TREE}.2`;

const CANCEL: OrchestratorEvent = { type: 'CANCEL', reason: 'stop' };
const startAgent: OrchestratorEvent = {
  type: 'START_AGENT',
  actor: { actor_type: 'agent', actor_id: 'tester' },
  role_id: 'SANDBOX_AGENT',
  lane_id: 'SANDBOX_FILES',
  exposure: 'detailed',
  link: 'attached',
  idle_ms: null,
  budget: null,
  overlay: null,
  time: '2026-01-01T00:00:00.000Z',
};
const agentEnded = (state: TerminalState): OrchestratorEvent => ({
  type: `xstate.done.actor.${AGENT}` as 'xstate.done.actor.*',
  actorId: AGENT,
  output: { run_id: AGENT, state, end: { reason: state, error: null }, done: null, spent: null },
});
const foreign = (type: string): OrchestratorEvent => ({ type }) as unknown as OrchestratorEvent;

const EVENTS: Record<string, OrchestratorEvent> = {
  'AUTHORIZE allow': {
    type: 'AUTHORIZE',
    verdict: { decision: 'allow', rule_id: 'orchestrator.pinned', cause: null },
    ...NO_MORE,
  },
  'AUTHORIZE deny': {
    type: 'AUTHORIZE',
    verdict: { decision: 'deny', rule_id: 'pin.missing.lanes', cause: 'LANE' },
    ...NO_MORE,
  },
  CANCEL,
  START_AGENT: startAgent,
  'START_AGENT, unknown lane': { ...startAgent, lane_id: 'NOWHERE' },
  // The machines of the shipped policy have no table to promote to.
  'START_RUN, denied': {
    type: 'START_RUN',
    run_kind: 'promotion',
    actor: { actor_type: 'human', actor_id: 'anna' },
    role_id: 'ATTORNEY_ADMIN',
    lane_id: 'PROMOTE_SHARED_KNOWLEDGE',
    act: { action: 'WRITE_RECORD', args: { target: 'nowhere', record: {} } },
    request: artifactRef({ kind: 'request', case_id: null, bytes: Buffer.from('{}') }),
    inputs: [],
    facts: { artifact_flags: [], label: EMPTY_LABEL },
    overlay: null,
    time: '2026-01-01T00:00:00.000Z',
  },
  'agent completed': agentEnded('completed'),
  'agent failed': agentEnded('failed'),
  'agent denied': agentEnded('denied'),
  'agent cancelled': agentEnded('cancelled'),
  PROPOSE: foreign('PROPOSE'),
  END: foreign('END'),
  INTERRUPT: foreign('INTERRUPT'),
  WAKE: foreign('WAKE'),
  RESULT: foreign('RESULT'),
};

// How to bring a run into each state, and where each event leads. Any event that is not listed leaves the state
// unchanged.
const AGENT_ENDS = {
  'agent completed': 'completed',
  'agent failed': 'failed',
  'agent denied': 'failed',
  'agent cancelled': 'cancelled',
};
const ROWS: Record<string, { by: string[]; to: Record<string, string> }> = {
  created: { by: [], to: { 'AUTHORIZE allow': 'running', 'AUTHORIZE deny': 'denied', CANCEL: 'cancelled' } },
  'running.working, with no agent': {
    by: ['AUTHORIZE allow'],
    to: { ...AGENT_ENDS, CANCEL: 'cancelled', 'START_AGENT, unknown lane': 'failed', 'START_RUN, denied': 'failed' },
  },
  'running.working, with one agent': {
    by: ['AUTHORIZE allow', 'START_AGENT'],
    to: { ...AGENT_ENDS, CANCEL: 'cancelled', 'START_AGENT, unknown lane': 'failed', 'START_RUN, denied': 'failed' },
  },
  'running.working, with two agents': {
    by: ['AUTHORIZE allow', 'START_AGENT', 'START_AGENT'],
    to: {
      'agent failed': 'failed',
      'agent denied': 'failed',
      CANCEL: 'cancelled',
      'START_AGENT, unknown lane': 'failed',
      'START_RUN, denied': 'failed',
    },
  },
  completed: { by: ['AUTHORIZE allow', 'START_AGENT', 'agent completed'], to: {} },
  failed: { by: ['AUTHORIZE allow', 'START_AGENT', 'agent failed'], to: {} },
  denied: { by: ['AUTHORIZE deny'], to: {} },
  cancelled: { by: ['CANCEL'], to: {} },
};

describe('an orchestrator run, state by event', () => {
  const cases = Object.entries(ROWS).flatMap(([state, { by, to }]) =>
    Object.keys(EVENTS).map((event) => [state, event, to[event] ?? state.split(/[.,]/)[0]!, by] as const),
  );
  test.each(cases)('S4-21 S4-22 S4-80: %s on %s is %s', (state, event, expected, by) => {
    const { actor, said, errors } = recordMachine(machines.orchestrator, TREE, { run: ROOT });
    for (const step of by) actor.send(EVENTS[step]!);
    expect(stateText(actor.getSnapshot())).toBe(state.split(',')[0]);
    const before = said.length;
    actor.send(EVENTS[event]!);
    expect(topState(actor)).toBe(expected);
    const ended = said.slice(before).filter((emission) => emission.type === 'ended' && emission.run_id === TREE);
    expect(ended).toHaveLength(state.split(/[.,]/)[0] !== expected && expected !== 'running' ? 1 : 0);
    if (by.length > 0 && !state.includes('.')) expect(said).toHaveLength(before);
    expect(errors).toEqual([]);
  });
});

const READ = { path: '/sandbox/a.txt' };
const WRITE = { path: '/sandbox/a.txt', content: 'x' };
const LENIENT = editedPolicy({ actions: [['on_child_failure: fail', 'on_child_failure: continue']] });

test('S4-12 S4-54 S4-55 U-02 U-03: it creates agent runs with consecutive ordinals, and is their root', () => {
  const d = new TreeDriver().ready();
  d.startAgent();
  expect(
    d.bodies('run_created').map(({ run_id, run_kind, parent_run_id, root_run_id }) => ({
      run_id,
      run_kind,
      parent_run_id,
      root_run_id,
    })),
  ).toEqual([
    { run_id: TREE, run_kind: 'orchestrator', parent_run_id: null, root_run_id: TREE },
    { run_id: AGENT, run_kind: 'agent', parent_run_id: TREE, root_run_id: TREE },
    { run_id: SECOND, run_kind: 'agent', parent_run_id: TREE, root_run_id: TREE },
  ]);
});

test('S4-56 S4-57 S4-30 U-03: an agent run has its own role, lane and actor, and inherits everything else', () => {
  const d = new TreeDriver();
  d.open({ taxonomy_versions: { coa: 'coa-7' }, scope: { coa_version: '7' } });
  d.startAgent({
    actor: { actor_type: 'agent', actor_id: 'mapper' },
    role_id: 'MAPPING_AGENT',
    lane_id: 'WRITE_MAPPING_OUTPUTS',
  });
  const { actor, role_id, lane_id, run_id, run_kind, parent_run_id, ...inherited } = d.tree.run(AGENT)!.context;
  expect({ actor, role_id, lane_id }).toEqual({
    actor: { actor_type: 'agent', actor_id: 'mapper' },
    role_id: 'MAPPING_AGENT',
    lane_id: 'WRITE_MAPPING_OUTPUTS',
  });
  const root: RunContext = d.tree.run(TREE)!.context;
  expect({ ...root, ...inherited }).toEqual(root);
  expect({ run_id, run_kind, parent_run_id }).toEqual({ run_id: AGENT, run_kind: 'agent', parent_run_id: TREE });
  expect(d.audit().every(({ taxonomy_versions }) => taxonomy_versions?.coa === 'coa-7')).toBe(true);
});

test('C52: if an agent run fails, `fail` cancels its other agents first, and then fails the orchestrator run', () => {
  const d = new TreeDriver().ready();
  d.startAgent();
  d.send({ kind: 'interrupt', run_id: AGENT });
  expect(d.story(d.decisions.slice(-1))).toEqual([
    'input:interrupt',
    `system:failure(failed:INTERRUPTED)@${AGENT}`,
    `system:failure(cancelled:CHILD_FAILED)@${SECOND}`,
    `system:failure(failed:CHILD_FAILED)@${TREE}`,
  ]);
});

test('C52: `fail` waits for an effect in flight of another agent, and accepts no new agent meanwhile', () => {
  const d = new TreeDriver().ready();
  d.startAgent();
  d.propose(proposal('WRITE_FILE', WRITE), null, SECOND);
  d.facts({ paths: [{ status: 'absent' }], usage: { bytes: 0, files: 0 } }, SECOND);
  expect(d.send({ kind: 'interrupt', run_id: AGENT }).ended).toMatchObject([{ run_id: AGENT }]);
  expect(d.startAgent().refused).toBe(true);
  expect(d.cancel().refused).toBe(true);
  d.done(`${SECOND}.1.1`, { bytes_written: 1 });
  expect(d.responses).toMatchObject([{ outcome: 'SUCCESS' }]);
  expect(d.endings).toMatchObject({ [SECOND]: 'cancelled:CHILD_FAILED', [TREE]: 'failed:CHILD_FAILED' });
});

test('C52: `continue` lets the other agents run, and ends with the result of the last one', () => {
  const d = new TreeDriver({ policies: LENIENT }).ready();
  d.startAgent();
  d.send({ kind: 'interrupt', run_id: AGENT });
  expect(d.tree.isLive(SECOND)).toBe(true);
  d.propose(proposal('FINISH', { response: '' }), null, SECOND);
  expect(d.endings).toMatchObject({ [AGENT]: 'failed:INTERRUPTED', [TREE]: 'completed:finished' });
});

test('C52: with `continue`, the end of the run names the failure of the last agent run', () => {
  const d = new TreeDriver({ policies: LENIENT }).ready();
  d.send({ kind: 'interrupt', run_id: AGENT });
  expect(d.endings[TREE]).toBe('completed:child_failed');
});

test('C53: a cancel ends every run below first, the deepest first, each of them once', () => {
  const d = new TreeDriver().ready();
  d.startAgent();
  d.propose(proposal('READ_FILE', READ), null, SECOND);
  expect(d.story([d.cancel(TREE, 'user')])).toEqual([
    'input:cancel',
    `system:failure(cancelled:by_caller)@${AGENT}`,
    `created:tool_gateway@${SECOND}.1`,
    `authz_decision:deny(lifecycle.run_ending)@${SECOND}.1`,
    `system:deny(denied:lifecycle.run_ending)@${SECOND}.1`,
    'trace:DENIED',
    `system:failure(cancelled:by_caller)@${SECOND}`,
    `system:failure(cancelled:by_caller)@${TREE}`,
  ]);
});

describe('S4-29 C44: a missing pin', () => {
  test.each(['lanes', 'roles', 'actions'] as const)(
    '%s denies the run in created, and is recorded as UNPINNED',
    (name) => {
      const d = new TreeDriver();
      const opened = d.open({ problems: { [name]: 'dirty' } });
      expect(d.story()).toEqual([
        'input:open',
        `created:orchestrator@${TREE}`,
        `authz_decision:deny(pin.missing.${name})@${TREE}`,
        `system:deny(denied:pin.missing.${name})@${TREE}`,
      ]);
      expect(opened.ended).toEqual([{ run_id: TREE, state: 'denied', reason: `pin.missing.${name}` }]);
      for (const { policy_versions } of [...d.audit(), d.created(TREE)]) {
        const pinned = { lanes: 'a'.repeat(40), roles: 'a'.repeat(40), actions: 'a'.repeat(40) };
        expect(policy_versions).toMatchObject({ ...pinned, [name]: 'UNPINNED' });
      }
      expect(d.startAgent().refused).toBe(true);
    },
  );
});

test('S4-29: bytes that differ from the pinned ones count as a missing pin', () => {
  const d = new TreeDriver();
  d.open();
  const [open] = d.inputs;
  if (open?.recorded.kind !== 'open') throw new Error('the first input opens the tree');
  const { policies } = open.recorded;
  const forged = { ...policies, lanes: { ...policies.lanes, sha256: 'f'.repeat(64) } };
  const other = new TreeDriver();
  other.take({ ...open, recorded: { ...open.recorded, policies: forged } });
  expect(other.endings).toEqual({ [TREE]: 'denied:pin.missing.lanes' });
});

describe('S4-13 S4-31 S4-32 C51: an agent run', () => {
  test.each([
    ['a role that nobody knows', { role_id: 'NOBODY' }, 'role.unknown'],
    ['a lane that nobody knows', { lane_id: 'NOWHERE' }, 'lane.unknown'],
    ['a lane that its role does not list', { lane_id: 'EXPORT_CASE_DATA' }, 'role.lane_not_granted'],
    ['the role of the platform', { role_id: 'SYSTEM' }, 'role.lane_not_granted'],
  ])('with %s is denied by itself', (_what, over, rule) => {
    const d = new TreeDriver();
    d.open();
    expect(d.story([d.startAgent(over)])).toEqual([
      'input:start_agent',
      `created:agent@${AGENT}`,
      `authz_decision:deny(${rule})@${AGENT}`,
      `system:deny(denied:${rule})@${AGENT}`,
      `system:failure(failed:CHILD_FAILED)@${TREE}`,
    ]);
  });
});
