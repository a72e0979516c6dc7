// All panels show one revision of the ledger: whatever a page draws at a moment comes from the same entries, however
// slow and in whatever order the answers of the service arrive.

import { effect } from '@preact/signals';
import { afterEach, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { packRows } from '../../../../src/interfaces/inspector/contract/event-row.js';
import type { Course } from '../../../../src/core/contract/inspection/inspection.js';
import type { SessionView } from '../../../../src/interfaces/inspector/contract/session-view.js';
import type { FeedListener } from '../../../../src/interfaces/inspector/page/data/feed.js';
import { InlineFeed } from '../../../../src/interfaces/inspector/page/data/inline-feed.js';
import { ProofTracker } from '../../../../src/interfaces/inspector/page/store/proof-tracker.js';
import { sessionKey, Store } from '../../../../src/interfaces/inspector/page/store/store.js';
import { coursesOf, infoOf, rowsOf } from '../../../fixtures/inspected-tree.js';
import { randomTree } from '../../../fixtures/random-tree.js';

afterEach(() => void jest.useRealTimers());

/** A service whose ledger grows, and whose answers take as long as the test says. */
class GrowingFeed extends InlineFeed {
  readonly #driver: ReturnType<typeof randomTree>;
  readonly #delay: () => number;
  #listener: FeedListener | null = null;
  end: number;

  constructor(driver: ReturnType<typeof randomTree>, begin: number, delay: () => number) {
    super({
      info: { ...infoOf(begin), live: true },
      pages: [packRows(rowsOf(driver.entries).slice(0, begin))],
      ...{ entries: [], courses: {}, charts: {}, events: {}, artifacts: {}, steps: {}, sessions: {}, whys: {} },
    });
    this.#driver = driver;
    this.#delay = delay;
    this.end = begin;
  }

  override async course(run_id: string): Promise<Course | null> {
    const course = coursesOf(this.#driver)[run_id] ?? null;
    const through = this.end;
    await new Promise((resolve) => setTimeout(resolve, this.#delay()));
    if (course === null) return null;
    const [moves, steps] = [course.moves.filter(([at]) => at < through), course.steps.filter((at) => at < through)];
    return { ...course, moves, steps, through };
  }

  override async session(_id: string, at: number | null = null): Promise<SessionView> {
    await new Promise((resolve) => setTimeout(resolve, this.#delay()));
    return { at } as SessionView;
  }

  override follow(listener: FeedListener): Promise<void> {
    this.#listener = listener;
    listener.onConnection('live');
    return Promise.resolve();
  }

  async grow(count: number): Promise<void> {
    const from = this.end;
    this.end = Math.min(this.#driver.entries.length, from + count);
    if (this.end > from) await this.#listener?.onPage(packRows(rowsOf(this.#driver.entries).slice(from, this.end)));
  }
}

interface Plan {
  readonly seed: number;
  readonly tab: 'run' | 'session';
  readonly delays: readonly number[];
  readonly growth: readonly { readonly count: number; readonly ms: number; readonly select: boolean }[];
}

const PLANS: fc.Arbitrary<Plan> = fc.record({
  seed: fc.integer({ min: 0, max: 10_000 }),
  tab: fc.constantFrom('run', 'session'),
  delays: fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 1, maxLength: 8 }),
  growth: fc.array(
    fc.record({ count: fc.integer({ min: 1, max: 9 }), ms: fc.integer({ min: 0, max: 400 }), select: fc.boolean() }),
    { minLength: 3, maxLength: 12 },
  ),
});

/** @returns what a page would draw at each of its drawings: the revision of its rows, and of everything else */
async function drawings({ seed, tab, delays, growth }: Plan): Promise<readonly (readonly number[])[]> {
  const driver = randomTree(seed, { inputs: 14 });
  let asked = 0;
  const feed = new GrowingFeed(driver, 4, () => delays[asked++ % delays.length] ?? 0);
  const store = new Store(feed, new ProofTracker(null));
  await store.open();
  store.change({ run: driver.tree_id, tab });
  const seen: (readonly number[])[] = [];
  const stop = effect(() => {
    const run = store.run.value;
    const { revision } = store;
    if (run === null) return;
    const list = store.lists.list.value;
    const last = list.get(list.length - 1);
    const session = store.preparedSession(sessionKey(driver.tree_id, store.runs.lastOfTree(run.tree)));
    seen.push([
      revision.value,
      store.cursor.value.at + 1,
      // A course that was requested for the first time is not drawn until it is here.
      store.courses.course(run) === null ? revision.value : store.courses.revisionOf(run),
      Math.max(last?.at ?? 0, revision.value - 1) + 1,
      tab === 'run' || session === undefined || session === null ? revision.value : session.at + 1,
    ]);
  });
  const others = Object.keys(coursesOf(driver));
  for (const [nth, { count, ms, select }] of growth.entries()) {
    if (select && tab === 'run') store.select(others[nth % others.length] ?? driver.tree_id);
    await feed.grow(count);
    await jest.advanceTimersByTimeAsync(ms);
  }
  await jest.advanceTimersByTimeAsync(30_000);
  expect(store.rows.end).toBe(feed.end);
  stop();
  return seen;
}

test('every drawing comes from one revision, in generated orders of growth and answers', async () => {
  jest.useFakeTimers();
  await fc.assert(
    fc.asyncProperty(PLANS, async (plan) => {
      const seen = await drawings(plan);
      expect(seen.length).toBeGreaterThan(0);
      expect(seen.filter((panels) => new Set(panels).size > 1)).toEqual([]);
    }),
    { numRuns: 15 },
  );
});

test('a service that does not answer delays new rows by seconds, and a panel that is behind knows it', async () => {
  jest.useFakeTimers();
  const driver = randomTree(1, { inputs: 14 });
  const delays = [0, 1_000_000];
  const feed = new GrowingFeed(driver, 4, () => delays.shift() ?? 0);
  const store = new Store(feed, new ProofTracker(null));
  await store.open();
  store.change({ run: driver.tree_id });
  const run = store.run.value;
  if (run === null) throw new Error('no run');
  store.courses.course(run);
  await jest.advanceTimersByTimeAsync(10);
  expect(store.courses.course(run)?.through).toBe(4);
  await feed.grow(5);
  await jest.advanceTimersByTimeAsync(3_000);
  expect(store.revision.value).toBe(4);
  await jest.advanceTimersByTimeAsync(3_000);
  expect([store.revision.value, store.courses.revisionOf(run)]).toEqual([feed.end, 4]);
});
