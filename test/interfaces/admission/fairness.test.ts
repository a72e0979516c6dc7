// The fairness of the schedule: what it charges, whom it serves first, and what it stores per token.

import { describe, expect, test } from '@jest/globals';
import { BulkTimeShare } from '../../../src/interfaces/admission/bulk-time-share.js';
import { CostBucket } from '../../../src/interfaces/admission/cost-bucket.js';
import { AuthenticationFailures } from '../../../src/interfaces/admission/authentication-failures.js';
import {
  resolveAdmissionLimits,
  type AdmissionOptions,
  type WorkKind,
} from '../../../src/interfaces/admission/admission-limits.js';
import type { ScheduledRequest } from '../../../src/interfaces/admission/scheduled-request.js';
import { AdmissionSchedule } from '../../../src/interfaces/admission/admission-schedule.js';
import { TokenShares } from '../../../src/interfaces/admission/token-shares.js';

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

  test('no bucket exceeds its burst, however long it is unused', () => {
    const bucket = new CostBucket(100, 50, 0);
    expect([bucket.balance(0), bucket.balance(3_600_000)]).toEqual([50, 50]);
    bucket.spend(60, 3_600_000);
    expect([bucket.balance(3_600_000), bucket.waitFor(0, 3_600_000), bucket.balance(3_600_100)]).toEqual([-10, 100, 0]);
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

describe('stored tokens and addresses', () => {
  test('tokens without a request are limited; one with a request is never evicted', () => {
    const shares = new TokenShares(resolveAdmissionLimits());
    const [busy, idle] = [shares.get('busy', 0), shares.get('idle', 0)];
    busy.outstanding.read = 1;
    for (let n = 0; n < 5_000; n += 1) shares.get(`token-${n}`, 0);
    expect(shares.get('busy', 0)).toBe(busy);
    expect(shares.get('idle', 0)).not.toBe(idle);
  });

  test('keeps the addresses that failed last, whenever they first failed', () => {
    const failures = new AuthenticationFailures({ failures: 1, failuresPerSecond: 0.001 });
    failures.record('192.0.2.1', 0);
    for (let n = 0; n < 4_000; n += 1) failures.record(`10.0.${n >> 8}.${n & 255}`, 0);
    expect(failures.record('192.0.2.1', 0)).toBeGreaterThan(0);
    for (let n = 0; n < 1_000; n += 1) failures.record(`10.1.${n >> 8}.${n & 255}`, 0);
    expect(failures.record('192.0.2.1', 0)).toBeGreaterThan(0);
  });
});
