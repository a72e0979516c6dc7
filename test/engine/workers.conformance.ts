// What holds between several workers of one ledger, as one suite that every shared store must pass.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LedgerError } from '../../src/core/errors.js';
import { GRACE_MS, POLL_MS } from '../../src/engine/writers/shared-writer.js';
import type { LogHead } from '../../src/core/ledger/readable-ledger.js';
import type { SharedLedgerStore } from '../../src/engine/ports/ledger/shared-store.js';
import type { FaultySharedStore } from '../fixtures/faulty-shared-store.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { ABSENT, proposal } from '../fixtures/tree.js';
import {
  entriesOf,
  propose,
  resultsOf,
  submitProposal,
  think,
  until,
  write,
  WRITE,
  type EngineHarness,
} from './tree-engine.conformance.js';
import { start } from './start-tree.js';

/** The shipped policy's. */
const BYTES_MAX = 104_857_600;

export interface SharedHarness extends EngineHarness {
  readonly store: FaultySharedStore;
}

/** A ledger, and how its workers fail. */
export interface Cluster {
  /** Starts a worker. */
  open(clock: ManualClock): Promise<SharedHarness>;
  openStore(): Promise<SharedLedgerStore>;
  /** Ends the store of a worker as the death of its process does. The others know that it is dead. */
  kill(worker: SharedHarness): Promise<void>;
  /** Declares a worker over, because its connection was lost for long. Its process is alive. */
  cutOff(worker: SharedHarness): Promise<void>;
  /** Resolves when what has begun is done. */
  settle(): Promise<void>;
  dispose(): Promise<void>;
}

export function workersConformance(name: string, openCluster: () => Promise<Cluster>): void {
  describe(`two workers of one ledger, ${name}`, () => workersSuite(openCluster));
}

function workersSuite(openCluster: () => Promise<Cluster>): void {
  let cluster: Cluster;
  const opened: SharedHarness[] = [];
  beforeEach(async () => {
    cluster = await openCluster();
  });
  afterEach(async () => {
    for (const worker of opened.splice(0)) await worker.stop();
    await cluster.dispose();
  });

  async function pair(): Promise<{ one: SharedHarness; other: SharedHarness; clock: ManualClock }> {
    const clock = new ManualClock();
    const one = await cluster.open(clock);
    const other = await cluster.open(clock);
    opened.push(one, other);
    return { one, other, clock };
  }
  /** Ends a worker as a dead process ends: nothing is stopped, and its lock is free. */
  async function kill(worker: SharedHarness): Promise<void> {
    opened.splice(opened.indexOf(worker), 1);
    await cluster.kill(worker);
  }
  const TREE = 'run_shared0001';
  const REMOTE = { link: 'remote', idle_ms: 60_000 } as const;

  /** One poll of every worker. */
  const poll = async (clock: ManualClock): Promise<void> => {
    clock.advance(POLL_MS + 10);
    await cluster.settle();
  };

  async function expectOneChain(worker: SharedHarness, tree = TREE) {
    const entries = await entriesOf(worker.store, tree);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
    return entries;
  }

  test('a single writer is refused while a worker has joined, and a worker while a single writer has the ledger', async () => {
    const { one, other } = await pair();
    const locked = { code: 'LEDGER_LOCKED' };
    await expect(one.store.inner.acquire()).rejects.toMatchObject(locked);
    await kill(other);
    await kill(one);
    const single = await cluster.openStore();
    await single.acquire();
    const worker = await cluster.openStore();
    await expect(worker.join()).rejects.toMatchObject(locked);
    await worker.close();
    await single.close();
  });

  test('any worker takes any input of any tree, one after another', async () => {
    const { one, other } = await pair();
    await start(one, TREE, REMOTE);
    for (let step = 0; step < 6; step += 1) {
      const worker = step % 2 === 0 ? other : one;
      expect(await think(worker, TREE, `t${step}`)).toEqual({ refused: false, repeat_of: null });
    }
    const entries = await expectOneChain(one);
    const steps = entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.step_index] : []));
    expect(steps).toEqual([1, 2, 3, 4, 5, 6]);
    expect(one.world.replies.map(({ input_id }) => input_id)).toEqual(expect.arrayContaining(['t1', 't3', 't5']));
    expect(other.world.replies.map(({ input_id }) => input_id)).toEqual(expect.arrayContaining(['t0', 't2', 't4']));
  });

  test('of two inputs at once, the overtaken one is decided again: both are recorded once, and answered once', async () => {
    const { one, other } = await pair();
    await start(one, TREE, REMOTE);
    await think(other, TREE, 'first');
    const rounds = 40;
    for (let round = 0; round < rounds; round += 1) {
      const results = await Promise.all([think(one, TREE, `a${round}`), think(other, TREE, `b${round}`)]);
      expect(results.every(({ refused }) => !refused)).toBe(true);
    }
    const entries = await expectOneChain(one);
    const inputs = entries.flatMap((entry) =>
      entry.type === 'input' && entry.body.kind === 'proposal' ? [entry.body.input_id] : [],
    );
    expect(inputs).toHaveLength(2 * rounds + 1);
    expect(new Set(inputs).size).toBe(2 * rounds + 1);
    for (const [worker, name] of [
      [one, 'a'],
      [other, 'b'],
    ] as const) {
      const own = worker.world.replies.map(({ input_id }) => input_id).filter((id) => id.startsWith(name));
      expect(new Set(own).size).toBe(rounds);
    }
  });

  test.each(['histories', 'marks'] as const)(
    'a tree that two workers begin at once is begun once, at whatever read of %s the other one was faster',
    async (read) => {
      const owner = { case_id: 'case-1', actor_id: 'tester', rememberInputId: true };
      const begin = async (worker: SharedHarness, tree: string) => {
        await Promise.all([
          start(worker, tree, REMOTE, undefined, owner),
          think(worker, tree, 'same', true).catch(() => null),
        ]);
        return think(worker, tree, 'same', true);
      };
      const { one, other } = await pair();
      let reads = 0;
      for (let hasRaced = true; hasRaced;) {
        reads += 1;
        hasRaced = false;
        for (const at of ['before', 'after'] as const) {
          const tree = `run_raced000${reads}${at}`;
          raceAtRead(other, { read, count: reads, at }, () => {
            hasRaced = true;
            return begin(one, tree);
          });
          await begin(other, tree);
          await begin(one, tree);
          const entries = await expectOneChain(one, tree);
          const inputs = entries.flatMap(({ type, body }) =>
            type === 'input' && 'input_id' in body ? [body.input_id] : [],
          );
          expect(inputs).toEqual(['open', 'start', 'same']);
          expect(other.engine.hasFailed).toBe(false);
        }
      }
      // The last number is that of a read that did not happen.
      expect(reads).toBeGreaterThan(1);
    },
  );

  test('D15: a caller of any worker waits until the log includes its step, and that worker has the head', async () => {
    const { one, other, clock } = await pair();
    for (const [worker, tree_id] of [
      [one, TREE],
      [other, 'run_shared0002'],
    ] as const) {
      await start(worker, tree_id, REMOTE);
      await think(worker, tree_id, 'waited');
      const { length } = await entriesOf(worker.store, tree_id);
      const heads: (LogHead | null)[] = [];
      void worker.engine.waitUntilIntegrated(tree_id, 60_000).then((confirmed) => heads.push(confirmed));
      for (let polls = 0; polls < 20 && heads.length === 0; polls += 1) await poll(clock);
      const [head] = heads;
      if (head == null) throw new Error('the step is not in the log');
      const indexes: (number | null)[] = [];
      for await (const { log_index } of worker.store.tree(tree_id)) indexes.push(log_index);
      const { size, root } = head;
      expect(indexes).toHaveLength(length);
      expect(indexes.every((index) => index !== null && index < size)).toBe(true);
      expect(await worker.externalHeadStore.read()).toEqual({ size, root });
    }
  });

  test('D15: a caller whose step does not reach the log in time gets no head', async () => {
    const { one, clock } = await pair();
    await start(one, TREE, REMOTE);
    await think(one, TREE, 'late');
    one.store.pending = () => Promise.resolve([{ commit_no: 1, tree_id: TREE, seq: 0, leaf_hashes: ['0'.repeat(64)] }]);
    const waiting = one.engine.waitUntilIntegrated(TREE, 500);
    await poll(clock);
    expect(await waiting).toBeNull();
  });

  test('a repeated input id does nothing, whichever worker gets it', async () => {
    const { one, other } = await pair();
    await start(one, TREE, REMOTE);
    const results = await Promise.all([think(one, TREE, 'same', true), think(other, TREE, 'same', true)]);
    expect(results.map(({ repeat_of }) => repeat_of).filter((seq) => seq === null)).toHaveLength(1);
    const entries = await expectOneChain(one);
    expect(entries.filter((entry) => entry.type === 'step_trace')).toHaveLength(1);
  });

  test('an effect runs once, at the worker that committed its decision, and a repeat at another one gets its response', async () => {
    const { one, other, clock } = await pair();
    await start(one, TREE, REMOTE);
    await think(other, TREE, 't');
    await write(one, TREE, 'w');
    await until(() => one.world.replies.some(({ input_id }) => input_id === 'w'));
    const seq = (await entriesOf(one.store, TREE)).findIndex(
      (entry) => entry.type === 'input' && entry.body.input_id === 'w',
    );
    const repeated = other.engine.awaitStep(TREE, `${TREE}.1`, seq);
    await poll(clock);
    expect([one.world.performed.length, other.world.performed.length]).toEqual([1, 0]);
    expect((await repeated)?.response).toBe(one.world.replies.find(({ input_id }) => input_id === 'w')?.response);
  });

  test('the decision of another worker has the response to an input', async () => {
    const { one, other, clock } = await pair();
    await start(one, TREE, REMOTE);
    let finish = (): void => undefined;
    one.world.onPerform = () =>
      new Promise((resolve) => (finish = () => resolve({ status: 'done', result: { bytes_written: 1 } })));
    const { response } = await submitProposal(one, TREE, WRITE, 'w');
    await cluster.cutOff(one);
    // It does not learn that it is over: it only reads what the other one has settled.
    one.store.claimLeases = () => Promise.resolve([]);
    one.store.claimDueTrees = () => Promise.resolve([]);
    for (let elapsed = 0; elapsed < 2 * GRACE_MS; elapsed += POLL_MS) await poll(clock);
    expect(other.world.settled).toHaveLength(1);
    expect(await response).toContain('EXECUTION_ERROR');
    finish();
  });

  test('the effect of a worker that died is settled by another one, once', async () => {
    const { one, other, clock } = await pair();
    await start(one, TREE);
    one.world.onPerform = () => new Promise(() => undefined);
    await write(one, TREE, 'w');
    expect(other.world.settled).toEqual([]);
    await poll(clock);
    expect(other.world.settled).toEqual([]);
    await kill(one);
    await poll(clock);
    await until(() => other.world.endings.some(({ run_id }) => run_id === TREE));
    await poll(clock);
    expect(other.world.settled).toHaveLength(1);
    const entries = await expectOneChain(other);
    expect(resultsOf(entries)).toEqual([{ status: 'failed', settled: true }]);
    expect(entries.filter((entry) => entry.type === 'input' && entry.body.kind === 'interrupt')).toHaveLength(1);
  });

  test('a worker without the sandbox starts and ends runs, and leaves effects, timers and leases to others', async () => {
    const { one, other, clock } = await pair();
    other.world.isElsewhere = true;
    await start(other, TREE, REMOTE);
    await think(one, TREE, 't');
    const refused = { code: 'VOLUME_ELSEWHERE' };
    await expect(think(other, TREE, 'refused')).rejects.toMatchObject(refused);
    one.world.onPerform = () => new Promise(() => undefined);
    await write(one, TREE, 'w');
    await kill(one);
    clock.advance(REMOTE.idle_ms);
    for (let polls = 0; polls < 4; polls += 1) await poll(clock);
    expect([other.world.settled, other.world.performed]).toEqual([[], []]);
    await expectOneChain(other);
    const third = await cluster.open(clock);
    opened.push(third);
    await until(() => third.world.settled.length === 1);
    await start(other, 'run_shared0002', REMOTE);
    const end = { kind: 'end', run_id: 'run_shared0002.1', input_id: 'end' } as const;
    await other.engine.submit('run_shared0002', { input: end, materials: [], rememberInputId: false });
    expect(other.world.endings.map(({ run_id }) => run_id)).toContain('run_shared0002');
    await expectOneChain(third, 'run_shared0002');
  });

  test('the effect of a worker that is only cut off has an unknown outcome, and that worker commits nothing more', async () => {
    const { one, other, clock } = await pair();
    await start(one, TREE, REMOTE);
    let answer = (): void => undefined;
    one.world.onPerform = () => new Promise((resolve) => (answer = () => resolve({ status: 'done', result: {} })));
    await write(one, TREE, 'w');
    await cluster.cutOff(one);
    await poll(clock);
    await until(() => other.world.settled.length === 1);
    await cluster.settle();
    expect(resultsOf(await expectOneChain(other))).toEqual([{ status: 'unknown', settled: true }]);
    answer();
    await until(() => one.engine.hasFailed);
    expect(resultsOf(await expectOneChain(other))).toHaveLength(1);
    await one.engine.restart();
    expect((await think(one, TREE, 'again')).refused).toBe(false);
  });

  test('a worker that is cut off again while it recovers can be restarted again', async () => {
    const { one } = await pair();
    await start(one, TREE, REMOTE);
    await cluster.cutOff(one);
    await expect(think(one, TREE, 'lost')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    const { claimLeases } = one.store;
    one.store.claimLeases = async (...args) => {
      one.store.claimLeases = claimLeases;
      await cluster.cutOff(one);
      // It asks on a session that it has to restore, and learns that it is over.
      throw new LedgerError({ code: 'LEDGER_CONFLICT', message: `worker ${args.length} is over` });
    };
    await expect(one.engine.restart()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    await one.engine.restart();
    expect((await think(one, TREE, 'again')).refused).toBe(false);
  });

  test('an effect whose commit was sent too long ago is not performed by a worker that is over', async () => {
    const { one, other, clock } = await pair();
    await start(one, TREE, REMOTE);
    const { commitTrees } = one.store;
    one.store.commitTrees = async (batch) => {
      const statuses = await commitTrees(batch);
      // The process stands still right after its commit: others declare it over, and time passes.
      await cluster.cutOff(one);
      clock.advance(GRACE_MS);
      return statuses;
    };
    await write(one, TREE, 'w');
    await cluster.settle();
    expect(one.world.performed).toEqual([]);
    await until(() => other.world.settled.length === 1);
  });

  test('a timer fires once, and also if the worker that set it has died', async () => {
    const { one, other, clock } = await pair();
    const second = 'run_shared0002';
    await start(one, TREE, REMOTE);
    await start(one, second, REMOTE);
    await think(other, TREE, 'the other worker has the timer too');
    clock.advance(30_000);
    await poll(clock);
    await kill(one);
    clock.advance(40_000);
    await poll(clock);
    await poll(clock);
    await until(() => [TREE, second].every((id) => other.world.endings.some(({ run_id }) => run_id === id)));
    for (const tree of [TREE, second]) {
      const wakes = (await expectOneChain(other, tree)).filter(
        (entry) => entry.type === 'input' && entry.body.kind === 'wake',
      );
      expect(wakes).toHaveLength(1);
    }
  });

  test('S3-21: a second proposal of a run in mid-step waits for the step, on whichever worker', async () => {
    const { one, other, clock } = await pair();
    await start(one, TREE, REMOTE);
    let answer = (): void => undefined;
    one.world.onPerform = () => new Promise((resolve) => (answer = () => resolve({ status: 'done', result: {} })));
    await write(one, TREE, 'w');
    const waiting = propose(other, TREE, proposal('THINK', {}), 'later');
    await cluster.settle();
    expect(
      (await entriesOf(one.store, TREE)).some((entry) => 'input_id' in entry.body && entry.body.input_id === 'later'),
    ).toBe(false);
    answer();
    await until(() => one.world.replies.some(({ input_id }) => input_id === 'w'));
    await poll(clock);
    expect(await waiting).toEqual({ refused: false, repeat_of: null });
    await expectOneChain(one);
  });

  test('S3-21: it waits no longer if its worker could not read the end of the step once', async () => {
    const { one, other, clock } = await pair();
    await start(one, TREE, REMOTE);
    let answer = (): void => undefined;
    one.world.onPerform = () => new Promise((resolve) => (answer = () => resolve({ status: 'done', result: {} })));
    await write(one, TREE, 'w');
    const waiting = propose(other, TREE, proposal('THINK', {}), 'later');
    await cluster.settle();
    const { histories } = other.store;
    other.store.histories = () => {
      other.store.histories = histories;
      throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the connection was cut' });
    };
    answer();
    await until(() => one.world.replies.some(({ input_id }) => input_id === 'w'));
    for (let polls = 0; polls < 3; polls += 1) await poll(clock);
    expect(await waiting).toEqual({ refused: false, repeat_of: null });
    await expectOneChain(one);
  });

  test('S4-70: of two workers that record a tree, the first one writes, and the other has nothing to do', async () => {
    const { one, other } = await pair();
    const trees = ['run_recorded01', 'run_recorded02', 'run_recorded03'];
    for (const tree of trees) await start(one, tree, REMOTE);
    const save = (worker: SharedHarness, tree_id: string, text: string): Promise<boolean> =>
      worker.store.runRecords.save({
        records: [{ tree_id, run_id: tree_id, text }],
        trees: [{ tree_id, place: 1, seq: 2 }],
      });
    expect(await save(one, 'run_recorded01', '{"by":"one"}')).toBe(true);
    expect(await save(other, 'run_recorded01', '{"by":"other"}')).toBe(true);
    expect(await other.store.runRecords.load('run_recorded01', 'run_recorded01')).toBe('{"by":"one"}');
    const both = trees.slice(1).flatMap((tree) => [save(one, tree, '{}'), save(other, tree, '{}')]);
    expect(await Promise.all(both)).toEqual([true, true, true, true]);
    expect(await one.store.runRecords.recorded('run_recorded03')).toBe(2);
    expect([one.world.failure, other.world.failure]).toEqual([null, null]);
  });

  test('a worker that keeps losing a tree decides it under its lock', async () => {
    const { one, other } = await pair();
    await start(one, TREE, REMOTE);
    await think(other, TREE, 'both have the tree in memory');
    let locked = 0;
    const { commitLocked, commitTrees } = other.store;
    other.store.commitLocked = (tree_ids, decide) => {
      locked += 1;
      return commitLocked(tree_ids, decide);
    };
    let rival = 0;
    // The other worker extends the tree just before each commit.
    other.store.commitTrees = async (batch) => {
      rival += 1;
      await think(one, TREE, `rival${rival}`);
      return commitTrees(batch);
    };
    expect(await think(other, TREE, 'slow')).toEqual({ refused: false, repeat_of: null });
    expect(locked).toBe(1);
    expect(rival).toBe(2);
    await expectOneChain(one);
  });

  test('C82: a case of which an append was refused gets another version than the batch, so that nothing builds on it', async () => {
    const { one, other } = await pair();
    const second = 'run_shared0002';
    for (const tree of [TREE, second]) await start(one, tree, REMOTE);
    for (const tree of [TREE, second]) await think(other, tree, 'in memory');
    const { commitTrees } = other.store;
    const release = {
      ...{ case_id: 'case-1', isChecked: false, reserved: [], released: ['run_shared0003.1'] },
      ...{ total: { bytes: 0, files: 0 }, room: null },
    };
    const versions: string[] = [];
    other.store.commitTrees = async (batch) => {
      const [{ version } = { version: '?' }] = await one.store.caseQuotas(['case-1']);
      const trees = batch.trees.map((append) => ({ ...append, quotas: [{ ...release, version }] }));
      if (versions.length === 1) await think(one, TREE, 'faster');
      const statuses = await commitTrees({ ...batch, trees });
      const [after] = await one.store.caseQuotas(['case-1']);
      versions.push(after?.version.replace(batch.quota_version, statuses.join()) ?? '');
      return statuses;
    };
    for (const round of ['first', 'again']) await Promise.all([TREE, second].map((tree) => think(other, tree, round)));
    expect(versions.slice(0, 2)).toEqual(['committed,committed', 'conflict,committed+']);
  });

  test.each([
    { left: 2, statuses: ['committed'] },
    { left: 1, statuses: ['conflict', 'committed'] },
  ])('C82: with $left bytes left, what another worker has reserved meanwhile is $statuses.0', async (expected) => {
    const { one, other } = await pair();
    const second = 'run_shared0002';
    const usage = { bytes: BYTES_MAX - expected.left, files: 0 };
    const changes: (() => void)[] = [];
    for (const worker of [one, other]) {
      worker.world.gather = () => ({ paths: [ABSENT], usage });
      worker.world.onPerform = () =>
        new Promise((end) => changes.push(() => end({ status: 'failed', cause: 'INTERNAL' })));
    }
    for (const tree of [TREE, second]) await start(one, tree, REMOTE);
    await think(other, second, 'in memory');
    await write(one, TREE, 'w');
    const { commitTrees } = other.store;
    const statuses: string[] = [];
    other.store.commitTrees = async (batch) => {
      const answered = await commitTrees(batch);
      statuses.push(...answered);
      return answered;
    };
    await write(other, second, 'w');
    const [quota] = await other.store.caseQuotas(['case-1']);
    for (const end of changes) end();
    expect([statuses, quota?.total.files]).toEqual([expected.statuses, expected.left]);
  });
}

/** Runs `race` once, before or after the given read of the worker; reads are counted from 1, and from now on. */
function raceAtRead(
  { store }: SharedHarness,
  place: { readonly read: 'histories' | 'marks'; readonly count: number; readonly at: 'before' | 'after' },
  race: () => Promise<unknown>,
): void {
  let reads = 0;
  const { inner } = store;
  const turn = async (at: 'before' | 'after', number: number): Promise<void> => {
    if (number === place.count && at === place.at) await race();
  };
  store.marks = async (keys) => {
    const number = place.read === 'marks' ? (reads += 1) : 0;
    await turn('before', number);
    const marks = await inner.marks(keys);
    await turn('after', number);
    return marks;
  };
  store.histories = async function* (places) {
    const number = place.read === 'histories' ? (reads += 1) : 0;
    await turn('before', number);
    try {
      yield* inner.histories(places);
    } finally {
      await turn('after', number);
    }
  };
}
