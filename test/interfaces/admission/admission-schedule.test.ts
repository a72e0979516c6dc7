// The decisions of the admission schedule, with a test clock.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  resolveAdmissionLimits,
  WORK_KINDS,
  type AdmissionLimits,
  type AdmissionOptions,
} from '../../../src/interfaces/admission/admission-limits.js';
import { sized } from '../../fixtures/campaign.js';
import {
  AdmissionSchedule,
  type ScheduledRequest,
  type WorkDemand,
} from '../../../src/interfaces/admission/admission-schedule.js';

const connections = Array.from({ length: 64 }, () => ({}));
const demand = (over: Partial<WorkDemand> & { readonly over?: number } = {}): WorkDemand => {
  const { over: connection = 0, ...rest } = over;
  return { token: 'one', connection: connections[connection] ?? {}, kind: 'read', bytes: 0, ...rest };
};
const scheduled = (options: AdmissionOptions = {}) => new AdmissionSchedule(resolveAdmissionLimits(options));
const kinds = { read: { running: 2, runningPerToken: 1, queueMs: 1_000, cost: 1 } };

describe('limits', () => {
  test('limits the requests without a response of a connection, and admits more after responses', () => {
    const schedule = scheduled({ requestsPerConnection: 2, kinds });
    const first = schedule.enter(demand(), 0);
    schedule.enter(demand(), 0);
    expect(schedule.enter(demand(), 0)).toMatchObject({ state: 'refused', refusal: { cause: 'connection' } });
    schedule.leave(first, 1);
    expect(schedule.enter(demand(), 1).state).toBe('queued');
  });

  test('limits the connections of a token that have requests; idle ones do not count', () => {
    const schedule = scheduled({ connectionsPerToken: 2 });
    const first = schedule.enter(demand({ over: 0 }), 0);
    schedule.enter(demand({ over: 1 }), 0);
    expect(schedule.enter(demand({ over: 2 }), 0)).toMatchObject({ refusal: { cause: 'connections' } });
    expect(schedule.enter(demand({ over: 1 }), 0).refusal).toBeNull();
    schedule.leave(first, 0);
    expect(schedule.enter(demand({ over: 2 }), 0).refusal).toBeNull();
  });

  test('one token cannot take the slots of others, and waiting requests run when one ends', () => {
    const schedule = scheduled({ kinds });
    const mine = [schedule.enter(demand({ over: 0 }), 0), schedule.enter(demand({ over: 1 }), 0)];
    expect(mine.map(({ state }) => state)).toEqual(['running', 'queued']);
    expect(schedule.enter(demand({ token: 'two', over: 2 }), 0).state).toBe('running');
    expect(schedule.next(0)).toBeNull();
    schedule.leave(mine[0]!, 1);
    expect(schedule.next(1)).toBe(mine[1]);
    expect(mine[1]?.state).toBe('running');
  });

  test('refuses a request at its deadline: 429 at the limit of its token, 503 at the limit of the service', () => {
    const schedule = scheduled({ kinds });
    schedule.enter(demand({ over: 0 }), 0);
    const own = schedule.enter(demand({ over: 1 }), 0);
    schedule.enter(demand({ token: 'two', over: 2 }), 0);
    const others = schedule.enter(demand({ token: 'three', over: 3 }), 0);
    expect(schedule.nextWakeTime(0)).toBe(1_000);
    expect(schedule.next(999)).toBeNull();
    expect([schedule.next(1_000), schedule.next(1_000), schedule.next(1_000)]).toEqual([own, others, null]);
    expect(own.refusal).toMatchObject({ cause: 'token' });
    expect(others.refusal).toMatchObject({ cause: 'service' });
    expect(others.refusal?.retryMs).toBeGreaterThanOrEqual(1_000);
  });

  test('reads bodies of one token up to its limit; a larger body is read alone', () => {
    const schedule = scheduled({ bodyBytesPerToken: 10, bodyBytes: 15 });
    const step = (bytes: number, over: number, token = 'one') =>
      schedule.enter(demand({ kind: 'step', bytes, over, token }), 0);
    const large = step(12, 0);
    expect([large.state, step(1, 1).state, step(4, 2, 'two').state]).toEqual(['running', 'queued', 'queued']);
    schedule.leave(large, 0);
    expect([schedule.next(0)?.bytes, schedule.next(0)?.bytes]).toEqual([4, 1]);
  });

  test('charges reads to their token, and the next one waits for the refund', () => {
    const schedule = scheduled({ costPerSecond: 100, costBurst: 50 });
    const first = schedule.enter(demand(), 0);
    expect(schedule.slice(first, 100, 0)).toBe(true);
    schedule.leave(first, 0);
    const next = schedule.enter(demand(), 0);
    expect([next.state, schedule.enter(demand({ token: 'two' }), 0).state]).toEqual(['queued', 'running']);
    expect(schedule.nextWakeTime(0)).toBe(510);
    expect([schedule.next(509), schedule.next(510)]).toEqual([null, next]);
  });
});

describe('shares', () => {
  const flood = (schedule: AdmissionSchedule, count: number, now = 0): ScheduledRequest[] =>
    Array.from({ length: count }, (_, n) => schedule.enter(demand({ kind: 'step', over: n }), now));

  test('a single token runs all its steps at once; with a modest token it gets its share of the time', () => {
    const schedule = scheduled({ bulkShare: 0.25, sliceMs: 2 });
    const all = flood(schedule, 10);
    expect(all.every(({ state }) => state === 'running')).toBe(true);
    for (const each of all) schedule.leave(each, 0);
    const modest = schedule.enter(demand({ token: 'two', kind: 'step', over: 20 }), 10);
    expect(modest).toMatchObject({ state: 'running', modest: true });
    const later = flood(schedule, 10, 10);
    let run = later.filter(({ state }) => state === 'running').length;
    for (let now = 11; now <= 110; now += 1) {
      for (let next = schedule.next(now); next !== null; next = schedule.next(now)) {
        run += 1;
        schedule.leave(next, now);
        later.push(schedule.enter(demand({ kind: 'step', over: later.indexOf(next) % 10 }), now));
      }
    }
    // A step costs 1: a quarter of 100 ms, plus the balance of the first steps.
    expect(run).toBeGreaterThanOrEqual(20);
    expect(run).toBeLessThanOrEqual(32);
  });

  test('a step of a modest token runs at once, however many requests of others wait', () => {
    const schedule = scheduled();
    schedule.enter(demand({ token: 'two', kind: 'step', over: 60 }), 0);
    flood(schedule, 60);
    expect(schedule.waiting).toBeGreaterThan(40);
    expect(schedule.enter(demand({ token: 'three', kind: 'step', over: 61 }), 0).state).toBe('running');
    expect(schedule.enter(demand({ token: 'three', kind: 'live', over: 61 }), 0).state).toBe('running');
  });

  test('a token that takes steps faster than any agent is no longer modest', () => {
    const schedule = scheduled({ modestStepsPerSecond: 100 });
    schedule.enter(demand({ token: 'two', kind: 'step', over: 60 }), 0);
    const runs = Array.from({ length: 20 }, () => {
      const one = schedule.enter(demand({ kind: 'step' }), 0);
      schedule.leave(one, 0);
      return one.modest;
    });
    expect(runs.filter((modest) => modest)).toHaveLength(10);
  });

  test('serves two tokens with many reads in turn, in proportion to their weights', () => {
    const schedule = scheduled({
      weights: { two: 2 },
      kinds: { read: { running: 1, runningPerToken: 1, queueMs: 1e9, cost: 10 } },
      requestsPerConnection: 1e9,
      costBurst: 1e9,
    });
    let running = schedule.enter(demand({ token: 'one' }), 0);
    for (let n = 0; n < 60; n += 1) {
      schedule.enter(demand({ token: 'one' }), 0);
      schedule.enter(demand({ token: 'two', over: 1 }), 0);
    }
    const served: string[] = [];
    for (let n = 0; n < 60; n += 1) {
      schedule.leave(running, n);
      running = schedule.next(n)!;
      served.push(running.token);
    }
    const twos = served.filter((token) => token === 'two').length;
    expect([38, 39, 40, 41, 42]).toContain(twos);
  });

  test('a read continues after a slice, but waits for its share of the time while a modest token works', () => {
    const schedule = scheduled({ bulkShare: 0.25 });
    const read = schedule.enter(demand(), 0);
    expect(schedule.slice(read, 2, 5)).toBe(true);
    const step = schedule.enter(demand({ token: 'two', kind: 'step', over: 1 }), 6);
    expect(schedule.slice(read, 2, 7)).toBe(false);
    const at = schedule.nextWakeTime(7)!;
    expect([schedule.next(7), schedule.next(at + 1)]).toEqual([null, read]);
    schedule.leave(step, at + 1);
    expect(schedule.slice(read, 2, at + 20)).toBe(true);
  });
});

const TOKENS = ['one', 'two', 'three'];
const small: AdmissionLimits = resolveAdmissionLimits({
  requestsPerConnection: 3,
  connectionsPerToken: 4,
  queued: 12,
  queuedPerToken: 6,
  bodyBytes: 20,
  bodyBytesPerToken: 12,
  costPerSecond: 1_000,
  costBurst: 20,
  kinds: {
    live: { running: 2, runningPerToken: 1, queueMs: 20, cost: 1 },
    step: { running: 5, runningPerToken: 3, queueMs: 50, cost: 1 },
    read: { running: 3, runningPerToken: 2, queueMs: 40, cost: 2 },
    task: { running: 1, runningPerToken: 1, queueMs: 60, cost: 5 },
  },
});

const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('enter' as const),
      token: fc.constantFrom(...TOKENS),
      over: fc.nat(9),
      kind: fc.constantFrom(...WORK_KINDS),
      bytes: fc.constantFrom(0, 0, 1, 5, 9, 15),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('slice' as const), which: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(15) }) },
);

/** Counts independently, from the requests alone. */
function check(requests: readonly ScheduledRequest[], limits: AdmissionLimits): void {
  const running = requests.filter(({ state }) => state === 'running');
  const open = requests.filter(({ state }) => state === 'running' || state === 'queued');
  const bytes = (all: readonly ScheduledRequest[]): number => all.reduce((sum, one) => sum + one.bytes, 0);
  for (const kind of WORK_KINDS) {
    expect(running.filter((one) => one.kind === kind).length).toBeLessThanOrEqual(limits.kinds[kind].running);
  }
  const bodies = running.filter((one) => one.bytes > 0);
  if (bodies.length > 1) expect(bytes(running)).toBeLessThanOrEqual(limits.bodyBytes);
  for (const token of TOKENS) {
    const own = running.filter((one) => one.token === token);
    for (const kind of WORK_KINDS) {
      const { runningPerToken } = limits.kinds[kind];
      expect(own.filter((one) => one.kind === kind).length).toBeLessThanOrEqual(runningPerToken);
    }
    if (own.filter((one) => one.bytes > 0).length > 1) expect(bytes(own)).toBeLessThanOrEqual(limits.bodyBytesPerToken);
    const used = new Set(open.filter((one) => one.token === token).map(({ connection }) => connection));
    expect(used.size).toBeLessThanOrEqual(limits.connectionsPerToken);
    const waiting = open.filter((one) => one.token === token && one.state === 'queued');
    expect(waiting.length).toBeLessThanOrEqual(limits.queuedPerToken);
  }
  for (const connection of connections) {
    expect(open.filter((one) => one.connection === connection).length).toBeLessThanOrEqual(
      limits.requestsPerConnection,
    );
  }
}

test('A1 A2 A3: no sequence of requests, ends and times exceeds a limit or leaves a request undecided', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 120 }), (operations) => {
      const schedule = new AdmissionSchedule(small);
      const requests: ScheduledRequest[] = [];
      let now = 1_000;
      const settle = (): void => {
        for (let next = schedule.next(now); next !== null; next = schedule.next(now)) {
          expect(['running', 'refused']).toContain(next.state);
        }
      };
      for (const step of operations) {
        const open = requests.filter(({ state }) => state === 'running' || state === 'queued');
        if (step.do === 'enter') requests.push(schedule.enter(demand(step), now));
        else if (step.do === 'wait') now += step.ms;
        else if (open.length > 0) {
          const one = open[step.which % open.length]!;
          if (step.do === 'leave') schedule.leave(one, now);
          else if (one.state === 'running') schedule.slice(one, 2, now);
        }
        settle();
        check(requests, small);
      }
      // All running requests end and time passes, so nothing is left.
      for (let round = 0; round < 400 && schedule.waiting > 0; round += 1) {
        for (const one of requests) if (one.state === 'running') schedule.leave(one, now);
        const at = schedule.nextWakeTime(now);
        if (schedule.waiting > 0) expect(at).not.toBeNull();
        now = Math.max(now + 1, at ?? now);
        settle();
        check(requests, small);
      }
      expect(schedule.waiting).toBe(0);
      expect(requests.filter(({ state }) => state === 'queued')).toEqual([]);
    }),
    { numRuns: sized(40, 300) },
  );
});

test('A4: a token with one read waits for at most one read of each other token, however many those have', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 12 }), (each, others) => {
      const schedule = scheduled({
        kinds: { read: { running: 1, runningPerToken: 1, queueMs: 1e9, cost: 3 } },
        ...{ requestsPerConnection: 1e9, queued: 1e9, queuedPerToken: 1e9, costBurst: 1e9 },
      });
      const theirs = Array.from({ length: each * others }, (_, n) =>
        schedule.enter(demand({ token: `other-${n % others}`, over: n % others }), 0),
      );
      const mine = schedule.enter(demand({ token: 'mine', over: 60 }), 0);
      let running = theirs[0]!;
      let before = 0;
      for (let now = 1; mine.state === 'queued'; now += 1) {
        schedule.leave(running, now);
        running = schedule.next(now)!;
        before += 1;
      }
      expect(before).toBeLessThanOrEqual(others + 1);
    }),
    { numRuns: 50 },
  );
});
