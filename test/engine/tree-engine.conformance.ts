// The guarantees of every engine (src/engine/tree-engine.ts), as one suite that a later engine must pass unchanged. The
// test itself provides the effects, so that it sees every request; machines, policy and store are real. E4 is an
// invariant of ledger-engine.ts, A2 one of machines/agent.ts.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import type { Effect, EffectResult } from '../../src/core/contract/run/effect.js';
import type { Entry } from '../../src/core/contract/run/entry.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import type {
  EngineListener,
  Effects,
  NewInput,
  Recovery,
  SubmissionResult,
  TreeEngine,
} from '../../src/engine/tree-engine.js';
import { InvariantError, LedgerError } from '../../src/core/errors.js';
import type { ExternalHeadStore, LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import type { RunTermination, Reply } from '../../machines/emission.js';
import type { FaultyStore } from '../fixtures/faulty-store.js';
import type { ManualClock } from '../fixtures/manual-clock.js';
import { start, submit, turns } from './start-tree.js';
import { ABSENT, proposal } from '../fixtures/tree.js';
import { LOCAL_EFFECTS } from '../fixtures/local-effects.js';

/** A process with an engine. `crash` leaves everything as it is and starts another process over the same store. */
export interface EngineHarness {
  readonly engine: TreeEngine;
  readonly store: FaultyStore;
  /** The head file. */
  readonly externalHeadStore: ExternalHeadStore;
  readonly clock: ManualClock;
  readonly world: World;
  /** Whether other workers may write to the ledger: then a start counts only the trees of workers that are gone. */
  readonly isShared?: boolean;
  crash(): Promise<EngineHarness>;
  stop(): Promise<void>;
}

/** The outside world as the suite simulates it, with the notifications and responses that it received. */
export class World implements Effects, EngineListener {
  readonly performed: Effect[] = [];
  readonly settled: Effect[] = [];
  readonly replies: Pick<Reply, 'input_id' | 'response'>[] = [];
  readonly endings: RunTermination[] = [];
  failure: unknown = null;
  isElsewhere = false;
  readonly restarts: Recovery[] = [];
  readonly listeners: EngineListener[] = [this];
  /** Called when an effect runs. */
  onPerform: (effect: Effect) => EffectResult | Promise<EffectResult> = () => ({ status: 'done', result: {} });
  onAnyReply: () => void = () => undefined;

  gather = () => ({ paths: [ABSENT], usage: { bytes: 0, files: 0 } });
  ask: Effects['ask'] = LOCAL_EFFECTS.ask;
  canRun: Effects['canRun'] = LOCAL_EFFECTS.canRun;
  forgetUsage: Effects['forgetUsage'] = LOCAL_EFFECTS.forgetUsage;
  run = (effect: Effect) => {
    this.performed.push(effect);
    return this.onPerform(effect);
  };
  settle = (effect: Effect): EffectResult => {
    this.settled.push(effect);
    return { status: 'failed', cause: 'INTERRUPTED' };
  };
  /** Collects the response to an input. */
  collect = async (input_id: string, responding: Promise<string | null>) => {
    const response = await responding.catch(() => null);
    if (response === null) return;
    this.replies.push({ input_id, response });
    this.onAnyReply();
  };
  onEnded = (_tree: string, ending: RunTermination) => void this.endings.push(ending);
  onFailed = (error: unknown) => {
    this.failure = error;
  };
  onRestarted = (recovery: Recovery) => {
    this.failure = null;
    this.restarts.push(recovery);
  };
}

export function treeEngineConformance(name: string, open: () => Promise<EngineHarness>): void {
  describe(`the TreeEngine guarantees, ${name}`, () => {
    let harness: EngineHarness;
    beforeEach(async () => {
      harness = await open();
    });
    afterEach(() => harness.stop());

    test('guarantee 1, S4-80: inputs of one tree take effect one after another', async () => {
      await start(harness, 'run_conform0001');
      const submissions = Array.from({ length: 20 }, (_, i) => think(harness, 'run_conform0001', `t${i}`));
      const committed = await Promise.all(submissions);
      // The caller queues proposals of an agent run: here, a proposal during a step is rejected, and the rejection is
      // recorded.
      expect(committed.every(({ repeat_of }) => repeat_of === null)).toBe(true);
      const entries = await entriesOf(harness.store, 'run_conform0001');
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
      const steps = entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.step_index] : []));
      expect(steps).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    });

    test('guarantee 2: a commit that fails before it is written leaves nothing', async () => {
      await start(harness, 'run_conform0002');
      const before = await entriesOf(harness.store, 'run_conform0002');
      harness.store.breakage = 'fails, not written';
      await expect(think(harness, 'run_conform0002', 'lost')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      expect(await entriesOf(harness.store, 'run_conform0002')).toEqual(before);
      expect(harness.world.replies).toEqual([]);
    });

    test('guarantee 2 and 6, C35: a commit that fails although it was written is not acknowledged', async () => {
      await start(harness, 'run_conform0003');
      harness.store.breakage = 'fails, but written';
      await expect(write(harness, 'run_conform0003', 'w')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      expect(harness.world.replies).toEqual([]);
      expect(harness.world.performed).toEqual([]);
      await expect(think(harness, 'run_conform0003', 'more')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      expect(harness.world.failure).not.toBeNull();
    });

    test('guarantee 2, E4: an input on which its tree fails leaves nothing, and the other inputs of the tick continue', async () => {
      const [tree, other] = ['run_conform0011', 'run_conform0012'];
      await start(harness, tree);
      await start(harness, other);
      // A local read must answer at once: one that does not is a bug that the tree meets in the middle of the input.
      harness.world.onPerform = () => Promise.resolve({ status: 'done', result: {} });
      const submissions = [
        propose(harness, tree, proposal('LIST_FILES', { path: '/sandbox/' }), 'broken'),
        think(harness, other, 'beside'),
        think(harness, tree, 'after'),
        think(harness, tree, 'last'),
      ];
      const done = { status: 'fulfilled', value: { refused: false, repeat_of: null } };
      expect(await Promise.allSettled(submissions)).toEqual([
        { status: 'rejected', reason: expect.objectContaining({ code: 'INVARIANT' }) },
        done,
        done,
        done,
      ]);
      const entries = await entriesOf(harness.store, tree);
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
      const inputs = entries.flatMap((entry) => (entry.type === 'input' ? [entry.body.input_id] : []));
      expect(inputs.slice(2)).toEqual(['after', 'last']);
      expect(entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.step_index] : []))).toEqual([1, 2]);
      expect(harness.world.replies.map(({ input_id }) => input_id)).toEqual(['beside', 'after', 'last']);
      expect(harness.world.failure).toBeNull();
    });

    test('guarantee 2: an input with content that it does not refer to is rejected alone', async () => {
      const [one, other] = ['run_conform0013', 'run_conform0014'];
      await start(harness, one);
      await start(harness, other);
      const before = await entriesOf(harness.store, one);
      const content: Artifact = { kind: 'result', case_id: null, bytes: Buffer.from('{}') };
      const input = { kind: 'end', run_id: `${one}.1`, input_id: 'astray' } as const;
      const astray = harness.engine.submit(one, { input, materials: [content], rememberInputId: false });
      const otherResult = think(harness, other, 'beside');
      await expect(astray).rejects.toMatchObject({ code: 'INVARIANT' });
      expect(await otherResult).toEqual({ refused: false, repeat_of: null });
      expect(await entriesOf(harness.store, one)).toEqual(before);
      expect(await think(harness, one, 'again')).toEqual({ refused: false, repeat_of: null });
    });

    test('guarantee 3, D4: a repeated input id does nothing, in one tick, later, and after a crash', async () => {
      await start(harness, 'run_conform0004');
      const twice = [think(harness, 'run_conform0004', 'same', true), think(harness, 'run_conform0004', 'same', true)];
      const [first, second] = await Promise.all(twice);
      expect(first?.repeat_of).toBeNull();
      expect(second?.repeat_of).toEqual(expect.any(Number));
      const size = (await entriesOf(harness.store, 'run_conform0004')).length;
      expect((await think(harness, 'run_conform0004', 'same', true)).repeat_of).toBe(second?.repeat_of);
      harness = await harness.crash();
      expect((await think(harness, 'run_conform0004', 'same', true)).repeat_of).toBe(second?.repeat_of);
      expect((await entriesOf(harness.store, 'run_conform0004')).filter(isThought)).toHaveLength(1);
      expect((await entriesOf(harness.store, 'run_conform0004')).length).toBeGreaterThanOrEqual(size);
    });

    test('guarantee 3, D4: an altered mark is an error only of its own input', async () => {
      const [tree, other] = ['run_conform0032', 'run_conform0033'];
      await start(harness, tree);
      await start(harness, other);
      const { marks } = harness.store;
      harness.store.marks = (keys) => {
        const isChanged = keys.some((key) => 'input_id' in key && key.input_id === 'changed');
        if (isChanged) throw new LedgerError({ code: 'LEDGER_TAMPERED', message: 'a mark is not what it was' });
        return marks(keys);
      };
      const submissions = [think(harness, tree, 'changed', true), think(harness, other, 'beside', true)];
      expect(await Promise.allSettled(submissions)).toEqual([
        { status: 'rejected', reason: expect.objectContaining({ code: 'LEDGER_TAMPERED' }) },
        { status: 'fulfilled', value: { refused: false, repeat_of: null } },
      ]);
    });

    test('guarantee 4, C35: a change is executed after the commit of its allow, once, and its result enters once', async () => {
      await start(harness, 'run_conform0005');
      let durable: readonly string[] = [];
      harness.world.onPerform = async (effect) => {
        durable = (await entriesOf(harness.store, 'run_conform0005')).flatMap((entry) =>
          entry.type === 'audit_event' && entry.body.run_id === effect.run_id ? [entry.body.outcome] : [],
        );
        return { status: 'done', result: { bytes_written: 1 } };
      };
      await write(harness, 'run_conform0005', 'w');
      await until(() => harness.world.replies.length > 0);
      expect(durable).toEqual(['allow', 'success']);
      expect(harness.world.performed).toHaveLength(1);
      const [effect] = harness.world.performed;
      const again = await harness.engine.submit('run_conform0005', {
        input: {
          kind: 'result',
          run_id: effect!.run_id,
          input_id: 'again',
          status: 'failed',
          cause: 'IO_ERROR',
          result: null,
          settled: false,
        },
        materials: [],
        rememberInputId: false,
      });
      expect(again.refused).toBe(true);
      expect(harness.world.replies).toHaveLength(1);
    });

    test('guarantee 4, C78: a local read shares the commit of its decision', async () => {
      await start(harness, 'run_conform0006');
      let commits = 0;
      harness.store.before = () => void (commits += 1);
      await propose(harness, 'run_conform0006', proposal('LIST_FILES', { path: '/sandbox/' }), 'r');
      await until(() => harness.world.replies.length > 0);
      expect(commits).toBe(1);
    });

    test('guarantee 5, D3: a timer fires at its time and not before', async () => {
      await start(harness, 'run_conform0007', { link: 'remote', idle_ms: 60_000 });
      harness.clock.advance(59_000);
      await settled(harness, 'run_conform0007');
      expect(harness.world.endings).toEqual([]);
      harness.clock.advance(2_000);
      await until(() => harness.world.endings.length === 2);
      expect(harness.world.endings[0]).toMatchObject({ state: 'cancelled', reason: 'idle' });
    });

    test('guarantee 5, D3: a timer fires after a restart even if its tree cannot be read at first', async () => {
      const tree = 'run_conform0027';
      await start(harness, tree, { link: 'remote', idle_ms: 60_000 });
      await failCommit(harness, tree);
      await harness.engine.restart();
      const { histories } = harness.store;
      let reads = 0;
      harness.store.histories = () => {
        reads += 1;
        throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the connection broke' });
      };
      harness.clock.advance(62_000);
      await until(() => reads >= 2);
      await turns(50);
      expect(harness.world.endings).toEqual([]);
      harness.store.histories = histories;
      harness.clock.advance(2_000);
      await until(() => harness.world.endings.length === 2);
    });

    test('guarantee 5, D3: a timer fires after a restart even while callers submit inputs in every turn', async () => {
      const [tree, other] = ['run_conform0028', 'run_conform0029'];
      await start(harness, tree, { link: 'remote', idle_ms: 60_000 });
      await failCommit(harness, tree);
      await harness.engine.restart();
      await start(harness, other);
      harness.clock.advance(62_000);
      for (let step = 0; step < 200 && harness.world.endings.length < 2; step += 1) {
        await think(harness, other, `t${step}`);
      }
      expect(harness.world.endings.map(({ run_id }) => run_id)).toEqual([`${tree}.1`, tree]);
    });

    test('guarantee 6: the head includes everything that was acknowledged before the request for it', async () => {
      const tree = 'run_conform0030';
      await start(harness, tree);
      for (const step of ['a', 'b', 'c']) {
        await think(harness, tree, step);
        const head = await harness.engine.head();
        expect(head.size).toBe((await entriesOf(harness.store, tree)).length);
      }
    });

    test('guarantee 9, D15: a restart refuses a ledger that lacks what this process has acknowledged', async () => {
      const tree = 'run_conform0031';
      await start(harness, tree);
      const older = await harness.engine.head();
      await think(harness, tree, 't');
      await harness.engine.head();
      await failCommit(harness, tree);
      const { reopen } = harness.store;
      harness.store.reopen = async () => {
        await reopen();
        harness.store.head = () => Promise.resolve(older);
      };
      await expect(harness.engine.restart()).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
      await expect(harness.engine.restart()).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
    });

    test('guarantee 6, S0-04 S2-20: a reply is sent once its trace is in the ledger', async () => {
      await start(harness, 'run_conform0008');
      let recorded = -1;
      harness.world.onAnyReply = () =>
        void (async () => {
          recorded = (await entriesOf(harness.store, 'run_conform0008')).filter(isThought).length;
        })();
      await think(harness, 'run_conform0008', 't');
      await until(() => recorded >= 0);
      expect(recorded).toBe(1);
    });

    test('guarantee 6: the promise of an input has its response, which follows from the result of an effect', async () => {
      const tree = 'run_conform0040';
      await start(harness, tree);
      let finish = (): void => undefined;
      harness.world.onPerform = () =>
        new Promise((resolve) => (finish = () => resolve({ status: 'done', result: { bytes_written: 1 } })));
      const { response, ...result } = await submitProposal(harness, tree, WRITE, 'w', true);
      expect(result).toEqual({ refused: false, repeat_of: null });
      finish();
      const seq = (await entriesOf(harness.store, tree)).findIndex(
        (entry) => entry.type === 'input' && entry.body.input_id === 'w',
      );
      expect(await response).toBe((await harness.engine.awaitStep(tree, `${tree}.1`, seq))?.response);
      const repeated = await submitProposal(harness, tree, WRITE, 'w', true);
      expect(repeated).toEqual({ refused: false, repeat_of: seq });
    });

    test('guarantee 6, A2: a run that is cancelled during a step ends after the response', async () => {
      const tree = 'run_conform0041';
      await start(harness, tree);
      let finish = (): void => undefined;
      harness.world.onPerform = () =>
        new Promise((resolve) => (finish = () => resolve({ status: 'failed', cause: 'INTERRUPTED' })));
      const { response } = await submitProposal(harness, tree, WRITE, 'w');
      await submit(harness, tree, { kind: 'cancel', run_id: tree, input_id: 'cancel', reason: 'operator' });
      finish();
      expect(await response).toContain('EXECUTION_ERROR');
      await until(() => harness.world.endings.some(({ run_id }) => run_id === tree));
    });

    test('guarantee 9: the response is rejected if the engine fails or stops before', async () => {
      const [tree, other] = ['run_conform0042', 'run_conform0043'];
      for (const each of [tree, other]) await start(harness, each, { link: 'remote', idle_ms: 60_000 });
      let finish = (): void => undefined;
      harness.world.onPerform = () =>
        new Promise((resolve) => (finish = () => resolve({ status: 'failed', cause: 'INTERRUPTED' })));
      const { response } = await submitProposal(harness, tree, WRITE, 'w');
      await failCommit(harness, other);
      await expect(response).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      finish();
      await harness.engine.restart();
      const { response: last } = await submitProposal(harness, other, WRITE, 'w');
      const stopped = harness.engine.stop();
      await turns(5);
      harness.clock.advance(60_000);
      await stopped;
      await expect(last).rejects.toMatchObject({ code: 'CLOSED' });
      finish();
    });

    test('guarantee 6: listeners are notified in their order, also those that join later, and of a root apart', async () => {
      const tree = 'run_conform0044';
      await start(harness, tree);
      const events: string[] = [];
      const listener = (name: string): EngineListener => ({
        onEnded: (_tree, { run_id }) => events.push(`${name}: ${run_id}`),
        onTreeEnded: () => events.push(`${name}: the tree`),
      });
      harness.world.listeners.push(listener('first'), { onRestarted: () => undefined }, listener('second'));
      await submit(harness, tree, { kind: 'end', run_id: `${tree}.1`, input_id: 'end' });
      await until(() => harness.world.endings.some(({ run_id }) => run_id === tree));
      expect(events).toEqual([
        ...[`first: ${tree}.1`, `second: ${tree}.1`],
        ...[`first: ${tree}`, 'first: the tree', `second: ${tree}`, 'second: the tree'],
      ]);
    });

    test('guarantee 7, S4-24 C50: an ended run does not change, and the attempt is recorded', async () => {
      const tree = 'run_conform0009';
      await start(harness, tree);
      await submit(harness, tree, { kind: 'end', run_id: `${tree}.1`, input_id: 'end' });
      const { refused } = await submit(harness, tree, {
        kind: 'cancel',
        run_id: tree,
        input_id: 'late',
        reason: 'operator',
      });
      expect(refused).toBe(true);
      const last = (await entriesOf(harness.store, tree)).at(-1);
      expect(last).toMatchObject({ type: 'audit_event', body: { outcome_reason: 'INVALID_STATE_TRANSITION' } });
    });

    test('guarantee 8, D8: the next process settles what a dead process left in flight', async () => {
      const tree = 'run_conform0010';
      await start(harness, tree);
      harness.world.onPerform = () => new Promise(() => undefined);
      await write(harness, tree, 'w');
      expect(harness.world.performed).toHaveLength(1);
      harness = await harness.crash();
      expect(harness.world.performed).toEqual([]);
      expect(harness.world.settled).toHaveLength(1);
      const entries = await entriesOf(harness.store, tree);
      const ends = entries.flatMap((entry) =>
        entry.type === 'audit_event' && entry.body.action_type === 'system' && entry.body.outcome_reason !== 'running'
          ? [`${entry.body.run_id} ${entry.body.outcome_reason ?? ''}`]
          : [],
      );
      expect(ends).toEqual([
        `${tree}.1.1.1 failed:INTERRUPTED`,
        `${tree}.1.1 failed:INTERRUPTED`,
        `${tree}.1 failed:INTERRUPTED`,
        `${tree} failed:CHILD_FAILED`,
      ]);
    });

    test.each([
      ['fails, not written', { settled: 1 }],
      ['fails, but written', { settled: 0 }],
    ] as const)(
      'guarantee 9, D2: when a commit %s, a restart settles the rest and the run continues',
      async (how, told) => {
        const tree = 'run_conform0015';
        await start(harness, tree, { link: 'remote', idle_ms: 60_000 });
        harness.world.onPerform = () => {
          harness.store.breakage = how;
          return { status: 'done', result: { bytes_written: 1 } };
        };
        await write(harness, tree, 'w');
        await until(() => harness.world.failure !== null);
        expect(harness.engine.hasFailed).toBe(true);
        expect(harness.engine.condition).toEqual({ state: 'failed', permanentCode: null, laterTrees: 0 });
        const refused = expect.objectContaining({ code: 'LEDGER_UNAVAILABLE' });
        await expect(think(harness, tree, 'down')).rejects.toEqual(refused);
        await expect(harness.engine.peek(tree)).rejects.toEqual(refused);
        harness.store.breakage = 'none';
        const recovery = await harness.engine.restart();
        const trees = harness.isShared === true ? told.settled : 1;
        expect(recovery).toEqual({ trees, settled: told.settled, interrupted: 0, damaged: 0 });
        expect(harness.world.restarts).toEqual([recovery]);
        expect(harness.engine.hasFailed).toBe(false);
        expect(harness.engine.condition).toEqual({ state: 'running', permanentCode: null, laterTrees: 0 });
        expect(harness.world.performed).toHaveLength(1);
        expect(harness.world.settled).toHaveLength(told.settled);
        // The caller got the failure: the response of the recovery is for a repeated request.
        expect(harness.world.replies).toEqual([]);
        expect(await think(harness, tree, 'again', true)).toEqual({ refused: false, repeat_of: null });
        expect((await think(harness, tree, 'again', true)).repeat_of).toEqual(expect.any(Number));
        const entries = await entriesOf(harness.store, tree);
        expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
        expect(resultsOf(entries)).toHaveLength(1);
        harness.clock.advance(62_000);
        const idle = expect.objectContaining({ run_id: `${tree}.1`, state: 'cancelled', reason: 'idle' });
        await until(() => harness.world.endings.some(({ run_id }) => run_id === tree));
        expect(harness.world.endings).toContainEqual(idle);
      },
    );

    test('guarantee 9, D8: a restart waits for an effect in flight, and discards its late answer', async () => {
      const [tree, other] = ['run_conform0016', 'run_conform0017'];
      await start(harness, tree);
      await start(harness, other);
      let answer: (result: EffectResult) => void = () => undefined;
      harness.world.onPerform = () => new Promise((resolve) => (answer = resolve));
      await write(harness, tree, 'w');
      await failCommit(harness, other);
      const silent = harness.engine.restart();
      const refused = expect(silent).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      await turns(50);
      harness.clock.advance(20_000);
      await refused;
      expect(harness.world.settled).toEqual([]);
      expect(harness.engine.hasFailed).toBe(true);
      const restarting = harness.engine.restart();
      await turns(50);
      expect(harness.world.settled).toEqual([]);
      answer({ status: 'done', result: { bytes_written: 1 } });
      expect(await restarting).toEqual({ trees: 2, settled: 1, interrupted: 2, damaged: 0 });
      expect(harness.world.performed).toHaveLength(1);
      expect(harness.world.settled).toHaveLength(1);
      await turns(50);
      expect(resultsOf(await entriesOf(harness.store, tree))).toEqual([{ status: 'failed', settled: true }]);
    });

    test.each(['after the restart', 'while it recovers'])(
      'guarantee 9, D3: the timers of a run that waited through a failure fire %s',
      async (when) => {
        const [tree, other] = ['run_conform0022', 'run_conform0023'];
        await start(harness, tree, { link: 'remote', idle_ms: 60_000 });
        await start(harness, other);
        await failCommit(harness, other);
        const states = new Set<string>();
        harness.store.before = () => {
          states.add(harness.engine.condition.state);
          if (when === 'while it recovers') harness.clock.advance(62_000);
        };
        expect(await harness.engine.restart()).toMatchObject({ interrupted: 1 });
        // Recovery commits, and no caller is accepted yet.
        expect([...states]).toEqual(['recovering']);
        harness.store.before = () => undefined;
        if (when === 'after the restart') harness.clock.advance(62_000);
        const idle = { run_id: `${tree}.1`, state: 'cancelled', reason: 'idle' };
        await until(() => harness.world.endings.some(({ run_id }) => run_id === tree));
        expect(harness.world.endings).toContainEqual(expect.objectContaining(idle));
      },
    );

    test('guarantee 9: a failed restart can be requested again, and causes no notification', async () => {
      const tree = 'run_conform0018';
      await start(harness, tree);
      await failCommit(harness, tree);
      const before = await entriesOf(harness.store, tree);
      harness.store.breakage = 'fails, not written';
      await expect(harness.engine.restart()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      await expect(think(harness, tree, 'down')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      expect(harness.world.restarts).toEqual([]);
      expect(await entriesOf(harness.store, tree)).toEqual(before);
      harness.store.breakage = 'none';
      expect(await harness.engine.restart()).toMatchObject({ interrupted: 1 });
      expect((await think(harness, tree, 'late')).refused).toBe(true);
    });

    test('guarantee 9, D2: after a commit with an unknown outcome, a restart reads the ledger and continues', async () => {
      const tree = 'run_conform0026';
      await start(harness, tree);
      let sends = 0;
      harness.store.before = () => {
        sends += 1;
        throw new LedgerError({ code: 'LEDGER_COMMIT_UNKNOWN', message: 'the connection broke' });
      };
      await expect(think(harness, tree, 'lost')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      expect(sends).toBeGreaterThan(1);
      harness.store.before = () => undefined;
      expect(await harness.engine.restart()).toMatchObject({ trees: 1, interrupted: 1, damaged: 0 });
    });

    test.each<[string, unknown, string]>([
      ['another writer', new LedgerError({ code: 'LEDGER_CONFLICT', message: 'moved on' }), 'LEDGER_CONFLICT'],
      [
        'a ledger that was changed',
        new LedgerError({ code: 'LEDGER_TAMPERED', message: 'changed' }),
        'LEDGER_TAMPERED',
      ],
      ['a bug', new InvariantError('a contradiction'), 'INVARIANT'],
      [
        'a bug within a commit',
        new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'not written', cause: new InvariantError('a bug') }),
        'INVARIANT',
      ],
      ['a foreign error', new TypeError('undefined is not a function'), 'INVARIANT'],
    ])('guarantee 9: after %s a restart is refused, and the store is not opened again', async (_what, cause, code) => {
      // A worker that was declared over joins again.
      if (harness.isShared === true && code === 'LEDGER_CONFLICT') return;
      await start(harness, 'run_conform0019');
      harness.store.before = () => {
        throw cause;
      };
      await expect(think(harness, 'run_conform0019', 't')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
      harness.store.before = () => undefined;
      await expect(harness.engine.restart()).rejects.toMatchObject({ code });
      await expect(harness.engine.restart()).rejects.toMatchObject({ code });
      expect(harness.engine.hasFailed).toBe(true);
      expect(harness.store.reopened).toBe(0);
    });

    test('guarantee 9: concurrent callers share one restart; without a failure, no restart happens', async () => {
      await start(harness, 'run_conform0020');
      const before = await entriesOf(harness.store, 'run_conform0020');
      expect(await harness.engine.restart()).toEqual({ trees: 0, settled: 0, interrupted: 0, damaged: 0 });
      expect(harness.store.reopened).toBe(0);
      expect(await entriesOf(harness.store, 'run_conform0020')).toEqual(before);
      await failCommit(harness, 'run_conform0020');
      const [first, second] = await Promise.all([harness.engine.restart(), harness.engine.restart()]);
      expect(first).toMatchObject({ trees: 1, interrupted: 1 });
      expect(second).toBe(first);
      expect(harness.store.reopened).toBe(1);
      expect(harness.world.restarts).toHaveLength(1);
    });

    test('guarantee 9: an engine that is stopped during its restart is closed, and does not continue', async () => {
      await start(harness, 'run_conform0021');
      await failCommit(harness, 'run_conform0021');
      const restarting = expect(harness.engine.restart()).rejects.toMatchObject({ code: 'CLOSED' });
      await harness.engine.stop();
      await restarting;
      await expect(harness.engine.restart()).rejects.toMatchObject({ code: 'CLOSED' });
      expect(harness.world.restarts).toEqual([]);
    });

    test('when the engine has stopped, the log has everything that was committed, and the head file has its head', async () => {
      const trees = ['run_conform0024', 'run_conform0025'];
      for (const tree of trees) await start(harness, tree);
      await Promise.all(trees.map((tree) => write(harness, tree, 'w')));
      await until(() => harness.world.replies.length === 2);
      await harness.engine.stop();
      const log: string[] = [];
      for await (const { text } of harness.store.log()) log.push(text);
      for (const tree of trees) {
        const own = (await entriesOf(harness.store, tree)).map((entry) => canonicalJson(entry));
        expect(log.filter((text) => own.includes(text))).toEqual(own);
      }
      const { size, root } = await harness.store.head();
      expect(size).toBe(log.length);
      expect(await harness.externalHeadStore.read()).toEqual({ size, root });
    });

    test('an unknown tree is an error, and no entry', async () => {
      const input = { kind: 'cancel', run_id: 'run_nowhere01', input_id: 'x', reason: 'operator' } as const;
      await expect(submit(harness, 'run_nowhere01', input)).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
      expect((await harness.store.head()).size).toBe(0);
    });
  });
}

export const WRITE = proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });

/** Submits a proposal, and collects its response. */
export async function propose(...proposed: Parameters<typeof submitProposal>) {
  const [{ world }, , , input_id] = proposed;
  const { response, ...result } = await submitProposal(...proposed);
  if (response !== undefined) void world.collect(input_id, response);
  return result;
}

export function submitProposal(
  harness: EngineHarness,
  tree: string,
  payload: object,
  input_id: string,
  rememberInputId = false,
): Promise<SubmissionResult> {
  const artifact: Artifact = { kind: 'raw_payload', case_id: 'case-1', bytes: Buffer.from(JSON.stringify(payload)) };
  const input: NewInput = {
    kind: 'proposal',
    run_id: `${tree}.1`,
    input_id,
    payload: artifactRef(artifact),
    tokens: null,
  };
  const submission = { input, materials: [artifact], rememberInputId, expectsResponse: true } as const;
  return harness.engine.submit(tree, submission);
}

export const think = (harness: EngineHarness, tree: string, input_id: string, rememberInputId = false) =>
  propose(harness, tree, proposal('THINK', {}), input_id, rememberInputId);

export const write = (harness: EngineHarness, tree: string, input_id: string) =>
  propose(harness, tree, WRITE, input_id);

const isThought = (entry: Entry): boolean => entry.type === 'step_trace' && entry.body.action === 'THINK';

export async function entriesOf(store: LedgerStore, tree: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const { text } of store.tree(tree)) entries.push(JSON.parse(text) as Entry);
  return entries;
}

/** Makes a commit of the tree fail. */
async function failCommit(harness: EngineHarness, tree: string): Promise<void> {
  harness.store.breakage = 'fails, not written';
  await expect(think(harness, tree, 'broken')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
  harness.store.breakage = 'none';
}

export const resultsOf = (entries: readonly Entry[]) =>
  entries.flatMap((entry) =>
    entry.type === 'input' && entry.body.kind === 'result'
      ? [{ status: entry.body.status, settled: entry.body.settled }]
      : [],
  );

/** Resolves when every earlier request to the engine is done. */
const settled = (harness: EngineHarness, tree: string): Promise<unknown> => harness.engine.peek(tree);

/** Waits for a condition, within the time of a test. */
export async function until(holds: () => boolean): Promise<void> {
  // A store on a server needs time, and the others only turns of the event loop.
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
  expect(holds()).toBe(true);
}
