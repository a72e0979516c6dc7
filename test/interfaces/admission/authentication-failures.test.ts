import { expect, test } from '@jest/globals';
import { AuthenticationFailures } from '../../../src/interfaces/admission/authentication-failures.js';

const LIMITS = { failures: 3, failuresPerSecond: 1 };

test('limits the failures of an address at once, and then per second', () => {
  const failures = new AuthenticationFailures(LIMITS);
  const waits = Array.from({ length: 5 }, () => failures.record('192.0.2.1', 0));
  expect(waits).toEqual([0, 0, 0, 1_000, 1_000]);
  expect([failures.record('192.0.2.1', 1_000), failures.record('192.0.2.1', 1_000)]).toEqual([0, 1_000]);
  expect(failures.record('192.0.2.2', 0)).toBe(0);
});

test('treats one IPv6 network as one address, and one IPv4 address as one in every notation', () => {
  const failures = new AuthenticationFailures({ failures: 1, failuresPerSecond: 1 });
  const waits = ['2001:db8::1', '2001:db8:0:0:1::9', '2001:db8:1::1', '::ffff:192.0.2.1', '192.0.2.1'].map(
    (address) => failures.record(address, 0) > 0,
  );
  expect(waits).toEqual([false, true, false, false, true]);
});

test('beyond the limit, evicts the addresses that failed longest ago', () => {
  const failures = new AuthenticationFailures({ failures: 1, failuresPerSecond: 0.001 });
  for (let n = 0; n < 5_000; n += 1) failures.record(`10.0.${n >> 8}.${n & 255}`, 0);
  expect(failures.record('10.0.0.0', 0)).toBe(0);
  expect(failures.record('10.0.19.135', 0)).toBeGreaterThan(0);
});

test('an address that fails again is evicted after all that have not', () => {
  const failures = new AuthenticationFailures({ failures: 1, failuresPerSecond: 0.001 });
  const fail = (n: number): number => failures.record(`10.0.${n >> 8}.${n & 255}`, 0);
  for (let n = 0; n < 1_000; n += 1) fail(n);
  fail(0);
  for (let n = 1_000; n < 5_000; n += 1) fail(n);
  expect(fail(0)).toBeGreaterThan(0);
});
