// A request that is repeated at another worker while its step is in flight: it waits for the step, and gets its answer.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { sharedModelStore } from '../../fixtures/ledger-model/model-store.js';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { PARK_MS_MAX } from '../../../src/engine/tick/input-queue.js';
import { sharedEngine } from '../../../src/engine/shared.js';
import { POLL_MS } from '../../../src/engine/writers/shared-writer.js';
import { createDeferred, type DeferredPromise } from '../../../src/runtime/deferred.js';
import { defineTool } from '../../../src/runtime/effects/define-effects.js';
import { openStorageEnvironment } from '../../../src/host/storage-environment.js';
import { openTurnpikeIn, type Turnpike } from '../../../src/host/turnpike.js';
import { turns } from '../../engine/start-tree.js';
import { writeContract } from '../../fixtures/bench.js';
import { sized } from '../../fixtures/campaign.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { Scheduler } from '../../fixtures/slow-store.js';
import { CASE_AGENT, serviceEdit } from '../../fixtures/service.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

const REMOTE = {
  ...CASE_AGENT,
  link: 'remote',
  case: 'case-1',
  budget: { tool_calls: 100_000, steps: 100_000 },
} as const;
const Receipt = Type.Object({ receipt: Type.String() }, { additionalProperties: false });
const Amount = Type.Object({ amount: Type.Integer() }, { additionalProperties: false });

/** Workers of one ledger in memory, with one tool that answers when the test says so. */
/** Time that stands still until the test moves it: then two workers can decide the same to the byte. */
class FrozenClock extends ManualClock {
  #now = Date.parse('2026-01-01T00:00:00.000Z');

  override now(): number {
    return this.#now;
  }

  override advance(ms: number): void {
    this.#now += ms;
    super.advance(ms);
  }
}

class Workers {
  readonly clock: ManualClock;
  readonly #state = new LedgerModel({ integrates: false });
  readonly #folder = tempFolder('overtaking');
  readonly #opened: Turnpike[] = [];
  /** The calls of the tool that have no answer yet. */
  readonly calls: DeferredPromise<{ receipt: string }>[] = [];
  /** How often the effect of each run has begun. */
  readonly performed = new Map<string, number>();
  /** Called with a decided batch, before the store has it. */
  beforeCommit: () => Promise<void> = () => Promise.resolve();
  /** When a call of the tool is answered. */
  answerCall: (call: DeferredPromise<{ receipt: string }>) => void = () => undefined;

  constructor({ isFrozen = false } = {}) {
    this.clock = isFrozen ? new FrozenClock() : new ManualClock();
    writeContract(join(this.#folder, 'contract'), { edit: serviceEdit });
    mkdirSync(join(this.#folder, 'sandbox'));
  }

  async open(): Promise<{ readonly turnpike: Turnpike; readonly kill: () => Promise<void> }> {
    const store = sharedModelStore(this.#state);
    const commitTrees = store.commitTrees.bind(store);
    store.commitTrees = async (batch) => {
      await this.beforeCommit();
      return commitTrees(batch);
    };
    const charge = defineTool({
      name: 'billing.charge',
      input: Amount,
      output: Receipt,
      idempotent: false,
      timeout: 600_000,
      run: (_input, { idempotency_key }) => {
        this.performed.set(idempotency_key, (this.performed.get(idempotency_key) ?? 0) + 1);
        const call = createDeferred<{ receipt: string }>();
        this.calls.push(call);
        this.answerCall(call);
        return call.promise;
      },
    });
    const turnpike = await openTurnpikeIn(
      { ...(await openStorageEnvironment(store, {})), store, engine: sharedEngine },
      {
        ...{ store, sandbox: join(this.#folder, 'sandbox'), log: winstonLog('silent'), control: false },
        ...{ clock: this.clock, tools: [charge], policies: manifestPolicySource(join(this.#folder, 'contract')) },
      },
    );
    this.#opened.push(turnpike);
    return { turnpike, kill: () => store.close() };
  }

  async poll(): Promise<void> {
    this.clock.advance(POLL_MS + 1);
    await turns(60);
  }

  /** Polls until `work` has ended. */
  async settled<T>(work: Promise<T>, pollsMax = 40): Promise<T> {
    const ended: boolean[] = [];
    void work.catch(() => undefined).finally(() => ended.push(true));
    for (let polls = 0; polls < pollsMax && ended.length === 0; polls += 1) await this.poll();
    if (ended.length === 0) throw new Error('the call did not end');
    return work;
  }

  async close(): Promise<void> {
    for (const call of this.calls) call.resolve({ receipt: 'closed' });
    for (const turnpike of this.#opened) await turnpike.close();
  }
}

const charge = (amount: number): string =>
  JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount } }));
const THINK = (): string => JSON.stringify(proposal('THINK', {}));
const outcomeOf = async (answer: Promise<string>): Promise<string> => {
  try {
    return await answer;
  } catch (error) {
    return String((error as { code?: unknown }).code ?? error);
  }
};

let workers: Workers;
afterEach(() => workers.close());

describe('a request that is repeated at another worker while its step is in flight', () => {
  test('D4: gets the answer of the step when the step has ended', async () => {
    workers = new Workers();
    const [one, other] = [await workers.open(), await workers.open()];
    const { run_id } = await one.turnpike.startAgent(REMOTE);
    await other.turnpike.respond(run_id, THINK());
    const payload = charge(5);
    const first = one.turnpike.respond(run_id, payload, { inputId: 'same' });
    await turns(60);
    expect(workers.calls).toHaveLength(1);
    const repeats = Array.from({ length: 3 }, () =>
      outcomeOf(other.turnpike.respond(run_id, payload, { inputId: 'same' })),
    );
    let answered = 0;
    for (const repeat of repeats) void repeat.then(() => (answered += 1));
    for (let polls = 0; polls < 3; polls += 1) await workers.poll();
    expect(answered).toBe(0);
    workers.calls[0]?.resolve({ receipt: 'r-5' });
    const response = await workers.settled(first);
    expect(JSON.parse(response)).toMatchObject({ outcome: 'SUCCESS', result: { receipt: 'r-5' } });
    expect(await workers.settled(Promise.all(repeats))).toEqual([response, response, response]);
    expect([...workers.performed.values()]).toEqual([1]);
  });

  test('D4: of two copies that are decided in the same millisecond, one is executed', async () => {
    workers = new Workers({ isFrozen: true });
    const [one, other] = [await workers.open(), await workers.open()];
    const { run_id } = await one.turnpike.startAgent(REMOTE);
    await other.turnpike.respond(run_id, THINK());
    await workers.poll();
    const payload = charge(5);
    let decided = 0;
    const both = createDeferred<undefined>();
    workers.beforeCommit = async () => {
      decided += 1;
      if (decided === 2) both.resolve(undefined);
      await both.promise;
    };
    const copies = [one, other].map(({ turnpike }) => turnpike.respond(run_id, payload, { inputId: 'same' }));
    await turns(60);
    for (const call of workers.calls) call.resolve({ receipt: 'r-5' });
    const [first, second] = await workers.settled(Promise.all(copies));
    expect(first).toBe(second);
    expect([...workers.performed.values()]).toEqual([1]);
  });

  test('D4: gets the answer that another worker has recorded after the first one died', async () => {
    workers = new Workers();
    const [one, other] = [await workers.open(), await workers.open()];
    const { run_id } = await one.turnpike.startAgent(REMOTE);
    const payload = charge(5);
    void one.turnpike.respond(run_id, payload, { inputId: 'same' }).catch(() => undefined);
    await turns(60);
    const repeat = outcomeOf(other.turnpike.respond(run_id, payload, { inputId: 'same' }));
    await workers.poll();
    await one.kill();
    const response = await workers.settled(repeat);
    expect(JSON.parse(response)).toMatchObject({ action: 'CALL_TOOL', outcome: 'EXECUTION_ERROR' });
    expect(await outcomeOf(other.turnpike.respond(run_id, payload, { inputId: 'same' }))).toBe(response);
  });

  test('D4: gets RUN_ENDED if its run has ended without the step', async () => {
    workers = new Workers();
    const [one, other] = [await workers.open(), await workers.open()];
    const agent = await one.turnpike.startAgent(REMOTE);
    await agent.end();
    expect(await outcomeOf(other.turnpike.respond(agent.run_id, THINK(), { inputId: 'late' }))).toBe('RUN_ENDED');
  });

  test('is rejected as CLOSED if its worker closes first', async () => {
    workers = new Workers();
    const [one, other] = [await workers.open(), await workers.open()];
    const { run_id } = await one.turnpike.startAgent(REMOTE);
    const payload = charge(5);
    void one.turnpike.respond(run_id, payload, { inputId: 'same' }).catch(() => undefined);
    await turns(60);
    const repeat = outcomeOf(other.turnpike.respond(run_id, payload, { inputId: 'same' }));
    await workers.poll();
    await other.turnpike.close();
    expect(await repeat).toBe('CLOSED');
  });

  test('S3-21: another proposal that has waited as long as it may is busy, and its run has not ended', async () => {
    workers = new Workers();
    const [one, other] = [await workers.open(), await workers.open()];
    const { run_id } = await one.turnpike.startAgent({ ...REMOTE, idleMs: 600_000 });
    void one.turnpike.respond(run_id, charge(5), { inputId: 'slow' }).catch(() => undefined);
    await turns(60);
    const waiting = outcomeOf(other.turnpike.respond(run_id, THINK(), { inputId: 'later' }));
    await workers.poll();
    workers.clock.advance(PARK_MS_MAX);
    expect(await workers.settled(waiting)).toBe('AGENT_BUSY');
    workers.calls[0]?.resolve({ receipt: 'r-5' });
    await workers.poll();
    expect(JSON.parse(await workers.settled(other.turnpike.respond(run_id, THINK())))).toMatchObject({
      outcome: 'SUCCESS',
    });
  });
});

describe('requests that are repeated at other workers at any moment', () => {
  const SEEDS = Array.from({ length: sized(3, 100) }, (_, index) => index + 1);
  const REQUESTS = sized(30, 100);

  test.each(SEEDS)('D4: every copy gets the one answer, and no run ends, seed %i', async (seed) => {
    workers = new Workers({ isFrozen: seed % 3 === 1 });
    const scheduler = new Scheduler(seed);
    const all = [await workers.open(), await workers.open(), await workers.open()];
    const runs: string[] = [];
    for (const { turnpike } of all) runs.push((await turnpike.startAgent(REMOTE)).run_id);
    workers.answerCall = (call) => {
      void (async () => {
        for (let delays = scheduler.below(40); delays > 0; delays -= 1) await scheduler.turn();
        call.resolve({ receipt: 'done' });
      })();
    };
    const answers = new Map<string, Set<string>>();
    const calls: Promise<unknown>[] = [];
    for (let number = 0; number < REQUESTS; number += 1) {
      const run_id = runs[scheduler.below(runs.length)] ?? '';
      const payload = scheduler.below(4) === 0 ? THINK() : charge(number + 1);
      const found = new Set<string>();
      answers.set(`${number}`, found);
      for (let copies = 1 + scheduler.below(3); copies > 0; copies -= 1) {
        const { turnpike } = all[scheduler.below(all.length)] ?? all[0]!;
        calls.push(outcomeOf(turnpike.respond(run_id, payload, { inputId: `i${number}` })).then((a) => found.add(a)));
        for (let delays = scheduler.below(30); delays > 0; delays -= 1) await scheduler.turn();
      }
    }
    await workers.settled(Promise.all(calls), 2_000);
    const wrong = [...answers].filter(([, found]) => found.size !== 1 || ![...found].every((a) => a.startsWith('{')));
    expect(wrong).toEqual([]);
    expect([...workers.performed.values()].filter((times) => times !== 1)).toEqual([]);
  });
});
