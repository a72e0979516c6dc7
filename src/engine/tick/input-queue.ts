import type { QueuedInput } from './input-outcome.js';

/**
 * Maximum inputs per transaction. What they decide stays in memory until the commit. If it nearly fills the young
 * generation of V8, V8 allocates such objects in the old generation from then on, which then grows with every step.
 */
export const TICK_INPUTS_MAX = 32;
/** The same if other workers write too: then a commit waits for the database, which costs more than memory. */
export const SHARED_TICK_INPUTS_MAX = 256;

/** Maximum queued inputs before callers are rejected. The engine's own inputs always enter. */
export const QUEUE_MAX = 65_536;

interface InputQueueOptions {
  /** Maximum inputs of one tick. */
  readonly inputsMax: number;
  /** Runs a task after the current tick, so that all its inputs share a transaction. */
  readonly defer: (task: () => void) => void;
  /** Processes one tick. Never rejects. */
  readonly process: (items: readonly QueuedInput[]) => Promise<void>;
}

/**
 * The inputs that wait for their tick. One task at a time has exclusive access to the trees: a tick, or an inspection.
 */
export class InputQueue {
  readonly #options: InputQueueOptions;
  #items: QueuedInput[] = [];
  #scheduled = false;
  /** Resolves when all tasks with exclusive access have ended. */
  #exclusive: Promise<unknown> = Promise.resolve();

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

  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(work);
    this.#exclusive = done.catch(() => undefined);
    return done;
  }

  /** Resolves when no tick is scheduled and no task has exclusive access. */
  async waitUntilIdle(): Promise<void> {
    while (this.#scheduled) await new Promise<void>((done) => this.#options.defer(done));
    await this.#exclusive;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.defer(() => void this.runExclusive(() => this.#run()));
  }

  /** Runs one tick. Inputs that arrive meanwhile, mostly from callers that it answers, share the next one. */
  async #run(): Promise<void> {
    await this.#options.process(this.#items.splice(0, this.#options.inputsMax));
    this.#scheduled = false;
    if (this.#items.length > 0) this.#schedule();
  }
}
