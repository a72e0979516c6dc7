import type { QueuedInput } from './input-outcome.js';

/** Inputs that one transaction takes at most: a commit stays bounded however many callers there are. */
const BATCH_INPUTS_MAX = 256;

/** Inputs that may wait before callers are refused. What the engine itself has to say always enters. */
export const QUEUE_MAX = 65_536;

interface InputQueueOptions {
  /** Runs a task after the present tick, so that all its inputs share a transaction. */
  readonly defer: (task: () => void) => void;
  /** One tick. It never rejects. */
  readonly process: (items: readonly QueuedInput[]) => Promise<void>;
}

/** Inputs that wait for their tick. One thing at a time has the trees to itself: a tick, or a look at a tree. */
export class InputQueue {
  readonly #options: InputQueueOptions;
  #items: QueuedInput[] = [];
  #scheduled = false;
  /** The end of all work that has the trees to itself. */
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

  /** Puts items of the present tick first again. */
  postpone(items: readonly QueuedInput[]): void {
    this.#items.unshift(...items);
  }

  /** Empties it. */
  drain(): readonly QueuedInput[] {
    return this.#items.splice(0);
  }

  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(work);
    this.#exclusive = done.catch(() => undefined);
    return done;
  }

  /** When no tick is scheduled, and nothing has the trees to itself. */
  async waitUntilIdle(): Promise<void> {
    while (this.#scheduled) await new Promise<void>((done) => this.#options.defer(done));
    await this.#exclusive;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.defer(() => void this.runExclusive(() => this.#run()));
  }

  /** One tick; what came meanwhile, from callers whom it answered above all, shares the next. */
  async #run(): Promise<void> {
    await this.#options.process(this.#items.splice(0, BATCH_INPUTS_MAX));
    this.#scheduled = false;
    if (this.#items.length > 0) this.#schedule();
  }
}
