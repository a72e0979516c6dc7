// The engine of one process: trees alive in memory, one store, all inputs of one event-loop tick in one transaction.
//
// Invariants:
//   E1. One drain at a time; it decides, commits, and only then tells and performs.
//   E2. A commit that fails ends everything: nothing of that batch was acknowledged, nothing is done any more (D2),
//       until a restart has opened the ledger anew, with nothing of before in memory.
//   E3. A command is performed once by this process. A local read may come before its commit; its result reaches
//       nobody if that commit fails (C78).
//   E4. An input on which a tree breaks leaves nothing behind: the tree is folded again as it was before it.
//   E5. A restart begins when nothing of the failed epoch is under way, so nothing is performed beside its settling.
//       What recovery and timers submit enters while callers are still refused.

import type { Effect } from '../contract/effect.js';
import { InvariantError } from '../errors.js';
import type { Ending } from '../kernel/input.js';
import type { Tree } from '../kernel/tree.js';
import type { Erased, LogHead } from '../ports/ledger-store.js';
import { checkAnchor } from '../ledger/check-anchor.js';
import { commitBatch } from './commit-batch.js';
import { eraseCase } from './erase-case.js';
import { Hands, type Performed } from './hands.js';
import { HeadWriter } from './head-writer.js';
import { InputQueue, QUEUE_MAX } from './input-queue.js';
import { LIVE_TREES_MAX, LiveTrees } from './live-trees.js';
import { QuotaReservations } from './quota-reservations.js';
import { recallStep, type RecalledStep } from './recall-step.js';
import { recover, type RecoveringEngine } from './recovery.js';
import { busy, closed, unavailable } from './refusals.js';
import { quiet, Restarts } from './restarts.js';
import { SNAPSHOT_ENTRIES } from './snapshots.js';
import { resultSubmission, wakeSubmission } from './submissions.js';
import type { Issued, Waiting } from './taken.js';
import { Tick, type TickOptions } from './tick.js';
import { DRAIN_MS, Timers, within, type LoadedTimers } from './timers.js';
import type { Committed, EngineParts, Recovery, Submission, TreeEngine } from './tree-engine.js';

export class EmbeddedEngine implements TreeEngine {
  readonly #options: EngineParts;
  readonly #hands: Hands;
  readonly #trees: LiveTrees;
  readonly #timers: Timers;
  readonly #reservations = new QuotaReservations();
  readonly #tickOptions: TickOptions;
  readonly #queue: InputQueue;
  readonly #restarts = new Restarts();
  /** Of the present epoch; null before the start. */
  #heads: HeadWriter | null = null;
  #epoch = 0;
  #stopped = false;
  #now = { at: Number.NaN, text: '' };

  constructor(options: EngineParts) {
    this.#options = options;
    this.#hands = new Hands(options.effects, this.#reservations);
    this.#queue = new InputQueue({ defer: options.defer, take: (items) => this.#take(items) });
    this.#trees = new LiveTrees(
      options.store,
      options.liveTreesMax ?? LIVE_TREES_MAX,
      options.snapshotEntries ?? SNAPSHOT_ENTRIES,
      { leaving: (tree) => options.follower?.leaving(tree), interpretation: options.interpretation },
    );
    this.#timers = new Timers(options.clock, {
      // One that comes too late for its run is refused by the lifecycle; a failed engine has no timers.
      fire: (tree_id, run_id, at) => this.#submitOwn(tree_id, wakeSubmission(run_id, at)),
      load: (tree_ids) => this.#timersOf(tree_ids),
    });
    this.#tickOptions = {
      store: options.store,
      trees: this.#trees,
      hands: this.#hands,
      reservations: this.#reservations,
      secrets: options.secrets,
      time: () => this.#time(),
      overlay: () => options.overlay?.current() ?? null,
      tell: {
        reply: (tree_id, reply) => options.listener.reply(tree_id, reply),
        ended: (tree_id, ending) => this.#ended(tree_id, ending),
        timers: (tree_id, timers) => this.#timers.set(tree_id, timers),
      },
    };
  }

  start(): Promise<Recovery> {
    return this.#begin(() => Promise.resolve());
  }

  submit(tree_id: string, submission: Submission): Promise<Committed> {
    if (this.#stopped) return Promise.reject(closed());
    if (this.#restarts.refused !== null) return Promise.reject(unavailable(this.#restarts.refused));
    if (this.#queue.size < QUEUE_MAX) return this.#enqueue(tree_id, submission);
    return Promise.reject(busy(QUEUE_MAX));
  }

  peek(tree_id: string): Promise<Tree | null> {
    return this.look(tree_id, (tree) => tree);
  }

  look<T>(tree_id: string, work: (tree: Tree | null) => T): Promise<T> {
    if (this.#restarts.refused !== null) return Promise.reject(unavailable(this.#restarts.refused));
    return this.#look(tree_id, work);
  }

  recall(tree_id: string, run_id: string, seq: number): Promise<RecalledStep | null> {
    if (this.#stopped) return Promise.reject(closed());
    return this.#queue.alone(async () => {
      const tree = await this.#trees.get(tree_id);
      return tree === null ? null : recallStep(tree, run_id, seq, this.#options.store);
    });
  }

  async erase(case_id: string, by: string, forget?: () => Promise<void>): Promise<Erased> {
    if (this.#stopped) throw closed();
    return this.#queue.alone(async () => {
      if (this.#restarts.refused !== null) throw unavailable(this.#restarts.refused);
      return eraseCase(this.#options.store, this.#trees, { case_id, by, time: () => this.#time(), forget });
    });
  }

  async head(): Promise<LogHead> {
    await this.#heads?.integrated();
    if (this.#restarts.refused !== null) throw unavailable(this.#restarts.refused);
    return this.#options.store.head();
  }

  get failed(): boolean {
    return this.#restarts.refused !== null;
  }

  restart(): Promise<Recovery> {
    if (this.#stopped) return Promise.reject(closed());
    return this.#restarts.once(() => this.#restart());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timers.clear();
    await within(this.#options.clock, DRAIN_MS, this.#restarts.idle());
    // What has been begun is waited for, for a while: what nobody has recorded must be found out by the next start.
    await within(this.#options.clock, DRAIN_MS, this.#hands.idle());
    await this.#queue.idle();
    // What was recorded meanwhile may have set some.
    this.#timers.clear();
    await this.#heads?.stop(() => this.#restarts.failure !== null);
  }

  /** Becomes the writer, with nothing in memory, and recovers. */
  async #begin(open: () => Promise<void>): Promise<Recovery> {
    const { store, anchor, beforeRecovery } = this.#options;
    const before = this.#heads?.head ?? null;
    const heads: HeadWriter = new HeadWriter({
      store,
      anchor,
      known: before,
      // One of an earlier epoch says nothing of this one.
      failed: (error) => (heads === this.#heads ? this.#fail(error) : undefined),
    });
    await this.#queue.alone(async () => {
      await open();
      this.#trees.clear();
      this.#hands.begin();
      this.#epoch = await store.acquire();
      this.#heads = heads;
    });
    // Of what this process has acknowledged nothing may be missing, also where no head file vouches for it yet.
    if (before !== null) await checkAnchor(store, { read: () => Promise.resolve(before) });
    await beforeRecovery?.();
    if (this.#stopped) throw closed();
    await this.#queue.alone(() => heads.start());
    this.#restarts.recovering();
    const recovering: RecoveringEngine = {
      submit: (tree_id, submission) => this.#submitOwn(tree_id, submission),
      peek: (tree_id) => this.#look(tree_id, (tree) => tree),
      load: (tree_ids) => this.#queue.alone(() => this.#trees.load(tree_ids)),
      reserve: (tree) => this.#reservations.restore(tree),
      arm: ({ tree_id, timers }) => this.#timers.set(tree_id, timers),
      armLater: (tree_id, at) => this.#timers.setLater(tree_id, at),
    };
    return this.#restarts.recovered(await recover(recovering, this.#options));
  }

  async #restart(): Promise<Recovery> {
    const { anchor, store, listener } = this.#options;
    const under = { ...this.#options, queue: this.#queue, hands: this.#hands, heads: this.#heads };
    await quiet(under, this.#restarts.failure);
    try {
      const recovery = await this.#begin(async () => {
        if (this.#stopped) throw closed();
        await anchor.reopen();
        await store.reopen();
      });
      if (this.failed) throw unavailable(this.#restarts.failure);
      listener.restarted(recovery);
      return recovery;
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  #look<T>(tree_id: string, work: (tree: Tree | null) => T): Promise<T> {
    // Never beside a tick: the tree may have decided what is not committed yet, or be folded twice.
    return this.#queue.alone(async () => {
      if (this.#restarts.failure !== null) throw unavailable(this.#restarts.failure);
      const shown = work(await this.#trees.get(tree_id));
      this.#evict();
      return shown;
    });
  }

  #timersOf(tree_ids: readonly string[]): Promise<LoadedTimers> {
    return this.#queue.alone(async () => {
      if (this.#stopped || this.#restarts.failure !== null) return new Map<string, null>();
      const timers = await this.#trees.timersOf(tree_ids, this.#options.log);
      this.#evict();
      return timers;
    });
  }

  /** An input of the engine's own, which enters during recovery too. */
  #submitOwn(tree_id: string, submission: Submission): Promise<Committed> {
    return this.#stopped ? Promise.reject(closed()) : this.#enqueue(tree_id, submission);
  }

  #enqueue(tree_id: string, submission: Submission): Promise<Committed> {
    return new Promise((resolve, reject) => {
      if (this.#restarts.failure !== null) reject(unavailable(this.#restarts.failure));
      else this.#queue.push({ tree_id, submission, resolve, reject });
    });
  }

  async #take(items: readonly Waiting[]): Promise<void> {
    await this.#tick(items).catch((error: unknown) => this.#fail(error, items));
    this.#evict();
  }

  #evict(): void {
    this.#trees.evict((tree) => tree.pending.length > 0);
  }

  /** One transaction: decide all, commit all, then tell and perform. */
  async #tick(items: readonly Waiting[]): Promise<void> {
    const tick = new Tick(this.#tickOptions);
    await tick.take(items);
    this.#queue.postpone(tick.postponed);
    if (!tick.batch.empty) await this.#commit(tick);
    for (const { told } of tick.taken) for (const tell of told) tell();
    for (const { issued } of tick.taken) for (const command of issued) this.#perform(command);
  }

  /** All that happens in a millisecond has the same text. */
  #time(): string {
    const now = this.#options.clock.now();
    if (now !== this.#now.at) this.#now = { at: now, text: new Date(now).toISOString() };
    return this.#now.text;
  }

  #ended(tree_id: string, ending: Ending): void {
    this.#timers.clearRun(ending.run_id);
    // Nothing but refusals can follow: whoever asks for such a tree again has it folded.
    if (ending.run_id === tree_id) this.#trees.drop(tree_id);
    this.#options.listener.ended(tree_id, ending);
  }

  async #commit({ batch, taken }: Tick): Promise<void> {
    const { store, meter } = this.#options;
    if (this.#heads === null) throw new InvariantError('the engine was not started');
    const built = batch.build(this.#epoch);
    const result = await commitBatch(store, built, meter);
    this.#options.follower?.committed(built, result, this.#trees.seen);
    this.#heads.committed(
      result,
      taken.some(({ checkpoint }) => checkpoint),
    );
  }

  #perform({ tree_id, command }: Issued): void {
    const result = this.#hands.perform(command.effect);
    if (result instanceof Promise) void result.then((late) => this.#answer(tree_id, command.effect, late));
    else this.#answer(tree_id, command.effect, result);
  }

  #answer(tree_id: string, effect: Effect, performed: Performed): void {
    // What was done must be recorded: if it cannot be, everything stops, and the intent is settled by the next start.
    this.#enqueue(tree_id, resultSubmission(effect, performed, false)).catch((error: unknown) => this.#fail(error));
  }

  /** The end of all work until a restart. `taken` are inputs that are in no queue any more. */
  #fail(error: unknown, taken: readonly Waiting[] = []): void {
    if (this.#restarts.failure === null) {
      // First: whoever is rejected may ask at once whether the engine goes on.
      const isFirst = this.#restarts.fail(error);
      this.#hands.halt();
      this.#options.store.records?.abandon();
      this.#timers.clear();
      for (const item of this.#queue.drain()) item.reject(unavailable(error));
      if (isFirst) this.#options.listener.failed(unavailable(error));
    }
    for (const item of taken) item.reject(unavailable(error));
  }
}
