// Several workers on one ledger, with faults: workers die, stop and are cut off, answers are lost, commits arrive late.
// A seed decides everything, and no real time passes. The clients record
// what they asked and what the answer was; the checks compare that with the ledger and with the effects.

import type { DecisionReply } from '../../../src/core/contract/policy/decision-points.js';
import { artifactRef, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import type { Effect, EffectResult } from '../../../src/core/contract/run/effect.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { ephemeralKey } from '../../../src/stores/keys/session-key.js';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { sharedModelStore } from '../../fixtures/ledger-model/model-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { sharedEngine } from '../../../src/engine/shared.js';
import type { Submission, TreeEngine } from '../../../src/engine/tree-engine.js';
import { InvariantError } from '../../../src/core/errors.js';
import { foldTree } from '../../../src/engine/trees/fold-trees.js';
import { POLL_MS } from '../../../src/engine/writers/shared-writer.js';
import type { SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { Scheduler } from '../../fixtures/slow-store.js';
import { ABSENT, editedPolicy, proposal } from '../../fixtures/tree.js';
import { start, turns, type TreeOwner } from '../start-tree.js';
import { COUNTED_WRITES } from '../../features/conditions/counters/counted-writes.js';
import { recount } from '../../features/conditions/counters/recount.js';
import { SimulatedSandbox, SMALL_QUOTAS, type SandboxView } from './simulated-sandbox.js';
import { createDeferred, type DeferredPromise } from '../../../src/runtime/deferred.js';
import { UnreliableSharedStore, type CommitFaults, type WorkerFate } from './unreliable-shared-store.js';
import '../../fixtures/conditions.js';
import '../../fixtures/decision-points.js';
import { LOCAL_EFFECTS } from '../../fixtures/local-effects.js';

export interface ClusterOptions {
  readonly seed: number;
  /** How many inputs the clients submit. */
  readonly inputs: number;
  readonly workers?: number;
  readonly trees?: number;
  /** Whether the effects change files of one case near its quota. */
  readonly hasQuota?: boolean;
  /** Whether conditions limit the writes of the case by counters. */
  readonly hasCounters?: boolean;
  /** Whether writes ask a decision point, which answers after some time. */
  readonly hasDecisionPoints?: boolean;
  /** Replaces a part of the store by a faulty one, to see that the checks find it. */
  readonly plant?: (store: SharedLedgerStore) => SharedLedgerStore;
}

/** What a client asked, and the answer. */
interface Operation {
  readonly tree_id: string;
  readonly input_id: string;
  /** Positions in the order of all events of the simulation. */
  readonly invokedAt: number;
  answeredAt: number;
  outcome: 'ok' | 'unknown';
  /** The worker that accepted the input and owes its reply, with the number of its failures then; null: none does. */
  owing: { readonly worker: Worker; readonly failures: number } | null;
  /** The recorded responses that repeated requests got. */
  readonly responses: Set<string>;
}

export interface ClusterReport {
  /** What does not hold; empty if all does. */
  readonly violations: readonly string[];
  readonly faults: Readonly<Record<'deaths' | 'stops' | 'cuts' | 'restarts', number>>;
  readonly operations: Readonly<Record<'ok' | 'unknown', number>>;
  readonly effects: number;
  /** Recorded outcomes of effects. */
  readonly results: Readonly<Record<string, number>>;
  readonly entries: number;
  /** Recorded values of counters, and those that differ from a recount. */
  readonly counted: number;
  readonly differences: readonly string[];
}

interface Worker {
  readonly engine: TreeEngine;
  readonly store: UnreliableSharedStore;
  /** The store without faults. */
  readonly shared: SharedLedgerStore;
  readonly fate: WorkerFate & { resume: () => void; performing: number };
  /** Resolves when its process is killed: the connections of its clients break. */
  readonly death: DeferredPromise<null>;
  /** The inputs that it has replied to. */
  readonly replied: Set<string>;
  failures: number;
  hasFailed: boolean;
  isRestarting: boolean;
}

const DONE = { status: 'done', result: { bytes_written: 1 } } as const;
/** So many are enough for all calls of clients, which may wait for one another. */
const ROUNDS_MAX = 2_000;
const FAULTS: CommitFaults = { lost: 0.03, late: 0.03 };

export async function simulateCluster(options: ClusterOptions): Promise<ClusterReport> {
  const simulation = new ClusterSimulation(options);
  await simulation.run();
  return simulation.check();
}

/** Every write asks a decision point. */
const DECIDED_WRITES = editedPolicy({
  actions: [
    ['denials_per_run_max: 10 ', 'denials_per_run_max: 1000 '],
    [
      'knobs:',
      'decision_points: [{ name: a, protocol: opa, url: "https://a.example", actions: [WRITE_FILE], timeout_ms: 50 }]\nknobs:',
    ],
  ],
});

/** Whether the worker that accepted the input still has to reply. */
function isOwed({ input_id, owing }: Pick<Operation, 'input_id' | 'owing'>): boolean {
  if (owing === null || owing.worker.fate.isDead || owing.worker.failures !== owing.failures) return false;
  return !owing.worker.replied.has(input_id);
}

class ClusterSimulation {
  readonly #options: ClusterOptions;
  readonly #scheduler: Scheduler;
  readonly #clock = new ManualClock();
  readonly #state = new LedgerModel({ integrates: false });
  /** The entries of each commit. */
  readonly #commits: (readonly Entry[])[] = [];
  readonly #workers: Worker[] = [];
  readonly #operations: Operation[] = [];
  readonly #trees: string[] = [];
  /** How often the effect of each run has happened. */
  readonly #performed = new Map<string, number>();
  readonly #faults = { deaths: 0, stops: 0, cuts: 0, restarts: 0 };
  /** Recorded outcomes of effects, by kind. */
  readonly #results: Record<string, number> = {};
  readonly #violations: string[] = [];
  /** Inputs that the lifecycle has refused at least once: they waited too long for a step to end. */
  readonly #refused = new Set<string>();
  /** Null without a quota. */
  readonly #sandbox: SimulatedSandbox | null;
  #events = 0;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const commit = this.#state.commitEach.bind(this.#state);
    this.#state.commitEach = (batch) => {
      const statuses = commit(batch);
      const written = batch.trees.filter((_, index) => statuses[index] === 'committed');
      this.#commits.push(written.flatMap(({ entries }) => entries.map(({ entry }) => entry)));
      return statuses;
    };
    this.#sandbox = options.hasQuota === true ? new SimulatedSandbox() : null;
    this.#scheduler = new Scheduler(options.seed);
  }

  async run(): Promise<void> {
    const { inputs, workers = 3, trees = 4 } = this.#options;
    for (let index = 0; index < workers; index += 1) await this.#startWorker();
    for (let index = 0; index < trees; index += 1) await this.#openTree(`run_cluster${String(index).padStart(4, '0')}`);
    for (const { store } of this.#workers) store.faults = FAULTS;
    const clients: Promise<void>[] = [];
    for (let input = 0; input < inputs; input += 1) {
      clients.push(this.#submit(input));
      for (let wait = this.#scheduler.below(6); wait > 0; wait -= 1) await this.#scheduler.turn();
      if (this.#scheduler.below(100) < 10) await this.#fault();
      for (const worker of this.#workers) this.#restartIfFailed(worker);
      if (this.#scheduler.below(100) < 20) this.#clock.advance(this.#scheduler.below(POLL_MS));
    }
    await this.#settle(Promise.all(clients));
  }

  /** Ends all faults, and lets the workers finish. */
  async #settle(clients: Promise<unknown>): Promise<void> {
    const ended: unknown[] = [];
    void clients.then((all) => ended.push(all));
    for (let round = 0; round < ROUNDS_MAX && ended.length === 0; round += 1) await this.#quietRound();
    if (ended.length === 0) this.#violations.push('some calls of clients never ended');
    // Another worker has to take over what a lost one has left.
    for (let round = 0; round < 12 || (round < 60 && this.#isUnfinished()); round += 1) await this.#quietRound();
  }

  /** Whether a reply is owed, or the log lacks entries of trees. */
  #isUnfinished(): boolean {
    return this.#operations.some(isOwed) || this.#state.pending(1).length > 0;
  }

  async #quietRound(): Promise<void> {
    for (const worker of this.#workers) {
      worker.store.faults = { lost: 0, late: 0 };
      worker.fate.resume();
      this.#restartIfFailed(worker);
    }
    this.#clock.advance(POLL_MS + 1);
    await turns(60);
  }

  async #startWorker(): Promise<void> {
    const fate = { isDead: false, resumed: Promise.resolve(), resume: () => undefined, performing: 0 };
    const shared = sharedModelStore(this.#state);
    const planted = this.#options.plant?.(shared) ?? shared;
    const store = new UnreliableSharedStore(planted, this.#scheduler, fate, { lost: 0, late: 0 });
    const worker: Worker = {
      store,
      shared,
      fate,
      death: createDeferred(),
      replied: new Set(),
      failures: 0,
      hasFailed: false,
      isRestarting: false,
      engine: this.#engineOn(store, fate, () => worker),
    };
    await worker.engine.start();
    store.faults = FAULTS;
    this.#workers.push(worker);
  }

  #engineOn(store: UnreliableSharedStore, fate: Worker['fate'], worker: () => Worker): TreeEngine {
    const view = this.#sandbox?.view() ?? null;
    return sharedEngine({
      store,
      externalHeadStore: memoryHeadStore(this.#state.head),
      clock: this.#clock,
      log: winstonLog('silent'),
      effects: {
        ...LOCAL_EFFECTS,
        gather: (request) => view?.gather(request) ?? { paths: [ABSENT], usage: { bytes: 0, files: 0 } },
        run: (effect) => this.#perform(effect, fate, view),
        settle: (effect) => this.#findOutcome(effect, view),
        ask: () => this.#ask(fate),
        forgetUsage: () => view?.forgetUsage(),
      },
      secrets: ephemeralKey(),
      listeners: [
        {
          onFailed: () => {
            worker().hasFailed = true;
            worker().failures += 1;
          },
          onRestarted: () => (worker().hasFailed = false),
        },
      ],
      defer: (task) => void setImmediate(task),
      // Some workers fold the tree for each tick.
      liveTreesMax: this.#scheduler.below(2) * 1_024,
    });
  }

  /** A dead process performs nothing; one that stops in the middle goes on later. */
  async #perform(effect: Effect, fate: Worker['fate'], view: SandboxView | null): Promise<EffectResult> {
    fate.performing += 1;
    for (let delays = this.#scheduler.below(10); delays >= 0; delays -= 1) {
      await this.#scheduler.delay();
      await fate.resumed;
    }
    if (fate.isDead) return new Promise(() => undefined);
    const result = view === null ? DONE : view.change(effect);
    if (result !== null) this.#performed.set(effect.run_id, (this.#performed.get(effect.run_id) ?? 0) + 1);
    for (let delays = this.#scheduler.below(4); delays > 0; delays -= 1) await this.#scheduler.delay();
    fate.performing -= 1;
    return result ?? { status: 'failed', cause: 'FILE_NOT_FOUND' };
  }

  /** A dead process gets no answer; one that stops gets it later. */
  async #ask(fate: Worker['fate']): Promise<DecisionReply> {
    fate.performing += 1;
    for (let delays = this.#scheduler.below(10); delays >= 0; delays -= 1) {
      await this.#scheduler.delay();
      await fate.resumed;
    }
    if (fate.isDead) return new Promise(() => undefined);
    fate.performing -= 1;
    return { answer: this.#scheduler.below(4) === 0 ? 'deny' : 'permit', cached: false };
  }

  #findOutcome({ run_id }: Effect, view: SandboxView | null): EffectResult {
    view?.forgetUsage();
    if (!this.#performed.has(run_id)) this.#sandbox?.noteSettled(run_id);
    if (this.#options.hasCounters === true && this.#scheduler.below(3) === 0) return { status: 'unknown' };
    if (this.#performed.has(run_id)) return DONE;
    return { status: 'failed', cause: 'INTERRUPTED' };
  }

  async #openTree(tree_id: string): Promise<void> {
    const policies = this.#policies();
    const worker = this.#anyWorker();
    this.#trees.push(tree_id);
    for (;;) {
      try {
        const link = { link: 'remote', idle_ms: null } as const;
        await start({ engine: worker.engine }, tree_id, link, policies, this.#ownerOf(tree_id));
        return;
      } catch (error) {
        if (!worker.hasFailed) throw error;
        await worker.engine.restart();
      }
    }
  }

  /** With counters, two trees have one case, and others one actor: some trees have no counter in common. */
  #ownerOf(tree_id: string): TreeOwner {
    const index = this.#options.hasCounters === true ? this.#trees.indexOf(tree_id) : 0;
    return { case_id: `case-${1 + (index % 2)}`, actor_id: index === 0 ? 'tester' : `tester${index >> 1}` };
  }

  #policies(): readonly Artifact[] | undefined {
    if (this.#options.hasDecisionPoints === true) return DECIDED_WRITES;
    if (this.#options.hasCounters === true) return COUNTED_WRITES;
    return this.#sandbox === null ? undefined : SMALL_QUOTAS;
  }

  #anyWorker(): Worker {
    const worker = this.#workers[this.#scheduler.below(this.#workers.length)];
    if (worker === undefined) throw new Error('no worker is left');
    return worker;
  }

  /** A client sends one input, again and to another worker after an error, until it knows the outcome. */
  async #submit(number: number): Promise<void> {
    const tree_id = this.#trees[this.#scheduler.below(this.#trees.length)] ?? '';
    const isPlain =
      this.#sandbox === null && this.#options.hasCounters !== true && this.#options.hasDecisionPoints !== true;
    const isWrite = this.#scheduler.below(3) < (isPlain ? 1 : 2);
    const write = (): Record<string, unknown> =>
      this.#sandbox?.draw(this.#scheduler) ?? proposal('WRITE_FILE', { path: `/sandbox/${number}.txt`, content: 'x' });
    const payload = isWrite ? write() : proposal('THINK', {});
    const bytes = Buffer.from(JSON.stringify(payload));
    const artifact: Artifact = { kind: 'raw_payload', case_id: this.#ownerOf(tree_id).case_id, bytes };
    const invokedAt = (this.#events += 1);
    const operation: Operation = {
      tree_id,
      input_id: `input-${number}`,
      invokedAt,
      answeredAt: 0,
      outcome: 'unknown',
      owing: null,
      responses: new Set(),
    };
    this.#operations.push(operation);
    const input = {
      kind: 'proposal',
      run_id: `${tree_id}.1`,
      input_id: operation.input_id,
      payload: artifactRef(artifact),
      tokens: null,
    } as const;
    const submission = { input, materials: [artifact], rememberInputId: true, expectsResponse: true } as const;
    for (let sends = 0; sends < 8 && operation.outcome === 'unknown'; sends += 1) {
      // Sometimes to two workers at once, as a client does that does not want to wait for a slow one.
      const copies = this.#scheduler.below(6) === 0 ? 2 : 1;
      await Promise.all(Array.from({ length: copies }, () => this.#send(operation, submission)));
    }
    operation.answeredAt = this.#events += 1;
  }

  async #send(operation: Operation, submission: Submission): Promise<void> {
    const worker = this.#anyWorker();
    // If it fails before it answers, a committed input may still be acknowledged, but the reply is not owed.
    const { failures } = worker;
    try {
      const { refused, repeat_of, response } = await worker.engine.submit(operation.tree_id, submission);
      if (response !== undefined) void this.#awaitResponse(worker, operation, response);
      if (repeat_of !== null) await this.#awaitStep(worker, operation, repeat_of);
      operation.outcome = 'ok';
      if (refused) this.#refused.add(operation.input_id);
      if (!refused && repeat_of === null) operation.owing = { worker, failures };
    } catch (error) {
      if (error instanceof InvariantError) this.#violations.push(`${operation.input_id}: ${error.message}`);
      for (let delays = 0; delays < 5; delays += 1) await this.#scheduler.delay();
    }
  }

  /** No run of the simulation ends. If the worker fails, it owes no response. */
  async #awaitResponse(worker: Worker, { input_id }: Operation, responding: Promise<string | null>): Promise<void> {
    const response = await responding.catch(() => undefined);
    if (response === null) this.#violations.push(`${input_id} got no response, and its run has falsely ended`);
    else if (response !== undefined) worker.replied.add(input_id);
  }

  /** A repeated request waits for its step, wherever it is. No run of the simulation ends. */
  async #awaitStep({ engine, fate, death }: Worker, operation: Operation, seq: number): Promise<void> {
    const { tree_id, input_id, responses } = operation;
    const step = await Promise.race([engine.awaitStep(tree_id, `${tree_id}.1`, seq), death.promise]);
    if (fate.isDead) throw new Error('the connection to a dead process broke');
    if (step === null) this.#violations.push(`${input_id} was repeated, and its run has falsely ended`);
    else responses.add(step.response);
  }

  async #fault(): Promise<void> {
    // Half of the faults hit a worker in the middle of an effect, if there is one.
    const busy = this.#workers.find(({ fate }) => fate.performing > 0);
    if (busy !== undefined && this.#scheduler.below(2) === 0) {
      return this.#scheduler.below(3) === 0 ? this.#kill(busy) : this.#stop(busy, true);
    }
    const worker = this.#anyWorker();
    switch (this.#scheduler.below(3)) {
      case 0:
        return this.#kill(worker);
      case 1:
        return this.#stop(worker, this.#scheduler.below(2) === 0);
      default:
        this.#cut(worker);
    }
  }

  async #kill(worker: Worker): Promise<void> {
    if (this.#workers.length === 1) return;
    this.#faults.deaths += 1;
    worker.fate.isDead = true;
    worker.fate.resume();
    worker.death.resolve(null);
    this.#workers.splice(this.#workers.indexOf(worker), 1);
    await worker.store.inner.close();
    await this.#startWorker();
  }

  /** Its connection is lost for so long that it is declared over. */
  #cut({ shared }: Worker): void {
    this.#faults.cuts += 1;
    this.#state.workers.cutOff(shared);
  }

  /** The process stands still, perhaps for so long that it is declared over. */
  async #stop(worker: Worker, isCut: boolean): Promise<void> {
    this.#faults.stops += 1;
    worker.fate.resumed = new Promise((resume) => (worker.fate.resume = resume));
    if (isCut) this.#cut(worker);
    for (let polls = 1 + this.#scheduler.below(3); polls > 0; polls -= 1) {
      this.#clock.advance(POLL_MS);
      for (let delays = 40; delays > 0; delays -= 1) await this.#scheduler.turn();
    }
    worker.fate.resume();
  }

  /** A failed restart is tried again later. */
  #restartIfFailed(worker: Worker): void {
    if (!worker.hasFailed || worker.isRestarting) return;
    this.#faults.restarts += 1;
    worker.isRestarting = true;
    void worker.engine
      .restart()
      .catch(() => undefined)
      .finally(() => (worker.isRestarting = false));
  }

  async check(): Promise<ClusterReport> {
    const store = sharedModelStore(this.#state);
    let entries = 0;
    for (const tree_id of this.#trees) entries += (await this.#checkTree(store, tree_id)).length;
    await this.#checkLog(store, entries);
    for (const [run_id, times] of this.#performed)
      if (times > 1) this.#violations.push(`the effect of ${run_id} happened ${times} times`);
    const ok = this.#operations.filter(({ outcome }) => outcome === 'ok').length;
    const { values, differences } = recount(this.#commits);
    const { reservations } = this.#state.quotas.get('case-1');
    for (const { key } of reservations) this.#violations.push(`${key} is still reserved`);
    return {
      violations: [...this.#violations, ...(this.#sandbox?.violations ?? [])],
      ...{ counted: values, differences },
      faults: this.#faults,
      operations: { ok, unknown: this.#operations.length - ok },
      effects: this.#performed.size,
      results: this.#results,
      entries,
    };
  }

  async #checkTree(store: SharedLedgerStore, tree_id: string): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    for await (const { text } of store.tree(tree_id)) entries.push(JSON.parse(text) as Entry);
    if (entries.some(({ seq }, index) => seq !== index)) this.#violations.push(`${tree_id} has a gap`);
    const folded = await foldTree(store, tree_id).catch((error: unknown) => String(error));
    if (typeof folded === 'string' || folded === null) this.#violations.push(`${tree_id} does not fold: ${folded}`);
    else if (folded.tree.pending.length > 0) this.#violations.push(`${tree_id} has effects without an outcome`);
    this.#checkHistory(tree_id, entries);
    this.#checkOutcomes(entries);
    return entries;
  }

  /** What was answered is recorded once, what is unknown at most once, and in the order of the answers. */
  #checkHistory(tree_id: string, entries: readonly Entry[]): void {
    const seqs = new Map<string, number[]>();
    for (const [index, entry] of entries.entries()) {
      if (entry.type !== 'input' || entry.body.kind !== 'proposal' || isRefused(entries[index + 1])) continue;
      seqs.set(entry.body.input_id, [...(seqs.get(entry.body.input_id) ?? []), entry.seq]);
    }
    const operations = this.#operations.filter((operation) => operation.tree_id === tree_id);
    for (const { input_id, outcome } of operations) {
      const times = seqs.get(input_id)?.length ?? 0;
      if (times > 1 || (outcome === 'ok' && times === 0 && !this.#refused.has(input_id)))
        this.#violations.push(`${input_id} is ${outcome}, and recorded ${times} times`);
    }
    for (const { input_id, owing, responses } of operations) {
      if (responses.size > 1) this.#violations.push(`${input_id} was repeated, and got ${responses.size} responses`);
      if (isOwed({ input_id, owing })) this.#violations.push(`${input_id} got no reply`);
    }
    const ok = operations.filter(({ outcome, input_id }) => outcome === 'ok' && seqs.has(input_id));
    for (const one of ok) {
      for (const other of ok) {
        if (one.answeredAt > other.invokedAt) continue;
        if ((seqs.get(one.input_id)?.[0] ?? 0) > (seqs.get(other.input_id)?.[0] ?? 0))
          this.#violations.push(`${other.input_id} was asked after ${one.input_id} was answered, and stands before it`);
      }
    }
  }

  /** The ledger says of no effect the opposite of what happened. */
  #checkOutcomes(entries: readonly Entry[]): void {
    const results = new Set<string>();
    for (const [index, entry] of entries.entries()) {
      // A worker that others have taken for gone reports later: the lifecycle refuses what it says.
      if (entry.type !== 'input' || entry.body.kind !== 'result' || isRefused(entries[index + 1])) continue;
      const { run_id, status } = entry.body;
      // Only a worker that stands may record an outcome, and only while the effect has none.
      if (results.has(run_id)) this.#violations.push(`${run_id} has more than one outcome`);
      results.add(run_id);
      const kind = `${status}${entry.body.settled ? ' (settled)' : ''}`;
      this.#results[kind] = (this.#results[kind] ?? 0) + 1;
      const happened = this.#performed.has(run_id);
      if (status === 'done' && !happened) this.#violations.push(`${run_id} is done, and did not happen`);
      if (status === 'failed' && happened) this.#violations.push(`${run_id} has failed, and happened`);
    }
  }

  async #checkLog(store: SharedLedgerStore, entries: number): Promise<void> {
    const places = new Set<string>();
    for await (const { tree_id, seq } of store.log()) places.add(`${tree_id} ${seq}`);
    const { size } = await store.head();
    if (size !== entries || places.size !== entries)
      this.#violations.push(`the log has ${size} entries at ${places.size} places, and the trees ${entries}`);
  }
}

/** Whether the entry after an input says that the lifecycle refused it. Such an input may be sent again. */
const isRefused = (next: Entry | undefined): boolean =>
  next?.type === 'audit_event' && next.body.outcome_reason === 'INVALID_STATE_TRANSITION';
