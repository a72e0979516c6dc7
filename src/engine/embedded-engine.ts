// The engine of one process: trees alive in memory, one store, all inputs of one event-loop tick in one transaction.
//
// Invariants:
//   E1. One drain at a time; it decides, commits, and only then tells and performs.
//   E2. A commit that fails ends the engine: nothing of that batch was acknowledged, nothing is done any more (D2).
//   E3. A command is performed once by this process. A local read may come before its commit; its result reaches
//       nobody if that commit fails (C78).
//   E4. An input on which a tree breaks leaves nothing behind: the tree is folded again as it was before it.

import type { Effect } from '../contract/effect.js';
import { InvariantError } from '../errors.js';
import type { Ending } from '../kernel/input.js';
import type { Tree } from '../kernel/tree.js';
import type { OverlaySource } from '../ports/overlay-source.js';
import type { Clock } from '../ports/clock.js';
import type { Erased, HeadAnchor, LedgerStore } from '../ports/ledger-store.js';
import type { Secrets } from '../ports/secrets.js';
import { commitBatch } from './commit-batch.js';
import { HeadWriter } from './head-writer.js';
import { LiveTrees } from './live-trees.js';
import { Hands, type Performed } from './hands.js';
import { recallStep, type RecalledStep } from './recall-step.js';
import { SNAPSHOT_ENTRIES } from './snapshots.js';
import { busy, closed, inUse, unavailable } from './refusals.js';
import { resultSubmission } from './submissions.js';
import type { Issued, Waiting } from './taken.js';
import { Tick, type TickOptions } from './tick.js';
import { Timers, within } from './timers.js';
import type { Committed, CommitFollower, Effects, EngineListener, Submission, TreeEngine } from './tree-engine.js';

/** Inputs that one transaction takes at most: a commit stays bounded however many callers there are. */
const BATCH_INPUTS_MAX = 256;
/** Inputs that may wait before callers are refused. What the engine itself has to say always enters. */
const QUEUE_MAX = 65_536;
export const LIVE_TREES_MAX = 1_024;
/** How long `stop` waits for effects that are under way. */
export const DRAIN_MS = 10_000;

export interface EmbeddedEngineOptions {
  readonly store: LedgerStore;
  readonly anchor: HeadAnchor;
  readonly clock: Clock;
  readonly effects: Effects;
  readonly overlay?: OverlaySource;
  /** What sessions need of the home. */
  readonly secrets: Secrets;
  readonly listener: EngineListener;
  /** Runs a task after the present tick, so that all its inputs share a transaction. */
  readonly defer: (task: () => void) => void;
  readonly liveTreesMax?: number;
  /** How many entries of a tree lie between two of its snapshots. */
  readonly snapshotEntries?: number;
  readonly follower?: CommitFollower;
}

export class EmbeddedEngine implements TreeEngine {
  readonly #options: EmbeddedEngineOptions;
  readonly #hands: Hands;
  readonly #trees: LiveTrees;
  readonly #timers: Timers;
  readonly #tickOptions: TickOptions;
  #queue: Waiting[] = [];
  #scheduled = false;
  /** The end of all work that has the trees to itself: ticks, and looks at a tree. */
  #exclusive: Promise<unknown> = Promise.resolve();
  readonly #heads: HeadWriter;
  #epoch = 0;
  #started = false;
  #failure: unknown = null;
  #stopped = false;
  #now = { at: Number.NaN, text: '' };

  constructor(options: EmbeddedEngineOptions) {
    this.#options = options;
    this.#hands = new Hands(options.effects);
    const { store, anchor } = options;
    this.#heads = new HeadWriter({ store, anchor, failed: (error) => this.#fail(error) });
    this.#trees = new LiveTrees(
      options.store,
      options.liveTreesMax ?? LIVE_TREES_MAX,
      options.snapshotEntries ?? SNAPSHOT_ENTRIES,
      (tree) => options.follower?.leaving(tree),
    );
    this.#timers = new Timers(options.clock, (tree_id, run_id, at) => {
      // A timer that comes too late for its run is refused by the lifecycle; a failed engine has no timers.
      const input = { kind: 'wake', run_id, input_id: `${run_id}/wake@${at}` } as const;
      this.submit(tree_id, { input, materials: [], external: false }).catch(() => undefined);
    });
    this.#tickOptions = {
      store: options.store,
      trees: this.#trees,
      hands: this.#hands,
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

  async start(): Promise<void> {
    this.#epoch = await this.#options.store.acquire();
    await this.#heads.start();
    this.#started = true;
  }

  submit(tree_id: string, submission: Submission): Promise<Committed> {
    if (this.#stopped) return Promise.reject(closed());
    if (this.#queue.length < QUEUE_MAX) return this.#enqueue(tree_id, submission);
    return Promise.reject(busy(QUEUE_MAX));
  }

  peek(tree_id: string): Promise<Tree | null> {
    return this.look(tree_id, (tree) => tree);
  }

  /** Shows a tree while nothing is decided. */
  look<T>(tree_id: string, work: (tree: Tree | null) => T): Promise<T> {
    // Never beside a tick: the tree may have decided what is not committed yet, or be folded twice.
    return this.#alone(async () => {
      if (this.#failure !== null) throw unavailable(this.#failure);
      const shown = work(await this.#trees.get(tree_id));
      this.#evict();
      return shown;
    });
  }

  recall(tree_id: string, run_id: string, seq: number): Promise<RecalledStep | null> {
    if (this.#stopped) return Promise.reject(closed());
    return this.#alone(async () => {
      const tree = await this.#trees.get(tree_id);
      return tree === null ? null : recallStep(tree, run_id, seq, this.#options.store);
    });
  }

  /**
   * Destroys the content of a case, while nothing else happens; of its trees only entries are left.
   * @param forget makes others forget it, before it is gone: nothing is to be left by whoever is killed then
   * @throws RunError CASE_IN_USE while one of them lives; LedgerError
   */
  async erase(case_id: string, by: string, forget?: () => Promise<void>): Promise<Erased> {
    if (this.#stopped) throw closed();
    const { store } = this.#options;
    return this.#alone(async () => {
      if (this.#failure !== null) throw unavailable(this.#failure);
      const found = await store.treesOf(case_id);
      const living = found.find(({ ended }) => !ended);
      if (living !== undefined) throw inUse(case_id, living.tree_id);
      await forget?.();
      const tree_ids = found.map(({ tree_id }) => tree_id);
      for (const tree_id of tree_ids) this.#trees.drop(tree_id);
      return store.erase({ case_id, tree_ids, at: this.#time(), by });
    });
  }

  /** Takes up the timers of a tree that was folded, after a restart. */
  arm(tree: Tree): void {
    this.#timers.set(tree.tree_id, tree.timers);
  }

  /** Whether the ledger could not be written: nothing is recorded any more, and nothing done. */
  get failed(): boolean {
    return this.#failure !== null;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timers.clear();
    // What has been begun is waited for, for a while: what nobody has recorded must be found out by the next start.
    await within(this.#options.clock, DRAIN_MS, this.#hands.idle());
    while (this.#scheduled) await new Promise<void>((done) => this.#options.defer(done));
    await this.#exclusive;
    // What was recorded meanwhile may have set some.
    this.#timers.clear();
    await this.#heads.stop(() => this.#failure !== null);
  }

  #enqueue(tree_id: string, submission: Submission): Promise<Committed> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) {
        reject(unavailable(this.#failure));
      } else {
        this.#queue.push({ tree_id, submission, resolve, reject });
        this.#schedule();
      }
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.defer(() => void this.#alone(() => this.#run()));
  }

  /** One tick; what came meanwhile, from callers whom it answered above all, shares the next. */
  async #run(): Promise<void> {
    const items = this.#queue.splice(0, BATCH_INPUTS_MAX);
    await this.#tick(items).catch((error: unknown) => this.#fail(error, items));
    this.#evict();
    this.#scheduled = false;
    if (this.#queue.length > 0) this.#schedule();
  }

  #evict(): void {
    this.#trees.evict((tree) => tree.pending.length > 0);
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(work);
    this.#exclusive = done.catch(() => undefined);
    return done;
  }

  /** One transaction: decide all, commit all, then tell and perform. */
  async #tick(items: readonly Waiting[]): Promise<void> {
    const tick = new Tick(this.#tickOptions);
    await tick.take(items);
    this.#queue.unshift(...tick.postponed);
    try {
      if (!tick.batch.empty) await this.#commit(tick);
    } catch (error) {
      this.#fail(error, items);
      return;
    }
    for (const { told } of tick.taken) for (const tell of told) tell();
    for (const { tree_id } of items) if (this.#trees.isDue(tree_id)) await this.#trees.save(tree_id);
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
    const { store } = this.#options;
    if (!this.#started) throw new InvariantError('the engine was not started');
    const built = batch.build(this.#epoch);
    const result = await commitBatch(store, built);
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

  /** The end of all work. `taken` are inputs that are in no queue any more. */
  #fail(error: unknown, taken: readonly Waiting[] = []): void {
    if (this.#failure === null) {
      // First: whoever is rejected may ask at once whether the engine goes on.
      this.#failure = error;
      this.#options.store.records?.abandon();
      this.#timers.clear();
      for (const item of this.#queue.splice(0)) item.reject(unavailable(error));
      this.#options.listener.failed(unavailable(error));
    }
    for (const item of taken) item.reject(unavailable(error));
  }
}
