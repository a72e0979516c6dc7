// The promises and timers of the admission controller, and failed authentications, with a test clock.

import { describe, expect, test } from '@jest/globals';
import {
  AdmissionController,
  type PendingAdmission,
  type AdmittedWork,
} from '../../../src/interfaces/admission/admission-controller.js';
import type { AdmissionOptions } from '../../../src/interfaces/admission/admission-limits.js';
import type { Pace } from '../../../src/engine/ports/pace.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

/** A pace that yields at every call. */
const pace: Pace = { begin: () => () => Promise.resolve() };
const kinds = { read: { running: 1, runningPerToken: 1, queueMs: 1_000, cost: 1 } };

function controlled(limits: AdmissionOptions = { kinds }) {
  const clock = new ManualClock();
  const controller = new AdmissionController({ clock, pace, limits });
  const admit = (token = 'one'): PendingAdmission =>
    controller.admit({ token, connection: {}, kind: 'read', bytes: 0 });
  return { clock, controller, admit };
}

const workOf = (admission: PendingAdmission): AdmittedWork => {
  const decided = admission.currentDecision;
  if (decided === null || 'refused' in decided) throw new Error('it was not admitted');
  return decided.work;
};

test('decides at once if a slot is free, and runs a waiting request when one becomes free', async () => {
  const { admit } = controlled();
  const first = workOf(admit());
  const second = admit();
  expect(second.currentDecision).toBeNull();
  const decision = second.decision();
  first.end();
  expect(await decision).toHaveProperty('work');
});

test('frees a slot when all holders have ended the work, not when the client leaves', async () => {
  const { admit } = controlled();
  const first = workOf(admit());
  const second = admit();
  const decision = second.decision();
  first.hold();
  first.abort();
  first.end();
  expect(second.currentDecision).toBeNull();
  first.end();
  expect(await decision).toHaveProperty('work');
});

test('the timer refuses a request at its deadline, with the time to wait', async () => {
  const { clock, admit } = controlled();
  workOf(admit());
  const decision = admit().decision();
  expect(clock.timers).toBe(1);
  clock.advance(1_100);
  expect(await decision).toMatchObject({ refused: { cause: 'token', retryMs: 1_000 } });
  expect(clock.timers).toBe(0);
});

test('a client that leaves while it waits gets no slot, and leaves no timer behind', async () => {
  const { clock, controller, admit } = controlled();
  workOf(admit());
  const second = admit();
  const decision = second.decision();
  second.cancel();
  expect(await decision).toBeNull();
  expect(controller.counts).toMatchObject({ running: 1, waiting: 0, queued: { read: 1 } });
  clock.advance(5_000);
  expect(clock.timers).toBe(0);
});

test('a read stops when its client has left, and its signal is aborted', async () => {
  const { admit } = controlled();
  const work = workOf(admit());
  await work.pause();
  const going = work.pause();
  work.abort();
  await expect(going).rejects.toThrow('aborted');
  expect(() => work.pause()).toThrow('aborted');
  expect(work.signal.aborted).toBe(true);
});

test('refuses each waiting request at its own deadline, also a later request with an earlier deadline', async () => {
  const limits = { live: { running: 0, queueMs: 5_000 }, read: { running: 0, queueMs: 1_000 } };
  const { clock, controller } = controlled({ kinds: limits });
  const ended: string[] = [];
  const waits = async (name: string, kind: 'live' | 'read'): Promise<void> => {
    const decided = await controller.admit({ token: name, connection: {}, kind, bytes: 0 }).decision();
    ended.push(decided !== null && 'refused' in decided ? name : `${name} is not refused`);
  };
  const all = [waits('far', 'live'), waits('near', 'read')];
  clock.advance(500);
  all.push(waits('next', 'read'));
  clock.advance(600);
  await all[1];
  expect(ended).toEqual(['near']);
  clock.advance(500);
  await all[2];
  expect(ended).toEqual(['near', 'next']);
  clock.advance(5_000);
  await Promise.all(all);
  expect([ended, clock.timers]).toEqual([['near', 'next', 'far'], 0]);
});

test('the signal of aborted work is aborted even if it is first read afterwards', () => {
  const { admit } = controlled();
  const work = workOf(admit());
  work.abort();
  expect([work.isAborted, work.signal.aborted, work.drainOptions.signal.aborted]).toEqual([true, true, true]);
  expect(() => work.pause()).toThrow('aborted');
});

test('charges each slice of a read to its token, and of a stream, which has no slot', async () => {
  const { admit } = controlled({ costBurst: 10, costPerSecond: 1, sliceMs: 2 });
  const work = workOf(admit());
  const stream = work.background();
  work.detach();
  for (let slice = 0; slice < 8; slice += 1) await stream.pause();
  work.end();
  expect(admit().currentDecision).toBeNull();
  expect(admit('two').currentDecision).not.toBeNull();
});

describe('failed authentications', () => {
  const failing = (limits: AdmissionOptions) => {
    const { clock, controller } = controlled(limits);
    /** Whether each of these failures is over the limit. The clock advances by a millisecond with each. */
    const fail = (...addresses: readonly string[]): readonly boolean[] =>
      addresses.map((address) => controller.recordFailure(address) > 0);
    /** So many different addresses. */
    const flood = (from: number, to: number): void => {
      for (let n = from; n < to; n += 1) fail(`10.0.${n >> 8}.${n & 255}`);
    };
    return { clock, controller, fail, flood };
  };
  const ONCE = { failures: 1, failuresPerSecond: 0.001 };

  test('are limited for an address at once, and then per second; a long pause adds no more than the limit', () => {
    const { clock, controller, fail } = failing({ failures: 3, failuresPerSecond: 1 });
    const address = '192.0.2.1';
    expect(fail(address, address, address, address)).toEqual([false, false, false, true]);
    expect(controller.recordFailure(address)).toBeGreaterThan(980);
    clock.advance(1_000);
    expect(fail(address, address, '192.0.2.2')).toEqual([false, true, false]);
    clock.advance(3_600_000);
    expect(fail(address, address, address, address)).toEqual([false, false, false, true]);
  });

  test('count for one IPv6 network as for one address, and for an IPv4 address in every notation', () => {
    const { fail } = failing(ONCE);
    expect(fail('2001:db8::1', '2001:db8:0:0:1::9', '2001:db8:1::1')).toEqual([false, true, false]);
    expect(fail('::ffff:192.0.2.1', '192.0.2.1')).toEqual([false, true]);
  });

  test('beyond the limit of addresses, forgets those that failed longest ago, whenever they first failed', () => {
    const { fail, flood } = failing(ONCE);
    flood(0, 1_000);
    expect(fail('10.0.0.0')).toEqual([true]);
    flood(1_000, 5_000);
    expect(fail('10.0.0.0', '10.0.0.1', '10.0.19.135')).toEqual([true, false, true]);
  });
});
