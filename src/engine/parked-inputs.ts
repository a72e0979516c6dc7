import type { Clock } from './ports/clock.js';
import type { QueuedInput } from './tick/input-outcome.js';

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
