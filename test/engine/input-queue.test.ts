// How inputs become ticks. E1 is an invariant of ledger-engine.ts, T2 one of tick.ts.

import { describe, expect, test } from '@jest/globals';
import { InputQueue, LIMITS, SHARED_LIMITS } from '../../src/engine/tick/input-queue.js';
import type { QueuedInput } from '../../src/engine/tick/input-outcome.js';
import { turns } from './start-tree.js';

/** A queue whose ticks wait for the test. */
function openQueue(limits = SHARED_LIMITS) {
  const ticks: { readonly trees: readonly string[]; readonly send: () => void; readonly end: () => void }[] = [];
  let endings = 0;
  const queue = new InputQueue({ limits, defer: (task) => void setImmediate(task) });
  const runTick = (items: readonly QueuedInput[]): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        endings += 1;
        queue.endTick(items);
        queue.scheduleTick(runTick);
        resolve();
      };
      ticks.push({ trees: items.map(({ tree_id }) => tree_id), send: () => queue.allowNextTick(items), end });
    });
  const push = (...trees: readonly string[]): void =>
    trees.forEach((tree) => {
      queue.push(inputOf(tree));
      queue.scheduleTick(runTick);
    });
  return { queue, ticks, push, endings: () => endings };
}

const inputOf = (tree_id: string): QueuedInput => ({
  tree_id,
  submission: { input: { kind: 'wake', run_id: tree_id, input_id: 'wake' }, materials: [], rememberInputId: false },
  resolve: () => undefined,
  reject: () => undefined,
  queuedAt: 0,
});

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `run_${index}`);

describe('inputs that wait for their tick', () => {
  test('E1: only two ticks overlap, without a tree in common', async () => {
    const { ticks, push } = openQueue();
    push('a', 'b');
    await turns(2);
    push('a', 'c', 'd');
    await turns(5);
    expect(ticks.map(({ trees }) => trees)).toEqual([['a', 'b']]);
    ticks[0]?.send();
    await turns(5);
    expect(ticks[1]?.trees).toEqual(['c', 'd']);
    ticks[1]?.send();
    push('e');
    await turns(5);
    expect(ticks).toHaveLength(2);
    ticks[0]?.end();
    await turns(5);
    expect(ticks[2]?.trees).toEqual(['a', 'e']);
  });

  test('a tick of the only writer overlaps none, whatever it says', async () => {
    const { ticks, push } = openQueue(LIMITS);
    push('a');
    await turns(2);
    push('b');
    ticks[0]?.send();
    await turns(5);
    // The tick has not ended, and an inspection would see what it has decided.
    expect(ticks).toHaveLength(1);
    ticks[0]?.end();
    await turns(5);
    expect(ticks).toHaveLength(2);
  });

  test('many inputs are divided into two ticks, and few are not', async () => {
    for (const [count, first] of [
      [64, 32],
      [200, 100],
      [33, 32],
      [20, 20],
    ] as const) {
      const { ticks, push } = openQueue();
      push(...names(count));
      await turns(2);
      expect(ticks[0]?.trees).toHaveLength(first);
      ticks[0]?.send();
      await turns(2);
      expect(ticks.flatMap(({ trees }) => trees)).toHaveLength(count);
    }
  });

  test('an inspection waits for all ticks, and the next tick for the inspection', async () => {
    const { queue, ticks, push, endings } = openQueue();
    const done: string[] = [];
    push('a');
    await turns(2);
    ticks[0]?.send();
    push('b');
    await turns(2);
    ticks[1]?.send();
    void queue.runExclusive(() => Promise.resolve(done.push(`inspected after ${endings()}`)));
    push('c');
    ticks[1]?.end();
    await turns(5);
    expect([done, ticks.length, queue.isProcessing('a'), queue.isProcessing('b')]).toEqual([[], 2, true, false]);
    ticks[0]?.end();
    await turns(5);
    expect([done, ticks[2]?.trees]).toEqual([['inspected after 2'], ['c']]);
    let isIdle = false;
    void queue.waitUntilIdle().then(() => (isIdle = true));
    await turns(5);
    expect(isIdle).toBe(false);
    ticks[2]?.end();
    await turns(5);
    expect(isIdle).toBe(true);
  });

  test('T2: the inputs of one tree keep their order, also those that a tick returns', async () => {
    const { queue, ticks, push } = openQueue();
    push('a');
    await turns(2);
    ticks[0]?.send();
    const [first, second] = [inputOf('a'), inputOf('a')];
    queue.push(second);
    queue.postpone([first]);
    ticks[0]?.end();
    await turns(5);
    expect(ticks[1]?.trees).toEqual(['a', 'a']);
    expect(queue.size).toBe(0);
  });
});
