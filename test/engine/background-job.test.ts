// Jobs besides the inputs: the table of their states, and what a job does in them.

import { describe, expect, test } from '@jest/globals';
import {
  BackgroundJob,
  JOB_TRANSITIONS,
  nextJobState,
  type JobEvent,
  type JobState,
} from '../../src/engine/background-job.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { turns } from './start-tree.js';

const EVENTS: readonly JobEvent[] = ['start', 'request', 'begin', 'end', 'finish', 'stop', 'restart', 'close'];

/** The state after each event, in the order of `EVENTS`. */
const TABLE: readonly (readonly [JobState, ...(readonly JobState[])])[] = [
  ['new', 'waiting', 'new', 'new', 'new', 'last', 'stopped', 'new', 'closed'],
  ['idle', 'idle', 'waiting', 'idle', 'idle', 'last', 'stopped', 'idle', 'closed'],
  ['waiting', 'waiting', 'waiting', 'running', 'waiting', 'last', 'stopped', 'waiting', 'closed'],
  ['running', 'running', 'due', 'running', 'idle', 'finishing', 'stopping', 'running', 'closed'],
  ['due', 'due', 'due', 'due', 'waiting', 'finishing', 'stopping', 'due', 'closed'],
  ['finishing', 'finishing', 'finishing', 'finishing', 'last', 'finishing', 'closed', 'finishing', 'closed'],
  ['last', 'last', 'last', 'last', 'closed', 'last', 'closed', 'last', 'closed'],
  ['stopping', 'stopping', 'stopping', 'stopping', 'stopped', 'closed', 'stopping', 'due', 'closed'],
  ['stopped', 'stopped', 'stopped', 'stopped', 'stopped', 'closed', 'stopped', 'waiting', 'closed'],
  ['closed', 'closed', 'closed', 'closed', 'closed', 'closed', 'closed', 'closed', 'closed'],
];

describe('the states of a job', () => {
  test.each(TABLE)('%s has a next state for every event', (state, ...next) => {
    expect(EVENTS.map((event) => nextJobState(state, event))).toEqual(next);
  });

  test('the table has every state', () => {
    expect(TABLE.map(([state]) => state)).toEqual(Object.keys(JOB_TRANSITIONS));
  });
});

/** A job whose runs end when the test says so. */
function job(after: { next: number | null } = { next: null }) {
  const clock = new ManualClock();
  const ends: ((error?: Error) => void)[] = [];
  const failures: unknown[] = [];
  let most = 0;
  let active = 0;
  const made = new BackgroundJob({
    clock,
    run: async () => {
      active += 1;
      most = Math.max(most, active);
      await new Promise<void>((resolve, reject) => {
        ends.push((error) => (error === undefined ? resolve() : reject(error)));
      });
      active -= 1;
      return after.next;
    },
    onFailed: (error) => {
      active -= 1;
      failures.push(error);
      return after.next;
    },
  });
  const end = async (error?: Error): Promise<void> => {
    ends.at(-1)?.(error);
    await turns(3);
  };
  return { job: made, clock, failures, end, runs: () => ends.length, most: () => most };
}

test('a run begins at its time, and the earliest of several requests counts', () => {
  const { job: made, clock, runs } = job();
  made.start(500);
  made.request(100);
  made.request(300);
  clock.advance(90);
  expect({ runs: runs(), timers: clock.timers }).toEqual({ runs: 0, timers: 1 });
  clock.advance(20);
  expect({ runs: runs(), timers: clock.timers, isRunning: made.isRunning }).toEqual({
    ...{ runs: 1, timers: 0, isRunning: true },
  });
});

test('however many requests come during a run, one more run follows it', async () => {
  const { job: made, runs, most, end } = job();
  made.start(0);
  for (let count = 0; count < 5; count += 1) made.request(0);
  expect(runs()).toBe(1);
  await end();
  expect(runs()).toBe(2);
  await end();
  expect({ runs: runs(), most: most(), isRunning: made.isRunning }).toEqual({ runs: 2, most: 1, isRunning: false });
});

test('a run and the report of its failure say when the next one begins', async () => {
  const after = { next: 100 };
  const { job: made, clock, failures, runs, end } = job(after);
  made.start(0);
  await end();
  clock.advance(110);
  expect(runs()).toBe(2);
  await end(new Error('down'));
  expect(failures).toEqual([new Error('down')]);
  clock.advance(110);
  expect(runs()).toBe(3);
});

test('a stopped job reports no failure, and a restart waits for the run in progress', async () => {
  const { job: made, failures, runs, most, end, clock } = job();
  made.start(0);
  made.stop();
  expect(made.isStopped).toBe(true);
  made.restart(0);
  expect({ runs: runs(), isStopped: made.isStopped }).toEqual({ runs: 1, isStopped: false });
  await end();
  expect({ runs: runs(), most: most() }).toEqual({ runs: 2, most: 1 });
  made.stop();
  await end(new Error('stopped'));
  made.request(0);
  clock.advance(1_000);
  expect({ failures, runs: runs() }).toEqual({ failures: [], runs: 2 });
});

test('finishing makes one more run without rests, and then the job is closed', async () => {
  const clock = new ManualClock();
  let runs = 0;
  const made: BackgroundJob = new BackgroundJob({
    clock,
    run: async () => {
      runs += 1;
      for (let piece = 0; piece < 3; piece += 1) await made.rest(1_000);
      return 10;
    },
    onFailed: () => null,
  });
  made.start(0);
  await turns(3);
  expect({ runs, timers: clock.timers }).toEqual({ runs: 1, timers: 1 });
  await made.finish();
  expect({ runs, timers: clock.timers, isStopped: made.isStopped }).toEqual({ runs: 2, timers: 0, isStopped: true });
  made.restart(0);
  made.start(0);
  expect(runs).toBe(2);
});

test('a request does not end a rest, and a stop does', async () => {
  const clock = new ManualClock();
  let pieces = 0;
  const made: BackgroundJob = new BackgroundJob({
    clock,
    run: async () => {
      while (!made.isStopped) {
        pieces += 1;
        await made.rest(1_000);
      }
      return null;
    },
    onFailed: () => null,
  });
  made.start(0);
  made.request(0);
  await turns(3);
  expect(pieces).toBe(1);
  made.close();
  await made.settled();
  expect({ pieces, timers: clock.timers }).toEqual({ pieces: 1, timers: 0 });
});
