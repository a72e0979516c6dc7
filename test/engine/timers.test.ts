// Timers of trees in memory, and of trees outside of it, which are read when their timers are due.

import { expect, test } from '@jest/globals';
import { Timers, type LoadedTimers } from '../../src/engine/timers.js';
import type { Timer } from '../../src/kernel/decision.js';
import { ManualClock } from '../fixtures/manual-clock.js';

const START = Date.parse('2026-01-01T00:00:00.000Z');
const at = (seconds: number): string => new Date(START + seconds * 1_000).toISOString();
const timer = (run_id: string, seconds: number): Timer => ({ run_id, at: at(seconds) });

function bench(load: (tree_ids: readonly string[]) => LoadedTimers | Promise<LoadedTimers>) {
  const clock = new ManualClock(at(0));
  const fired: string[] = [];
  const loads: number[] = [];
  let settle: () => void = () => undefined;
  const timers = new Timers(clock, {
    fire: (_tree, run_id) => {
      fired.push(run_id);
      return new Promise<void>((resolve) => (settle = resolve));
    },
    load: (tree_ids) => {
      loads.push(tree_ids.length);
      return Promise.resolve(load(tree_ids));
    },
  });
  return { clock, fired, loads, timers, settle: () => settle() };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('D3: a tree outside memory is read when its time comes; due timers fire, the others are set', async () => {
  const { clock, fired, timers } = bench(() => new Map([['t', [timer('t.1', 10), timer('t.2', 20)]]]));
  timers.setLater('t', START + 10_000);
  clock.advance(9_000);
  await turn();
  expect(fired).toEqual([]);
  clock.advance(1_000);
  await turn();
  expect(fired).toEqual(['t.1']);
  clock.advance(10_000);
  expect(fired).toEqual(['t.1', 't.2']);
});

test('trees that become due together are read 64 at a time', async () => {
  const { clock, fired, loads, timers } = bench((ids) => new Map(ids.map((id) => [id, [timer(`${id}.1`, 1)]])));
  for (let n = 0; n < 200; n += 1) timers.setLater(`t${n}`, START + 1_000);
  clock.advance(1_000);
  await turn();
  expect(fired).toHaveLength(200);
  expect(loads).toEqual([1, 64, 64, 64, 7]);
});

test('a tree that cannot be read now is read again a second later; an unfoldable one is not', async () => {
  let answer: LoadedTimers = new Map([['t', null]]);
  const { clock, fired, loads, timers } = bench(() => answer);
  timers.setLater('t', START + 1_000);
  timers.setLater('damaged', START + 1_000);
  clock.advance(1_000);
  await turn();
  expect(clock.timers).toBe(1);
  answer = new Map([['t', [timer('t.1', 1)]]]);
  clock.advance(1_100);
  await turn();
  expect(fired).toEqual(['t.1']);
  expect(loads).toEqual([1, 1, 1]);
  expect(clock.timers).toBe(0);
});

test('a timer that an input has set, or that has fired and not taken effect, does not fire twice', async () => {
  const { clock, fired, timers, settle } = bench(() => new Map([['t', [timer('t.1', 10)]]]));
  timers.setLater('t', START + 10_000);
  timers.set('t', [timer('t.1', 10)]);
  clock.advance(10_000);
  await turn();
  expect(fired).toEqual(['t.1']);
  timers.setLater('t', START + 11_000);
  timers.set('t', [timer('t.1', 30)]);
  clock.advance(1_000);
  await turn();
  expect(fired).toEqual(['t.1']);
  settle();
  clock.advance(20_000);
  expect(fired).toEqual(['t.1', 't.1']);
});

test('a timer that was cleared while its tree was read does not fire', async () => {
  let loaded: (timers: LoadedTimers) => void = () => undefined;
  const { clock, fired, timers } = bench(() => new Promise((resolve) => (loaded = resolve)));
  timers.setLater('t', START + 1_000);
  clock.advance(1_000);
  await turn();
  timers.clear();
  loaded(new Map([['t', [timer('t.1', 1)]]]));
  await turn();
  expect(fired).toEqual([]);
  expect(clock.timers).toBe(0);
});
