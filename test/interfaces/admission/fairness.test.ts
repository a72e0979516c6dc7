// The fairness of the schedule: what it charges, whom it serves first, how many may wait, and what it stores per token.

import { describe, expect, test } from '@jest/globals';
import { BulkTimeShare } from '../../../src/interfaces/admission/bulk-time-share.js';
import {
  DEFAULT_LIMITS,
  resolveAdmissionLimits,
  WORK_KINDS,
  type AdmissionOptions,
  type WorkKind,
} from '../../../src/interfaces/admission/admission-limits.js';
import { AdmissionSchedule, type ScheduledRequest } from '../../../src/interfaces/admission/admission-schedule.js';

const ONE_READ = { read: { running: 1, runningPerToken: 1, queueMs: 1_000, cost: 1 } } as const;

function scheduled(options: AdmissionOptions = {}) {
  const schedule = new AdmissionSchedule(resolveAdmissionLimits(options));
  /** Each request has a connection of its own. */
  const enter = (token: string, kind: WorkKind, now = 0): ScheduledRequest =>
    schedule.enter({ token, connection: {}, kind, bytes: 0 }, now);
  return { schedule, enter };
}

describe('A4: charges', () => {
  test('the work of a read: a token that was served more comes later', () => {
    const { schedule, enter } = scheduled({ kinds: ONE_READ });
    const first = enter('one', 'read');
    const [mine, theirs] = [enter('one', 'read'), enter('two', 'read')];
    schedule.charge(first, 500, 0);
    schedule.leave(first, 0);
    expect([schedule.next(0), schedule.next(0)]).toEqual([theirs, null]);
    schedule.leave(theirs, 0);
    expect(schedule.next(0)).toBe(mine);
  });

  test('tasks, like reads: a token without budget starts none', () => {
    const { schedule, enter } = scheduled({ costBurst: 4, costPerSecond: 1_000 });
    const task = enter('one', 'task');
    expect(task.state).toBe('running');
    schedule.leave(task, 0);
    const next = enter('one', 'task');
    expect([next.state, enter('one', 'step').state]).toEqual(['queued', 'running']);
    expect([schedule.next(0), schedule.next(1)]).toEqual([null, next]);
  });

  test('refuses a token that waits for its own budget by its own limit, with the time to wait', () => {
    const { schedule, enter } = scheduled({ costBurst: 10, costPerSecond: 1 });
    const first = enter('one', 'read');
    schedule.charge(first, 50_009, 0);
    schedule.leave(first, 0);
    const waiting = enter('one', 'read');
    expect(schedule.next(10_000)).toBe(waiting);
    expect(waiting.refusal).toEqual({ cause: 'token', retryMs: 49_990_000 });
    // A token without debt may retry in a second.
    const { enter: other } = scheduled({ queuedPerToken: 0, kinds: ONE_READ });
    other('one', 'read');
    expect(other('one', 'read').refusal).toEqual({ cause: 'token', retryMs: 1_000 });
  });

  test('a request that leaves twice, or after its refusal, releases its slot once', () => {
    const { schedule } = scheduled({ requestsPerConnection: 2 });
    const connection = {};
    const enter = (): ScheduledRequest => schedule.enter({ token: 'one', connection, kind: 'step', bytes: 0 }, 0);
    const [first, , refused] = [enter(), enter(), enter()];
    for (const one of [first, first, refused]) schedule.leave(one, 0);
    expect([enter().state, enter().state]).toEqual(['running', 'refused']);
    expect(schedule.counts).toMatchObject({ running: 2, waiting: 0 });
  });
});

describe('A5: while a modest token works', () => {
  const LANE = { bulkShare: 0.5, modestAfterMs: 5, sharedAfterMs: 100, sliceMs: 2 };

  test('a read continues at once only if no other read waits for its next slice; the schedule decides the order', () => {
    const { schedule, enter } = scheduled({ bulkShare: 0.25, modestAfterMs: 5 });
    const [first, second] = [enter('one', 'read'), enter('two', 'read')];
    const step = enter('three', 'step', 10);
    expect(schedule.slice(first, 20, 10)).toBe(false);
    schedule.leave(step, 10);
    // No token is modest any more, but the other one has waited longer.
    expect(schedule.slice(second, 2, 100)).toBe(false);
    expect([schedule.next(100), schedule.next(100), schedule.next(100)]).toEqual([second, first, null]);
  });

  test('a token with many steps runs only a few while another token worked within the last second', () => {
    const { schedule, enter } = scheduled({ bulkSteps: 3, bulkShare: 1, sharedAfterMs: 1_000 });
    schedule.leave(enter('two', 'step'), 0);
    const flood = Array.from({ length: 10 }, () => enter('one', 'step', 500));
    expect(flood.filter(({ state }) => state === 'running')).toHaveLength(3);
    for (let next = schedule.next(1_001); next !== null; next = schedule.next(1_001))
      expect(next.state).toBe('running');
    expect(flood.every(({ state }) => state === 'running')).toBe(true);
  });

  test('health checks count together with steps: a token is not modest in each kind separately', () => {
    const { enter } = scheduled({ modestSteps: 2 });
    const all = (['live', 'live', 'step'] as const).map((kind) => enter('one', kind));
    expect(all.map(({ modest }) => modest)).toEqual([true, true, false]);
  });

  test('work is contended while another token’s step runs, and for some milliseconds after its end', () => {
    const lane = new BulkTimeShare(LANE);
    lane.begin('two');
    lane.begin('two');
    lane.end('two', 10);
    // Its second request still runs.
    expect([lane.isContended('one', 1_000), lane.isContended('two', 1_000)]).toEqual([true, false]);
    lane.end('two', 1_000);
    expect([1_005, 1_006].map((now) => lane.isContended('one', now))).toEqual([true, false]);
    expect([1_100, 1_101].map((now) => lane.isShared('one', now))).toEqual([true, false]);
  });

  test('the steps of a token do not hide the work of another one', () => {
    const lane = new BulkTimeShare(LANE);
    for (const [token, at] of [['two', 10] as const, ['one', 12] as const]) {
      lane.begin(token);
      lane.end(token, at);
    }
    expect([13, 15, 16].map((now) => lane.isContended('one', now))).toEqual([true, true, false]);
  });

  test('idle bulk work accumulates at most one slice', () => {
    const lane = new BulkTimeShare(LANE);
    lane.begin('two');
    expect(lane.isOpen('one', 3_600_000)).toBe(true);
    lane.spend('one', { cost: 3, now: 3_600_000 });
    expect([lane.isOpen('one', 3_600_000), lane.isOpen('one', 3_600_003)]).toEqual([false, true]);
  });
});

test('tokens without a request are limited; one with a request is never evicted', () => {
  const { schedule, enter } = scheduled({
    costBurst: 10,
    costPerSecond: 1,
    kinds: { read: { running: 8, runningPerToken: 1, queueMs: 1_000, cost: 1 } },
  });
  enter('busy', 'read');
  const idle = enter('idle', 'task');
  schedule.charge(idle, 50_000, 0);
  schedule.leave(idle, 0);
  const inDebt = enter('idle', 'task');
  expect(inDebt.state).toBe('queued');
  schedule.leave(inDebt, 0);
  for (let n = 0; n < 5_000; n += 1) schedule.leave(enter(`token-${n}`, 'live'), 0);
  // An evicted token is in debt no longer, and has no running read.
  const later = 10_000;
  expect([enter('busy', 'read', later).state, enter('idle', 'task', later).state]).toEqual(['queued', 'running']);
});

/** One read runs, and the others wait. */
function waiting(options: AdmissionOptions) {
  const { schedule, enter } = scheduled({ kinds: ONE_READ, ...options });
  return { schedule, enter: (token: string, now = 0): ScheduledRequest => enter(token, 'read', now) };
}

const states = (requests: readonly ScheduledRequest[]): readonly string[] => requests.map(({ state }) => state);

describe('A3: the queue is bounded', () => {
  test('at the limit of a token the next request is refused at once, and another token still waits', () => {
    const { schedule, enter } = waiting({ queuedPerToken: 2 });
    const mine = [enter('one'), enter('one'), enter('one'), enter('one')];
    expect(states(mine)).toEqual(['running', 'queued', 'queued', 'refused']);
    expect(mine[3]?.refusal).toMatchObject({ cause: 'token' });
    expect(enter('two').state).toBe('queued');
    expect(schedule.waiting).toBe(3);
    // A request that leaves makes room for one.
    schedule.leave(mine[1]!, 1);
    expect([enter('one', 1).state, enter('one', 1).state]).toEqual(['queued', 'refused']);
  });

  test('at the limit of all tokens the next request is refused as overload, whatever its token', () => {
    const { schedule, enter } = waiting({ queued: 3 });
    const all = ['one', 'two', 'three', 'four', 'five'].map((token) => enter(token));
    expect(states(all)).toEqual(['running', 'queued', 'queued', 'queued', 'refused']);
    expect(all[4]?.refusal).toMatchObject({ cause: 'service' });
    expect(schedule.counts).toMatchObject({ waiting: 3, refused: { service: 1, token: 0 } });
  });

  test('a refused request counts neither for its connection nor for its token', () => {
    const { schedule, enter } = waiting({ queuedPerToken: 1, connectionsPerToken: 3 });
    const first = enter('one');
    enter('one');
    for (let n = 0; n < 10; n += 1) expect(enter('one').refusal).toMatchObject({ cause: 'token' });
    schedule.leave(first, 1);
    expect(schedule.next(1)?.state).toBe('running');
    expect(enter('one', 1).state).toBe('queued');
  });
});

test.each(WORK_KINDS)('an operator can set single limits of %s and keep the other defaults', (kind) => {
  const { kinds, ...rest } = resolveAdmissionLimits({ kinds: { [kind]: { queueMs: 7 } }, queued: 9 });
  const { kinds: defaults, ...others } = DEFAULT_LIMITS;
  expect(kinds).toEqual({ ...defaults, [kind]: { ...defaults[kind], queueMs: 7 } });
  expect(rest).toEqual({ ...others, queued: 9 });
});
