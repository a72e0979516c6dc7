// Which worker integrates the appends of all, and when.

import { expect, test } from '@jest/globals';
import { winstonLog } from '../../src/system/winston-log.js';
import { FOLLOWER_MS, LEADER_IDLE_MS, LEADER_MS, LogLeader } from '../../src/engine/writers/log-leader.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { turns } from './start-tree.js';

/** A worker with a store that says who leads and what is pending. */
function worker(
  isLeader: () => boolean,
  pending: () => readonly number[] = () => [],
  integrated: () => Promise<void> = () => Promise.resolve(),
) {
  const clock = new ManualClock();
  const counts = { integrated: 0, followed: 0 };
  const leader = new LogLeader({
    store: {
      lead: () => Promise.resolve(isLeader()),
      pending: () =>
        Promise.resolve(pending().map((commit_no) => ({ commit_no, tree_id: 'run_x', seq: 0, leaf_hashes: [] }))),
    },
    clock,
    log: winstonLog('silent'),
    integrate: async () => {
      counts.integrated += 1;
      await integrated();
      return pending().length > 0;
    },
    follow: () => {
      counts.followed += 1;
      return Promise.resolve();
    },
  });
  const wait = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await turns(5);
  };
  leader.start();
  return { leader, counts, wait };
}

test('the leader integrates in intervals, sooner while appends are pending', async () => {
  let pending: number[] = [1];
  const { counts, wait, leader } = worker(
    () => true,
    () => pending,
  );
  await wait(0);
  expect(counts.integrated).toBe(1);
  await wait(LEADER_MS + 5);
  expect(counts.integrated).toBe(2);
  pending = [];
  await wait(LEADER_MS + 5);
  expect(counts.integrated).toBe(3);
  await wait(LEADER_MS + 5);
  expect(counts.integrated).toBe(3);
  await wait(LEADER_IDLE_MS);
  expect(counts.integrated).toBe(4);
  leader.onCommitted();
  await wait(LEADER_MS + 5);
  expect(counts).toEqual({ integrated: 5, followed: 0 });
  leader.stop();
  await wait(FOLLOWER_MS);
  expect(counts.integrated).toBe(5);
});

test('the leader rests after a long round in which this worker has committed', async () => {
  let end = (): void => undefined;
  const { counts, wait, leader } = worker(
    () => true,
    () => [],
    () => new Promise<void>((resolve) => (end = resolve)),
  );
  await wait(0);
  leader.onCommitted();
  await wait(4 * LEADER_MS);
  end();
  await wait(0);
  expect(counts.integrated).toBe(1);
  await wait(LEADER_MS + 5);
  expect(counts.integrated).toBe(2);
  leader.stop();
});

test('a follower reads the head, and integrates only what the leader leaves pending', async () => {
  let pending: number[] = [1];
  const { counts, wait, leader } = worker(
    () => false,
    () => pending,
  );
  await wait(0);
  expect(counts).toEqual({ integrated: 0, followed: 1 });
  leader.onCommitted();
  pending = [2];
  await wait(FOLLOWER_MS + 5);
  expect(counts).toEqual({ integrated: 0, followed: 2 });
  await wait(FOLLOWER_MS + 5);
  expect(counts).toEqual({ integrated: 1, followed: 2 });
  leader.stop();
});

test('a follower takes the lead when the leader is gone', async () => {
  let isLeader = false;
  const { counts, wait, leader } = worker(() => isLeader);
  await wait(0);
  isLeader = true;
  await wait(FOLLOWER_MS + 5);
  await wait(LEADER_IDLE_MS + 5);
  expect(counts).toEqual({ integrated: 2, followed: 1 });
  leader.stop();
});
