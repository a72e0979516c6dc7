import { beforeEach, describe, expect, test } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { systemPace, TurnScheduler } from '../../src/system/system-pace.js';

/** Milliseconds of a clock that only a test advances: the time that a test takes decides nothing. */
let now: number;
let turns: TurnScheduler;

beforeEach(() => {
  now = 0;
  turns = new TurnScheduler(() => now);
});

test('work that has not used its milliseconds does not yield', () => {
  const pause = turns.pace().begin(300);
  now += 299;
  expect(pause()).toBeUndefined();
});

test('work that has used its milliseconds yields to queued tasks, and counts from zero again', async () => {
  const ran: string[] = [];
  const pause = turns.pace().begin(300);
  now += 300;
  turns.scheduleNextTurn(() => ran.push('other work'));
  await pause();
  expect(ran).toEqual(['other work']);
  now += 299;
  expect(pause()).toBeUndefined();
});

test('work without a minimum yields at every call', async () => {
  const pause = turns.pace().begin(0);
  for (const call of [1, 2, 3]) {
    const yielded = pause();
    expect([call, yielded === undefined]).toEqual([call, false]);
    await yielded;
  }
});

test('each piece of work is timed separately', async () => {
  const pace = turns.pace();
  const first = pace.begin(5);
  now += 5;
  expect(pace.begin(5)()).toBeUndefined();
  const yielded = first();
  expect(yielded).toBeDefined();
  await yielded;
});

test('the pace of the system yields by a real clock', async () => {
  expect(systemPace().begin(3_600_000)()).toBeUndefined();
  await expect(systemPace().begin(0)()).resolves.toBeUndefined();
});

describe('a task for the next turn of the event loop', () => {
  const orderAfter = async (prepare: () => void): Promise<readonly string[]> => {
    const order: string[] = [];
    prepare();
    turns.scheduleNextTurn(() => order.push('task'));
    setImmediate(() => order.push('turn'));
    while (order.length < 2) await turn();
    return order;
  };

  test('runs in the next turn if no connection arrives', async () => {
    expect(await orderAfter(() => undefined)).toEqual(['task', 'turn']);
  });

  test('lets a turn pass if a connection arrived in the current one', async () => {
    expect(await orderAfter(() => turns.noteArrival())).toEqual(['turn', 'task']);
  });

  /** Turns until a task has run, while a connection arrives in each; the clock advances by `ms` in each. */
  const turnsWithArrivals = async (ms: number, turnsMax: number): Promise<number> => {
    let passed = 0;
    const ran: string[] = [];
    turns.noteArrival();
    turns.scheduleNextTurn(() => ran.push('task'));
    while (ran.length === 0 && passed < turnsMax) {
      turns.noteArrival();
      await turn();
      passed += 1;
      now += ms;
    }
    return passed;
  };

  test('waits while connections arrive and its two milliseconds have not passed', async () => {
    expect(await turnsWithArrivals(0, 1_000)).toBe(1_000);
  });

  test('runs after two milliseconds, whatever still arrives', async () => {
    expect(await turnsWithArrivals(0.25, 1_000)).toBe(2 / 0.25 + 1);
    expect(await turnsWithArrivals(2, 1_000)).toBe(2);
  });

  test('is what paced work waits for', async () => {
    const pause = turns.pace().begin(0);
    turns.noteArrival();
    const order: string[] = [];
    setImmediate(() => order.push('turn'));
    await pause();
    order.push('work');
    expect(order).toEqual(['turn', 'work']);
  });
});
