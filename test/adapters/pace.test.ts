import { expect, test } from '@jest/globals';
import { nextTurn, systemPace } from '../../src/adapters/pace.js';

const busy = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

test('work that has not run for its milliseconds does not yield', () => {
  expect(systemPace().begin(60_000)()).toBeUndefined();
});

test('work that has run for its milliseconds yields to queued tasks, and counts from zero again', async () => {
  const ran: string[] = [];
  const pause = systemPace().begin(300);
  busy(301);
  nextTurn(() => ran.push('other work'));
  await pause();
  expect(ran).toEqual(['other work']);
  expect(pause()).toBeUndefined();
});

test('work without a minimum yields at every call', async () => {
  const pause = systemPace().begin(0);
  for (const call of [1, 2, 3]) {
    const yielded = pause();
    expect([call, yielded === undefined]).toEqual([call, false]);
    await yielded;
  }
});

test('each piece of work counts for itself', async () => {
  const pace = systemPace();
  const first = pace.begin(5);
  busy(6);
  expect(pace.begin(60_000)()).toBeUndefined();
  const yielded = first();
  expect(yielded).toBeDefined();
  await yielded;
});
