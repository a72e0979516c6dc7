import type { Clock } from '../ports/clock.js';
import type { QueuedInput } from './tick/input-outcome.js';

/** How long an input waits at most, in ms. Then it is decided as it is, and the lifecycle may refuse it. */
export const PARK_MS_MAX = 60_000;

/** Proposals of a run whose step another input has begun, on this worker or another one, in the order of arrival. */
export class ParkedInputs {
  readonly #clock: Clock;
  readonly #resume: (items: readonly QueuedInput[]) => void;
  readonly #items = new Map<string, QueuedInput[]>();
  /** Until when each input may wait, in ms. */
  readonly #deadlines = new WeakMap<QueuedInput, number>();

  constructor(clock: Clock, resume: (items: readonly QueuedInput[]) => void) {
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
    const others = this.#items.get(tree_id);
    if (others === undefined) this.#items.set(tree_id, [item]);
    else others.push(item);
    return true;
  }

  /** Decides the inputs of trees that have new entries. */
  release(tree_ids: readonly string[]): void {
    if (this.#items.size === 0) return;
    for (const tree_id of tree_ids) {
      const items = this.#items.get(tree_id);
      this.#items.delete(tree_id);
      if (items !== undefined) this.#resume(items);
    }
  }

  /** Decides the inputs of trees that have left memory: nothing else tells that their step has ended. */
  releaseUnless(isInMemory: (tree_id: string) => boolean): void {
    this.release([...this.#items.keys()].filter((tree_id) => !isInMemory(tree_id)));
  }

  /** Removes and returns all inputs. */
  drain(): readonly QueuedInput[] {
    const items = [...this.#items.values()].flat();
    this.#items.clear();
    return items;
  }
}
