import type { QueuedInput } from './input-outcome.js';

/**
 * Maximum inputs per transaction. What they decide stays in memory until the commit. If it nearly fills the young
 * generation of V8, V8 allocates such objects in the old generation from then on, which then grows with every step.
 */
const TICK_INPUTS_MAX = 32;

/** Maximum queued inputs before callers are rejected. The engine's own inputs always enter. */
export const QUEUE_MAX = 65_536;

interface Limits {
  /** Maximum inputs of one tick. */
  readonly inputsMax: number;
  /** Maximum ticks that are processed at the same time. */
  readonly ticksMax: number;
}

export const LIMITS: Limits = { inputsMax: TICK_INPUTS_MAX, ticksMax: 1 };
/**
 * If other workers write too. Then a commit waits for the database, which costs more than memory; one tick is decided
 * while another one is committed.
 */
export const SHARED_LIMITS: Limits = { inputsMax: 256, ticksMax: 2 };

/** Inputs of the queue are divided into two ticks only above this number: each commit has a cost of its own. */
const DIVIDED_MIN = 32;

interface InputQueueOptions {
  readonly limits: Limits;
  /** Runs a task after the current tick, so that all its inputs share a transaction. */
  readonly defer: (task: () => void) => void;
  /**
   * Processes one tick. Never rejects.
   * @param onSent may be called when everything is decided and its commit was sent: from then on other trees can be
   * decided, before the returned promise resolves
   */
  readonly process: (items: readonly QueuedInput[], onSent: () => void) => Promise<void>;
  /** Called after each tick. Its trees are not those of a tick any more. */
  readonly onEnded: () => void;
}

/**
 * The inputs that wait for their tick. One task at a time has exclusive access to the trees: a tick, or an inspection.
 * A tick whose commit was sent gives up its access, except to its own trees: the next tick has no input of them, and
 * every other task waits for it.
 */
export class InputQueue {
  readonly #options: InputQueueOptions;
  #items: QueuedInput[] = [];
  #scheduled = false;
  /** Resolves when all tasks with exclusive access have ended. */
  #exclusive: Promise<unknown> = Promise.resolve();
  /** The ticks that are being processed, with the number of their inputs. */
  readonly #ticks = new Map<Promise<void>, number>();
  /** The trees of these ticks. */
  readonly #trees = new Set<string>();

  constructor(options: InputQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#items.length;
  }

  push(item: QueuedInput): void {
    this.#items.push(item);
    this.#schedule();
  }

  /** Returns items of the current tick to the front of the queue. */
  postpone(items: readonly QueuedInput[]): void {
    this.#items.unshift(...items);
  }

  /** Removes and returns all items. */
  drain(): readonly QueuedInput[] {
    return this.#items.splice(0);
  }

  /** Whether a tick has an input of this tree. */
  isProcessing(tree_id: string): boolean {
    return this.#trees.has(tree_id);
  }

  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#runNext(() => (this.#ticks.size === 0 ? work() : Promise.all(this.#ticks.keys()).then(work)));
  }

  /** Resolves when no tick is scheduled or processed, and no task has exclusive access. */
  async waitUntilIdle(): Promise<void> {
    while (this.#scheduled || this.#ticks.size > 0) {
      await Promise.all(this.#ticks.keys());
      if (this.#scheduled) await new Promise<void>((done) => this.#options.defer(done));
    }
    await this.#exclusive;
  }

  #runNext<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(work);
    this.#exclusive = done.catch(() => undefined);
    return done;
  }

  #schedule(): void {
    if (this.#scheduled || this.#ticks.size === this.#options.limits.ticksMax) return;
    this.#scheduled = true;
    this.#options.defer(() => void this.#runNext(() => this.#run()));
  }

  /**
   * Starts one tick. Inputs that arrive meanwhile, mostly from callers that it answers, share the next one.
   * @returns when the next task may begin
   */
  async #run(): Promise<void> {
    const items = this.#take();
    if (items.length > 0) await this.#process(items);
    this.#scheduled = false;
    if (this.#items.some(({ tree_id }) => !this.#trees.has(tree_id))) this.#schedule();
  }

  /** The next inputs of trees that no tick has. With several ticks, half of all inputs are left to the next one. */
  #take(): readonly QueuedInput[] {
    const { inputsMax, ticksMax } = this.#options.limits;
    if (ticksMax === 1) return this.#items.splice(0, inputsMax);
    const isFree = ({ tree_id }: QueuedInput): boolean => !this.#trees.has(tree_id);
    const free = this.#items.filter(isFree);
    const others = [...this.#ticks.values()].reduce((sum, count) => sum + count, 0);
    const most = Math.min(inputsMax, Math.max(DIVIDED_MIN, Math.ceil((free.length + others) / ticksMax)));
    const taken = new Set(free.slice(0, most));
    this.#items = this.#items.filter((item) => !taken.has(item));
    return [...taken];
  }

  async #process(items: readonly QueuedInput[]): Promise<void> {
    for (const { tree_id } of items) this.#trees.add(tree_id);
    await new Promise<void>((onSent) => {
      const tick = this.#options.process(items, onSent).then(() => {
        this.#ticks.delete(tick);
        for (const { tree_id } of items) this.#trees.delete(tree_id);
        this.#options.onEnded();
        if (this.#items.length > 0) this.#schedule();
        onSent();
      });
      this.#ticks.set(tick, items.length);
    });
  }
}
