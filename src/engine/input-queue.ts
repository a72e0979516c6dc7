import type { Waiting } from './taken.js';

/** Inputs that one transaction takes at most: a commit stays bounded however many callers there are. */
const BATCH_INPUTS_MAX = 256;

/** Inputs that may wait before callers are refused. What the engine itself has to say always enters. */
export const QUEUE_MAX = 65_536;

interface Options {
  /** Runs a task after the present tick, so that all its inputs share a transaction. */
  readonly defer: (task: () => void) => void;
  /** One tick. It never rejects. */
  readonly take: (items: readonly Waiting[]) => Promise<void>;
}

/** Inputs that wait for their tick. One thing at a time has the trees to itself: a tick, or a look at a tree. */
export class InputQueue {
  readonly #options: Options;
  #items: Waiting[] = [];
  #scheduled = false;
  /** The end of all work that has the trees to itself. */
  #exclusive: Promise<unknown> = Promise.resolve();

  constructor(options: Options) {
    this.#options = options;
  }

  get size(): number {
    return this.#items.length;
  }

  push(item: Waiting): void {
    this.#items.push(item);
    this.#schedule();
  }

  /** Puts items of the present tick first again. */
  postpone(items: readonly Waiting[]): void {
    this.#items.unshift(...items);
  }

  /** Empties it. */
  drain(): readonly Waiting[] {
    return this.#items.splice(0);
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(work);
    this.#exclusive = done.catch(() => undefined);
    return done;
  }

  /** When no tick is scheduled, and nothing has the trees to itself. */
  async idle(): Promise<void> {
    while (this.#scheduled) await new Promise<void>((done) => this.#options.defer(done));
    await this.#exclusive;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.defer(() => void this.alone(() => this.#run()));
  }

  /** One tick; what came meanwhile, from callers whom it answered above all, shares the next. */
  async #run(): Promise<void> {
    await this.#options.take(this.#items.splice(0, BATCH_INPUTS_MAX));
    this.#scheduled = false;
    if (this.#items.length > 0) this.#schedule();
  }
}
