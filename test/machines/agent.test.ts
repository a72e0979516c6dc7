import { describe, expect, test } from '@jest/globals';
import type { AgentEvent, AgentInput } from '../../machines/agent.js';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import { machinesFor, policyOf } from '../../src/kernel/pinned-policy.js';
import { amountsOf } from '../../src/core/run/budget-account.js';
import { ABSENT, AGENT, CASE, editedPolicy, FILE, proposal, TREE, TreeDriver } from '../fixtures/tree.js';
import { recordMachine, stateText, topState } from './chart.js';

const NO_MORE = { overlay: null, digest: null } as const;

const LIMITS = editedPolicy({ actions: [['denials_per_run_max: 10', 'denials_per_run_max: 2']] });
const { agent } = machinesFor(policyOf(LIMITS));

const T0 = '2026-01-01T00:00:00.000Z';
const DUE = '2026-01-01T00:01:00.000Z';
const INPUT: AgentInput = {
  run: new TreeDriver().ready().tree.run(AGENT)!.context,
  person: null,
  exposure: 'detailed',
  link: 'remote',
  idle_ms: 60_000,
  started_at: T0,
  budget: null,
};

const propose = (action: string, args: object): AgentEvent => {
  const bytes = Buffer.from(JSON.stringify(proposal(action, args)));
  const payload: Artifact = { kind: 'raw_payload', case_id: CASE, bytes };
  const ref = artifactRef(payload);
  return {
    type: 'PROPOSE',
    input_id: 'p',
    time: T0,
    payload: ref,
    raw: bytes,
    seen: null,
    recorded_response: null,
    tokens: null,
    prompt: null,
    overlay: null,
  };
};
const stepped = (over: { denied?: boolean; finished?: boolean }): AgentEvent => ({
  type: `xstate.done.actor.${AGENT}/step` as 'xstate.done.actor.*',
  actorId: `${AGENT}/step`,
  output: {
    step: true,
    mediated: 0,
    denied: false,
    invalid: false,
    finished: false,
    spent: amountsOf({ steps: 1 }),
    produced: [],
    read: null,
    unknown: null,
    requested: null,
    ...over,
  },
});
const foreign = (type: string): AgentEvent => ({ type }) as unknown as AgentEvent;

const EVENTS: Record<string, AgentEvent> = {
  'AUTHORIZE allow': {
    type: 'AUTHORIZE',
    verdict: { decision: 'allow', rule_id: 'agent.lane_granted', cause: null },
    ...NO_MORE,
  },
  'AUTHORIZE deny': {
    type: 'AUTHORIZE',
    verdict: { decision: 'deny', rule_id: 'lane.unknown', cause: 'LANE' },
    ...NO_MORE,
  },
  CANCEL: { type: 'CANCEL', reason: 'stop' },
  'PROPOSE, waits': propose('READ_FILE', { path: '/sandbox/a.txt' }),
  'PROPOSE THINK': propose('THINK', {}),
  'PROPOSE FINISH': propose('FINISH', { response: 'bye' }),
  'PROPOSE, denied': propose('WRITE_FILE', { path: '/sandbox/.turnpike-a.txt', content: 'x' }),
  END: { type: 'END' },
  INTERRUPT: { type: 'INTERRUPT' },
  'WAKE, due': { type: 'WAKE', time: DUE, overlay: null },
  'WAKE, early': { type: 'WAKE', time: T0, overlay: null },
  'step ended': stepped({}),
  'step finished': stepped({ finished: true }),
  'step denied': stepped({ denied: true }),
  VOTE: {
    type: 'VOTE',
    ballot: {
      digests: ['d'.repeat(64)],
      decision: 'approve',
      approver: { actor: { actor_type: 'human', actor_id: 'anna' }, role_id: 'ATTORNEY_ADMIN' },
      at: T0,
      for_run: AGENT,
    },
    overlay: null,
  },
  RESOLVED: { type: 'RESOLVED', request_hash: 'd'.repeat(64) },
  APPROVAL_USED: { type: 'APPROVAL_USED', digest: 'd'.repeat(64), name: 'WRITE_FILE', at: T0 },
  RESULT: foreign('RESULT'),
  START_AGENT: foreign('START_AGENT'),
  STARTED: foreign('STARTED'),
};

// How to bring a run into each state, and where each event leads. Any event that is not listed leaves the state
// unchanged.
const ALLOWED = ['AUTHORIZE allow'];
const DENIED_ONCE = [...ALLOWED, 'PROPOSE, denied'];
const ROWS: Record<string, { by: string[]; to: Record<string, string> }> = {
  created: { by: [], to: { 'AUTHORIZE allow': 'running', 'AUTHORIZE deny': 'denied', CANCEL: 'cancelled' } },
  'running.ready': {
    by: ALLOWED,
    to: {
      END: 'completed',
      INTERRUPT: 'failed',
      CANCEL: 'cancelled',
      'WAKE, due': 'cancelled',
      'PROPOSE FINISH': 'completed',
    },
  },
  'running.ready, one denial short of the limit': {
    by: DENIED_ONCE,
    to: {
      END: 'completed',
      INTERRUPT: 'failed',
      CANCEL: 'cancelled',
      'WAKE, due': 'cancelled',
      'PROPOSE FINISH': 'completed',
      'PROPOSE, denied': 'denied',
    },
  },
  // The step waits for facts: a cancel ends it at once.
  'running.stepping': {
    by: [...ALLOWED, 'PROPOSE, waits'],
    to: { CANCEL: 'cancelled', 'step finished': 'completed' },
  },
  'running.stepping, to be completed': {
    by: [...ALLOWED, 'PROPOSE, waits', 'END'],
    to: { CANCEL: 'completed', 'step ended': 'completed', 'step finished': 'completed', 'step denied': 'completed' },
  },
  'running.stepping, to be failed': {
    by: [...ALLOWED, 'PROPOSE, waits', 'INTERRUPT'],
    to: { CANCEL: 'failed', 'step ended': 'failed', 'step finished': 'failed', 'step denied': 'failed' },
  },
  'running.stepping, one denial short of the limit': {
    by: [...DENIED_ONCE, 'PROPOSE, waits'],
    to: { CANCEL: 'cancelled', 'step finished': 'completed', 'step denied': 'denied' },
  },
  completed: { by: [...ALLOWED, 'END'], to: {} },
  failed: { by: [...ALLOWED, 'INTERRUPT'], to: {} },
  denied: { by: ['AUTHORIZE deny'], to: {} },
  cancelled: { by: ['CANCEL'], to: {} },
};

describe('an agent run, state by event', () => {
  const cases = Object.entries(ROWS).flatMap(([state, { by, to }]) =>
    Object.keys(EVENTS).map((event) => [state, event, to[event] ?? state.split(/[.,]/)[0]!, by] as const),
  );
  test.each(cases)('S4-21 S4-22 S4-80: %s on %s is %s', (state, event, expected, by) => {
    const { actor, said, errors } = recordMachine(agent, AGENT, INPUT);
    for (const step of by) actor.send(EVENTS[step]!);
    expect(stateText(actor.getSnapshot())).toBe(state.split(',')[0]);
    const before = said.length;
    actor.send(EVENTS[event]!);
    expect(topState(actor)).toBe(expected);
    const ended = said.slice(before).filter((emission) => emission.type === 'ended' && emission.run_id === AGENT);
    expect(ended).toHaveLength(state.split(/[.,]/)[0] !== expected && expected !== 'running' ? 1 : 0);
    if (by.length > 0 && !state.includes('.')) expect(said).toHaveLength(before);
    expect(errors).toEqual([]);
  });
});

const READ = { path: '/sandbox/a.txt' };
const NOTE = { path: '/sandbox/a.sh', content: 'x' };

test('C38 S0-15 S0-57: steps count from 1 without a gap, whatever their outcome', () => {
  const d = new TreeDriver().ready();
  d.propose('not json');
  d.act('THINK', {});
  d.act('READ_FILE', READ);
  d.propose(proposal('THINK', {})); // arrives during a step: not a step
  d.failed(`${AGENT}.1`, 'IO_ERROR');
  d.act('WRITE_FILE', NOTE);
  const seen = { step_index: 2, run_id: AGENT, payload_sha256: 'a'.repeat(64), outcome: null, error_code: null };
  d.propose(proposal('THINK', {}), { ...seen, response: null });
  d.act('FINISH', { response: '' });
  expect(d.traces.map(({ step_index, outcome }) => [step_index, outcome])).toEqual([
    [1, 'VALIDATION_ERROR'],
    [2, 'SUCCESS'],
    [3, 'EXECUTION_ERROR'],
    [4, 'DENIED'],
    [5, 'VALIDATION_ERROR'],
    [6, 'SUCCESS'],
  ]);
});

test('C51 S4-37 S2-11: a denial denies the mediated run, and the agent continues', () => {
  const d = new TreeDriver().ready();
  d.act('WRITE_FILE', NOTE);
  expect(d.endings).toEqual({ [`${AGENT}.1`]: 'denied:extension.not_allowed' });
  d.act('READ_FILE', READ);
  d.done(`${AGENT}.2`, { content: 'hello' });
  expect(d.responses.map(({ outcome }) => outcome)).toEqual(['DENIED', 'SUCCESS']);
});

test('C51: one denial more than policy permits denies the agent run; other rejections do not count', () => {
  const d = new TreeDriver({ policies: LIMITS }).ready();
  d.act('WRITE_FILE', NOTE);
  d.propose('not json');
  d.propose(proposal('RUN_SHELL', {}));
  d.propose(proposal('READ_FILE', { path: '/etc/passwd' }));
  expect(d.tree.isLive(AGENT)).toBe(true);
  d.act('WRITE_FILE', NOTE);
  expect(d.endings).toMatchObject({ [AGENT]: 'denied:limit.denials', [TREE]: 'failed:CHILD_FAILED' });
  expect(d.audit(AGENT).at(-1)).toMatchObject({ outcome: 'deny', outcome_reason: 'denied:limit.denials' });
});

describe('an agent run that has used all its steps', () => {
  const policies = editedPolicy({
    actions: [
      ['steps_per_run_max: 100000', 'steps_per_run_max: 2'],
      ['denials_per_run_max: 10', 'denials_per_run_max: 3'],
    ],
  });
  const spent = (): TreeDriver => {
    const d = new TreeDriver({ policies }).ready();
    d.act('THINK', {});
    d.act('THINK', {});
    expect(d.responses.map(({ outcome }) => outcome)).toEqual(['SUCCESS', 'SUCCESS']);
    return d;
  };
  const OVER = { outcome: 'DENIED', error_code: 'POLICY_VIOLATION', cause: 'BUDGET', rule_id: 'budget.steps' };

  test('S2-11 S4-36: gets a denial for each further proposal, with its own response, and may still finish', () => {
    const d = spent();
    d.act('THINK', {});
    d.act('READ_FILE', READ);
    expect(d.traces.slice(2)).toMatchObject([OVER, OVER]);
    expect(d.audit(`${AGENT}.1`)[0]).toMatchObject({ outcome: 'deny', authz: { rule_id: 'budget.steps' } });
    expect(d.commands).toEqual([]);
    d.act('FINISH', { response: 'bye' });
    expect(d.traces.at(-1)).toMatchObject({ outcome: 'SUCCESS', step_index: 5 });
    expect(d.endings[AGENT]).toBe('completed:finished');
  });

  test('S2-11 C51: is denied as a whole if it continues', () => {
    const d = spent();
    for (let over = 0; over < 3; over += 1) {
      expect(d.tree.isLive(AGENT)).toBe(true);
      d.act('THINK', {});
    }
    expect(d.responses).toHaveLength(5);
    expect(d.endings).toMatchObject({ [AGENT]: 'denied:limit.denials', [TREE]: 'failed:CHILD_FAILED' });
  });
});

test('D5: END completes the run as end_of_input, after the step in flight', () => {
  const d = new TreeDriver().ready();
  d.act('READ_FILE', READ);
  expect(d.send({ kind: 'end', run_id: AGENT }).ended).toEqual([]);
  d.done(`${AGENT}.1`, { content: 'x' });
  expect(d.responses).toMatchObject([{ outcome: 'SUCCESS' }]);
  expect(d.endings).toMatchObject({ [AGENT]: 'completed:end_of_input', [TREE]: 'completed:end_of_input' });
});

test('D3: an agent whose caller has disconnected fails as INTERRUPTED, which is retryable', () => {
  const d = new TreeDriver().ready();
  d.send({ kind: 'interrupt', run_id: AGENT });
  expect(d.audit(AGENT).at(-1)).toMatchObject({
    outcome_reason: 'failed:INTERRUPTED',
    error: { error_code: 'INTERRUPTED', retryable: true },
  });
});

test('C53: a cancel while facts are gathered denies the step, which gets its response, and leaves no work', () => {
  const d = new TreeDriver().ready();
  d.propose(proposal('READ_FILE', READ));
  expect(d.tree.pending).toMatchObject([{ kind: 'gather' }]);
  d.cancel();
  expect(d.responses).toMatchObject([
    { outcome: 'DENIED', error: { message: 'The run cannot act in its present state' } },
  ]);
  expect(d.endings).toMatchObject({ [`${AGENT}.1`]: 'denied:lifecycle.run_ending', [AGENT]: 'cancelled:by_caller' });
  expect(d.tree.pending).toEqual([]);
});

describe('D3: a remote agent', () => {
  const remote = (): TreeDriver => {
    const d = new TreeDriver();
    d.open();
    d.startAgent({ link: 'remote', idle_ms: 60_000 });
    return d;
  };

  test('is cancelled exactly after its idle timeout', () => {
    const d = remote();
    expect(d.tree.timers).toMatchObject([{ run_id: AGENT, at: '2026-01-01T00:01:02.000Z' }]);
    const early = d.wait(58_999).send({ kind: 'wake', run_id: AGENT, overlay: null });
    expect(early).toMatchObject({ refused: false, ended: [], timers: [{ run_id: AGENT }] });
    d.wait(-999).send({ kind: 'wake', run_id: AGENT, overlay: null });
    expect(d.endings).toMatchObject({ [AGENT]: 'cancelled:idle', [TREE]: 'cancelled:idle' });
    expect(d.tree.timers).toEqual([]);
  });

  test('accepts any timeout that a timestamp can represent', () => {
    const d = new TreeDriver();
    d.open();
    d.startAgent({ link: 'remote', idle_ms: Number.MAX_SAFE_INTEGER });
    expect(d.tree.timers).toMatchObject([{ at: '9999-12-31T23:59:59.999Z' }]);
    expect(d.send({ kind: 'wake', run_id: AGENT, overlay: null }).ended).toEqual([]);
  });

  test('restarts its idle timeout with every proposal', () => {
    const d = remote();
    d.wait(50_000).act('THINK', {});
    expect(d.wait(30_000).send({ kind: 'wake', run_id: AGENT, overlay: null }).ended).toEqual([]);
    expect(d.tree.timers).toMatchObject([{ at: '2026-01-01T00:01:53.000Z' }]);
  });

  test('is not idle during a step: a timer that fires then is ignored, and not an illegal transition', () => {
    const d = remote();
    d.act('READ_FILE', READ, { paths: [ABSENT], usage: null });
    const rung = d.wait(70_000).send({ kind: 'wake', run_id: AGENT, overlay: null });
    expect(d.story([rung])).toEqual(['input:wake']);
    expect(d.tree.isLive(AGENT)).toBe(true);
    d.done(`${AGENT}.1`, { content: 'x' });
    expect(d.tree.isLive(AGENT)).toBe(true);
    d.send({ kind: 'wake', run_id: AGENT, overlay: null });
    expect(d.endings[AGENT]).toBe('cancelled:idle');
  });
});

test('an attached agent has no timer', () => {
  const d = new TreeDriver().ready();
  d.act('READ_FILE', READ, { paths: [FILE], usage: null });
  expect(d.tree.timers).toEqual([]);
});
