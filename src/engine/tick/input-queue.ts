// The inputs that wait: for the next tick, or for the end of the step that answers them.

import type { QueuedInput } from './input-outcome.js';
import type { Clock } from '../ports/clock.js';

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
  /** Runs a task after the current turn of the event loop, so that all inputs of the turn share a transaction. */
  readonly defer: (task: () => void) => void;
}

/** Runs one tick with these inputs. Calls `endTick` at its end, and never rejects. @see LedgerEngine, `#runTick` */
type RunTick = (items: readonly QueuedInput[]) => Promise<void>;

interface RunningTick {
  readonly ended: Promise<void>;
  /** Lets the next task begin. */
  readonly giveUpAccess: () => void;
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
  /** The ticks that are being processed, by their inputs. */
  readonly #ticks = new Map<readonly QueuedInput[], RunningTick>();
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

  /** Calls `runTick` after this turn of the event loop, with the inputs that wait then. */
  scheduleTick(runTick: RunTick): void {
    if (this.#scheduled || this.#items.length === 0 || this.#ticks.size === this.#options.limits.ticksMax) return;
    this.#scheduled = true;
    this.#options.defer(() => void this.#runNext(() => this.#startTick(runTick)));
  }

  /** Lets the next tick be decided before this one ends, if ticks may overlap: the commit of this one was sent. */
  allowNextTick(items: readonly QueuedInput[]): void {
    if (this.#options.limits.ticksMax > 1) this.#ticks.get(items)?.giveUpAccess();
  }

  /** Ends a tick: its trees are free. */
  endTick(items: readonly QueuedInput[]): void {
    const tick = this.#ticks.get(items);
    this.#ticks.delete(items);
    for (const { tree_id } of items) this.#trees.delete(tree_id);
    tick?.giveUpAccess();
  }

  /** Runs a task while no tick and no other task has access to the trees. */
  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#runNext(() => (this.#ticks.size === 0 ? work() : this.#waitForTicks().then(work)));
  }

  /** Resolves when no tick is scheduled or processed, and no task has exclusive access. */
  async waitUntilIdle(): Promise<void> {
    while (this.#scheduled || this.#ticks.size > 0) {
      await this.#waitForTicks();
      if (this.#scheduled) await new Promise<void>((done) => this.#options.defer(done));
    }
    await this.#exclusive;
  }

  #runNext<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(work);
    this.#exclusive = done.catch(() => undefined);
    return done;
  }

  async #waitForTicks(): Promise<void> {
    await Promise.all([...this.#ticks.values()].map(({ ended }) => ended));
  }

  /**
   * Starts one tick. Inputs that arrive meanwhile, mostly from callers that it answers, share the next one.
   * @returns when the next task may begin
   */
  async #startTick(runTick: RunTick): Promise<void> {
    const items = this.#take();
    for (const { tree_id } of items) this.#trees.add(tree_id);
    if (items.length > 0) {
      await new Promise<void>((giveUpAccess) => {
        this.#ticks.set(items, { ended: runTick(items), giveUpAccess });
      });
    }
    this.#scheduled = false;
    if (this.#items.some(({ tree_id }) => !this.#trees.has(tree_id))) this.scheduleTick(runTick);
  }

  /** The next inputs of trees that no tick has. With several ticks, half of all inputs are left to the next one. */
  #take(): readonly QueuedInput[] {
    const { inputsMax, ticksMax } = this.#options.limits;
    if (ticksMax === 1) return this.#items.splice(0, inputsMax);
    const isFree = ({ tree_id }: QueuedInput): boolean => !this.#trees.has(tree_id);
    const free = this.#items.filter(isFree);
    const others = [...this.#ticks.keys()].reduce((sum, { length }) => sum + length, 0);
    const most = Math.min(inputsMax, Math.max(DIVIDED_MIN, Math.ceil((free.length + others) / ticksMax)));
    const taken = new Set(free.slice(0, most));
    this.#items = this.#items.filter((item) => !taken.has(item));
    return [...taken];
  }
}

/** How long an input waits at most, in ms. Then it is decided as it is, and the lifecycle may refuse it. */
export const PARK_MS_MAX = 60_000;

/** What waits for new entries of a tree. */
interface Waiting {
  resume(): void;
  reject(error: unknown): void;
}

/**
 * What waits for a step that another input has begun, on this worker or another one: proposals of its run, in the order
 * of arrival, and callers that have repeated its request.
 */
export class ParkedInputs {
  readonly #clock: Clock;
  readonly #resume: (item: QueuedInput) => void;
  readonly #waiting = new Map<string, Waiting[]>();
  /** Until when each input may wait, in ms. */
  readonly #deadlines = new WeakMap<QueuedInput, number>();

  constructor(clock: Clock, resume: (item: QueuedInput) => void) {
    this.#clock = clock;
    this.#resume = resume;
  }

  /** @returns false if the input has waited as long as it may */
  park(item: QueuedInput): boolean {
    const { tree_id } = item;
    const now = this.#clock.now();
    const deadline = this.#deadlines.get(item);
    if (deadline !== undefined && deadline <= now) return false;
    if (deadline === undefined) {
      this.#deadlines.set(item, now + PARK_MS_MAX);
      this.#clock.wake(now + PARK_MS_MAX, () => this.release([tree_id]));
    }
    this.#add(tree_id, { resume: () => this.#resume(item), reject: (error) => item.reject(error) });
    return true;
  }

  /** Resolves when the tree has new entries, or has left memory. */
  waitForGrowth(tree_id: string): Promise<void> {
    return new Promise((resume, reject) => this.#add(tree_id, { resume, reject }));
  }

  /** Lets what waits for these trees go on: they have new entries. */
  release(tree_ids: readonly string[]): void {
    if (this.#waiting.size === 0) return;
    for (const tree_id of tree_ids) for (const each of this.#take(tree_id)) each.resume();
  }

  /** The same for trees that have left memory: nothing else tells that their step has ended. */
  releaseUnless(isInMemory: (tree_id: string) => boolean): void {
    this.release([...this.#waiting.keys()].filter((tree_id) => !isInMemory(tree_id)));
  }

  /** Rejects everything that waits. */
  rejectAll(error: unknown): void {
    for (const tree_id of [...this.#waiting.keys()]) for (const each of this.#take(tree_id)) each.reject(error);
  }

  #add(tree_id: string, waiting: Waiting): void {
    const others = this.#waiting.get(tree_id);
    if (others === undefined) this.#waiting.set(tree_id, [waiting]);
    else others.push(waiting);
  }

  #take(tree_id: string): readonly Waiting[] {
    const waiting = this.#waiting.get(tree_id) ?? [];
    this.#waiting.delete(tree_id);
    return waiting;
  }
}
