import { describe, expect, test } from '@jest/globals';
import { authzEmission, FINAL_STATES, isDoneEvent, verdictOf, type MediatedOutcome } from '../../machines/run.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import { RUN } from '../fixtures/privileged.js';
import { edgesOf, edgeText, machines, nodesOf, topEdges } from './chart.js';

const { orchestrator, agent, mediated, step } = machines;

// The table of the lifecycle contract (S4 §3), as a literal. Comparing the machines with a constant that they import
// would prove nothing.
const CONTRACT = {
  created: ['running', 'denied', 'cancelled'],
  running: ['completed', 'failed', 'denied', 'cancelled'],
  completed: [],
  failed: [],
  denied: [],
  cancelled: [],
};
const STATES = ['created', 'running', 'completed', 'failed', 'denied', 'cancelled'];

// For each machine, the reachable rows of the table. A running orchestrator run is never denied: a denial of its agents
// ends it as failed, or not at all (C52).
const ALL_EDGES = [
  'created>cancelled',
  'created>denied',
  'created>running',
  'running>cancelled',
  'running>completed',
  'running>denied',
  'running>failed',
];
const EDGES = {
  orchestrator: ALL_EDGES.filter((edge) => edge !== 'running>denied'),
  agent: ALL_EDGES,
  mediated: ALL_EDGES,
};

const INTO_RUNNING = {
  orchestrator: ['created -AUTHORIZE[isAllowed]-> running'],
  agent: ['created -AUTHORIZE[isAllowed]-> running'],
  mediated: ['created.authorizing -AUTHORIZE[isAllowed]-> running', 'created.votesCounted -[isApproved]-> running'],
};

const runMachines = { orchestrator, agent, mediated };

describe.each(Object.entries(runMachines))('the chart of %s', (name, machine) => {
  test('S4-20 U-01: has the six states of the contract at its top, and begins in created', () => {
    expect(Object.keys(machine.root.states)).toEqual(STATES);
    expect(machine.root.initial.target.map(({ key }) => key)).toEqual(['created']);
  });

  test('S4-21 S4-22 S4-80 C49: has exactly the transitions of the table between them', () => {
    expect(topEdges(machine)).toEqual(EDGES[name as keyof typeof EDGES]);
    for (const edge of topEdges(machine)) {
      const [from, to] = edge.split('>') as [keyof typeof CONTRACT, string];
      expect(CONTRACT[from]).toContain(to);
    }
  });

  test('S4-23 S4-24: has final terminal states, without transitions, children or parents', () => {
    for (const state of ['completed', 'failed', 'denied', 'cancelled'] as const) {
      const node = machine.root.states[state]!;
      expect(node.type).toBe('final');
      expect(Object.keys(node.states)).toEqual([]);
      expect(edgesOf(machine).filter(({ from }) => from === state)).toEqual([]);
    }
    expect(edgesOf(machine).filter(({ from }) => from === '')).toEqual([]);
  });

  test('S4-80 D7: enters running only by AUTHORIZE with an allow; a mediated run also by its approval', () => {
    const into = edgesOf(machine).filter(({ from, to }) => !from.startsWith('running') && to.startsWith('running'));
    expect(into.map(edgeText)).toEqual(INTO_RUNNING[name as keyof typeof INTO_RUNNING]);
  });
});

test('S4-01 S4-21 S4-22: the machines together have every transition of the table', () => {
  const table = Object.entries(CONTRACT).flatMap(([from, targets]) => targets.map((to) => `${from}>${to}`));
  const edges = Object.values(runMachines).flatMap((machine) => topEdges(machine));
  expect([...new Set(edges)].sort()).toEqual(table.sort());
});

test('S2-06: no machine invokes anything, waits for a time, or has a transition for any event', () => {
  for (const machine of [orchestrator, agent, mediated, step]) {
    for (const node of [machine.root, ...nodesOf(machine)]) {
      expect(node.invoke).toEqual([]);
      expect(node.after).toEqual([]);
    }
    const wild = edgesOf(machine).filter(({ event }) => event.includes('*') && event !== 'xstate.done.actor.*');
    expect(wild).toEqual([]);
  }
});

describe('S4-44: a run without a decision is denied', () => {
  const NO_VERDICT = { decision: 'deny', rule_id: 'run.no_verdict', cause: 'LIFECYCLE' };
  const verdict = { decision: 'allow', rule_id: 'lane.granted', cause: null } as const;
  const event = { verdict, overlay: { epoch: 3, rules: [] }, digest: 'd'.repeat(64) };
  const target = { target_type: 'tool', name: 'slow.tool' } as const;

  test('an event of another kind carries no verdict, whatever its members', () => {
    expect(verdictOf({ type: 'OTHER', ...event })).toEqual(NO_VERDICT);
    expect(verdictOf({ type: 'AUTHORIZE', ...event })).toEqual(verdict);
  });

  test('its audit event is a denial without an overlay or a digest', () => {
    const policy_ref = `lanes@${'a'.repeat(40)} roles@${'b'.repeat(40)} actions@${'c'.repeat(40)}`;
    expect(authzEmission(RUN, { type: 'OTHER', ...event }, target)).toMatchObject({
      body: {
        outcome: 'deny',
        target,
        request_hash_sha256: undefined,
        authz: { decision: 'deny', rule_id: 'run.no_verdict', policy_ref },
      },
    });
    expect(authzEmission(RUN, { type: 'AUTHORIZE', ...event })).toMatchObject({
      body: {
        outcome: 'allow',
        target: undefined,
        request_hash_sha256: event.digest,
        authz: { decision: 'allow', rule_id: 'lane.granted', policy_ref: `${policy_ref} overlay@3` },
      },
    });
  });
});

test('only the end of a child is one', () => {
  expect(isDoneEvent({ type: 'xstate.done.actor.run_a.1' })).toBe(true);
  for (const type of ['RESULT', 'xstate.done.state.x', 'x.xstate.done.actor.run_a.1'])
    expect(isDoneEvent({ type })).toBe(false);
});

describe('S4-61: the products in the output of a run', () => {
  const ref = (text: string) => artifactRef({ kind: 'result', case_id: 'case_1', bytes: Buffer.from(text) });
  const done = (result: MediatedOutcome['result']): MediatedOutcome => ({
    result,
    result_ref: ref('result'),
    cause: null,
    denied_by: null,
    at: null,
  });
  const outputsOf = (over: object) =>
    FINAL_STATES.completed.output({ context: { run: RUN, end: null, ...over } }).outputs;

  test.each([
    ['are its own outputs, if it has a list', { outputs: [ref('own')], done: done({}) }, [ref('own')]],
    ['are what it has written', { done: done({}), request: { written: ref('written') } }, [ref('written')]],
    ['are its result, if it has written nothing', { done: done({}), request: { written: null } }, [ref('result')]],
    ['are its result without a request', { done: done({}) }, [ref('result')]],
    ['are none without a result', { done: done(null), request: { written: ref('written') } }, []],
    ['are none without an action', {}, []],
  ])('%s', (_what, over, outputs) => {
    expect(outputsOf(over)).toEqual(outputs);
  });
});
