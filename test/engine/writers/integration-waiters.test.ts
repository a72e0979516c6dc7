// Callers that wait until the log includes what they have committed.

import { expect, test } from '@jest/globals';
import { INTEGRATION_POLL_MS, IntegrationWaiters } from '../../../src/engine/writers/integration-waiters.js';
import type { LogHead, PendingAppend } from '../../../src/core/ledger/readable-ledger.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { turns } from '../start-tree.js';

const HEAD: LogHead = { size: 3, root: 'root', frontier: [] };
const TREE = 'run_a';
const pendingAppend = (commit_no: number, tree_id = TREE): PendingAppend => ({
  commit_no,
  tree_id,
  seq: commit_no,
  leaf_hashes: ['leaf'],
});

function bench() {
  const clock = new ManualClock();
  const state = {
    pending: [] as PendingAppend[],
    reads: 0,
    confirmed: 0,
    isReadable: true,
    hasFailed: false,
    hangs: false,
  };
  const waiters = new IntegrationWaiters({
    clock,
    store: {
      pending: (limit) => {
        state.reads += 1;
        if (state.hangs) return new Promise(() => undefined);
        return state.isReadable
          ? Promise.resolve(state.pending.slice(0, limit))
          : Promise.reject(new Error('the database is away'));
      },
    },
    confirm: () => {
      state.confirmed += 1;
      return Promise.resolve(state.hasFailed ? null : HEAD);
    },
  });
  const answers: (LogHead | null)[] = [];
  const wait = (tree_id = TREE): void => void waiters.wait(tree_id, 1_000).then((head) => answers.push(head));
  const poll = async (ms = INTEGRATION_POLL_MS): Promise<void> => {
    clock.advance(ms);
    await turns(10);
  };
  return { state, answers, wait, poll, clock };
}

test('D15: without a pending append the answer comes at once, with the head that the head file has', async () => {
  const { state, answers, wait, poll, clock } = bench();
  wait();
  await poll(0);
  expect([answers, state.confirmed, clock.timers]).toEqual([[HEAD], 1, 0]);
});

test('D15: a caller waits for the appends that its tree has, and not for later ones', async () => {
  const { state, answers, wait, poll } = bench();
  state.pending = [pendingAppend(1, 'run_b'), pendingAppend(2), pendingAppend(3)];
  wait();
  await poll(0);
  state.pending = [pendingAppend(3), pendingAppend(4)];
  await poll();
  expect(answers).toEqual([]);
  state.pending = [pendingAppend(4), pendingAppend(5)];
  await poll();
  expect(answers).toEqual([HEAD]);
});

test('D15: a caller waits no longer than it asked for, even if the store does not answer', async () => {
  const { state, answers, wait, poll } = bench();
  state.hangs = true;
  wait();
  await poll(999);
  expect(answers).toEqual([]);
  await poll(1);
  expect(answers).toEqual([null]);
});

test('D15: many callers share one read of the pending appends and one head', async () => {
  const { state, answers, wait, poll } = bench();
  state.pending = [pendingAppend(1)];
  for (let caller = 0; caller < 64; caller += 1) wait();
  await poll();
  await poll();
  expect(state.reads).toBeLessThan(6);
  state.pending = [];
  await poll();
  expect(answers).toHaveLength(64);
  expect(state.confirmed).toBe(1);
});

test('D15: a list that is cut off proves nothing about its tree', async () => {
  const { state, answers, wait, poll } = bench();
  state.pending = Array.from({ length: 4_096 }, (_, commit_no) => pendingAppend(commit_no, 'run_b'));
  state.pending.push(pendingAppend(4_096));
  wait();
  await poll();
  expect(answers).toEqual([]);
  state.pending = state.pending.slice(1);
  await poll();
  await poll();
  expect(answers).toEqual([]);
  state.pending = [];
  await poll();
  expect(answers).toEqual([HEAD]);
});

test('D15: after the timeout the answer is null, also if the store cannot be read, and the poll ends', async () => {
  const { state, answers, wait, poll, clock } = bench();
  state.pending = [pendingAppend(1)];
  wait();
  await poll();
  state.isReadable = false;
  await poll();
  expect(answers).toEqual([]);
  await poll(1_000);
  expect(answers).toEqual([null]);
  expect(clock.timers).toBe(0);
});

test('D2: if the ledger has failed, the answer is null', async () => {
  const { state, answers, wait, poll } = bench();
  state.hasFailed = true;
  wait();
  await poll(0);
  expect(answers).toEqual([null]);
});
