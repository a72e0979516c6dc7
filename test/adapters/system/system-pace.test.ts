import { describe, expect, test } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { scheduleNextTurn, noteArrival, systemPace } from '../../../src/adapters/system/system-pace.js';

const busy = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

test('work that has not used its milliseconds does not yield', () => {
  expect(systemPace().begin(60_000)()).toBeUndefined();
});

test('work that has used its milliseconds yields to queued tasks, and counts from zero again', async () => {
  const ran: string[] = [];
  const pause = systemPace().begin(300);
  busy(301);
  scheduleNextTurn(() => ran.push('other work'));
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

test('each piece of work is timed separately', async () => {
  const pace = systemPace();
  const first = pace.begin(5);
  busy(6);
  expect(pace.begin(60_000)()).toBeUndefined();
  const yielded = first();
  expect(yielded).toBeDefined();
  await yielded;
});

describe('a task for the next turn of the event loop', () => {
  const orderAfter = async (prepare: () => void): Promise<readonly string[]> => {
    await turn();
    await turn();
    const order: string[] = [];
    prepare();
    scheduleNextTurn(() => order.push('task'));
    setImmediate(() => order.push('turn'));
    while (order.length < 2) await turn();
    return order;
  };

  test('runs in the next turn if no connection arrives', async () => {
    expect(await orderAfter(() => undefined)).toEqual(['task', 'turn']);
  });

  test('lets a turn pass if a connection arrived in the current one', async () => {
    expect(await orderAfter(noteArrival)).toEqual(['turn', 'task']);
  });

  test('lets a turn pass for each one with an arriving connection, and runs while more of them come', async () => {
    let turns = 0;
    const ran: string[] = [];
    noteArrival();
    scheduleNextTurn(() => ran.push('task'));
    while (ran.length === 0) {
      noteArrival();
      await turn();
      turns += 1;
    }
    expect(turns).toBeGreaterThan(2);
  });

  test('is what paced work waits for', async () => {
    const pause = systemPace().begin(0);
    noteArrival();
    const order: string[] = [];
    setImmediate(() => order.push('turn'));
    await pause();
    order.push('work');
    expect(order).toEqual(['turn', 'work']);
  });
});
