import type { Timer } from '../kernel/input.js';
import type { Clock } from '../ports/clock.js';

/** How long an engine waits at its end, or before a restart, for effects that are under way. */
export const DRAIN_MS = 10_000;

/** What a timer does. */
export interface TimerActions {
  fire(tree_id: string, run_id: string, at: string): void;
  /** The timers of a tree that was not in memory, behind all its inputs so far. Never rejects. */
  load(tree_id: string): Promise<readonly Timer[]>;
}

/** The timers of all trees: at most one a run, a later one replaces it. */
export class Timers {
  readonly #clock: Clock;
  readonly #actions: TimerActions;
  readonly #cancel = new Map<string, () => void>();
  /** Of trees that are not in memory. */
  readonly #later = new Map<string, () => void>();

  constructor(clock: Clock, actions: TimerActions) {
    this.#clock = clock;
    this.#actions = actions;
  }

  set(tree_id: string, timers: readonly Timer[]): void {
    for (const { run_id, at } of timers) {
      this.clearRun(run_id);
      const off = this.#clock.wake(Date.parse(at), () => {
        this.#cancel.delete(run_id);
        this.#actions.fire(tree_id, run_id, at);
      });
      this.#cancel.set(run_id, off);
    }
  }

  /** For a tree none of whose timers fires before `at`: they are set then. */
  setLater(tree_id: string, at: string): void {
    this.#later.get(tree_id)?.();
    const off = this.#clock.wake(Date.parse(at), () => {
      this.#later.delete(tree_id);
      void this.#actions.load(tree_id).then((timers) => this.#setAt(at, tree_id, timers));
    });
    this.#later.set(tree_id, off);
  }

  /** Fires what is due at that time, and sets the rest. */
  #setAt(now: string, tree_id: string, timers: readonly Timer[]): void {
    const isDue = ({ at }: Timer): boolean => at <= now;
    for (const { run_id, at } of timers.filter(isDue)) {
      this.clearRun(run_id);
      this.#actions.fire(tree_id, run_id, at);
    }
    this.set(
      tree_id,
      timers.filter((timer) => !isDue(timer)),
    );
  }

  clearRun(run_id: string): void {
    this.#cancel.get(run_id)?.();
    this.#cancel.delete(run_id);
  }

  clear(): void {
    for (const timers of [this.#cancel, this.#later]) {
      for (const off of timers.values()) off();
      timers.clear();
    }
  }
}

/**
 * Waits for the work, but no longer than `ms`: whatever it comes to is its own affair.
 * @returns whether it ended in that time
 */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  let ended = true;
  let off = (): void => undefined;
  const late = new Promise<void>((resolve) => {
    off = clock.wake(clock.now() + ms, () => {
      ended = false;
      resolve();
    });
  });
  await Promise.race([work, late]).finally(off);
  return ended;
}
