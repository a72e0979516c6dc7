import { afterEach, expect, jest, test } from '@jest/globals';
import { systemClock, watchSystemClock } from '../../src/system/system-clock.js';

const START = 1_700_000_000_000;
const HOUR_MS = 3_600_000;

/** The clock of the machine, and one that cannot be set, both set by the test. */
function machine(): { readonly set: (wall: number) => void; readonly pass: (ms: number) => void } {
  const state = { wall: START, monotonic: 500 };
  jest.spyOn(Date, 'now').mockImplementation(() => state.wall);
  jest.spyOn(performance, 'now').mockImplementation(() => state.monotonic);
  return {
    set: (wall) => void (state.wall = wall),
    pass: (ms) => {
      state.wall += ms;
      state.monotonic += ms;
    },
  };
}

afterEach(() => {
  jest.restoreAllMocks();
});

test('follows the clock of the machine exactly until it is set', () => {
  const { pass } = machine();
  const clock = systemClock();
  for (const ms of [0, 0.4, 0.7, 1, 3.9, 12, 1_000]) {
    pass(ms);
    expect(clock.now()).toBe(Math.floor(Date.now()));
  }
});

test('after the clock was set back, time goes on at half speed until the machine has caught up', () => {
  const { set, pass } = machine();
  const clock = systemClock();
  expect(clock.now()).toBe(START);
  set(START - HOUR_MS);
  expect(clock.now()).toBe(START);
  pass(10_000);
  expect(clock.now()).toBe(START + 5_000);
  pass(2 * HOUR_MS - 10_000);
  expect(clock.now()).toBe(START + HOUR_MS);
  pass(1_000);
  expect(clock.now()).toBe(Date.now());
});

test('follows a clock that was set forward at once', () => {
  const { set } = machine();
  const clock = systemClock();
  set(START + HOUR_MS);
  expect(clock.now()).toBe(START + HOUR_MS);
});

test('a timer that was set before the clock was set back fires after at most twice its time', async () => {
  const real = Date.now();
  let offset = 0;
  const wall = performance.now();
  jest.spyOn(Date, 'now').mockImplementation(() => Math.floor(real + performance.now() - wall) + offset);
  const clock = systemClock();
  clock.now();
  const fired = new Promise<void>((resolve) => clock.wake(clock.now() + 20, resolve));
  offset = -HOUR_MS;
  const keepAlive = setInterval(() => undefined, 1_000);
  await fired;
  clearInterval(keepAlive);
});

test('reports how far the clock was set, and how far it is behind', () => {
  const { set, pass } = machine();
  const read = watchSystemClock();
  pass(5_000);
  expect(read()).toEqual({ offset_ms: 0, behind_ms: 0 });
  set(Date.now() + HOUR_MS);
  expect(read()).toEqual({ offset_ms: HOUR_MS, behind_ms: 0 });
  set(Date.now() - 3 * HOUR_MS);
  expect(read()).toEqual({ offset_ms: -2 * HOUR_MS, behind_ms: 3 * HOUR_MS });
  pass(60_000);
  expect(read()).toEqual({ offset_ms: -2 * HOUR_MS, behind_ms: 3 * HOUR_MS - 30_000 });
});
