import type { Timer } from '../kernel/decision.js';
import type { Clock } from '../ports/clock.js';

/** How long an engine waits at its end, or before a restart, for effects that are under way. */
export const DRAIN_MS = 10_000;

/** How many trees are folded at once for their timers. */
const TREES_AT_ONCE = 64;
/** How long a tree waits whose timers could not be read. */
const RETRY_MS = 1_000;

/**
 * The timers of trees. A tree is left out where it can never be folded; null stands for one that could not be read now.
 */
export type LoadedTimers = ReadonlyMap<string, readonly Timer[] | null>;

/** What a timer does. */
export interface TimerActions {
  /** Resolves, or rejects, when the timer has taken effect or will not. */
  fire(tree_id: string, run_id: string, at: string): Promise<unknown>;
  /** The timers of trees that were not in memory. Never rejects. */
  load(tree_ids: readonly string[]): Promise<LoadedTimers>;
}

/** The timers of all trees: at most one a run, a later one replaces it. */
export class Timers {
  readonly #clock: Clock;
  readonly #actions: TimerActions;
  readonly #cancel = new Map<string, () => void>();
  /** Runs whose timer has fired and has not taken effect yet. */
  readonly #firing = new Set<string>();
  /** Of trees that are not in memory. */
  readonly #unloaded = new Map<string, () => void>();
  /** Such trees whose time has come, with that time, in milliseconds. */
  readonly #due = new Map<string, number>();
  #isLoading = false;

  constructor(clock: Clock, actions: TimerActions) {
    this.#clock = clock;
    this.#actions = actions;
  }

  set(tree_id: string, timers: readonly Timer[]): void {
    for (const { run_id, at } of timers) {
      this.clearRun(run_id);
      const cancel = this.#clock.wake(Date.parse(at), () => {
        this.#cancel.delete(run_id);
        this.#fire(tree_id, run_id, at);
      });
      this.#cancel.set(run_id, cancel);
    }
  }

  /** For a tree none of whose timers fires before `at`, in milliseconds: they are set then. */
  setLater(tree_id: string, at: number): void {
    this.#unloaded.get(tree_id)?.();
    const cancel = this.#clock.wake(at, () => {
      this.#unloaded.delete(tree_id);
      this.#due.set(tree_id, at);
      if (!this.#isLoading) void this.#loadDue();
    });
    this.#unloaded.set(tree_id, cancel);
  }

  clearRun(run_id: string): void {
    this.#cancel.get(run_id)?.();
    this.#cancel.delete(run_id);
  }

  clear(): void {
    for (const timers of [this.#cancel, this.#unloaded]) {
      for (const cancel of timers.values()) cancel();
      timers.clear();
    }
    this.#due.clear();
  }

  /** What becomes due meanwhile shares the next load. */
  async #loadDue(): Promise<void> {
    this.#isLoading = true;
    while (this.#due.size > 0) {
      const due = [...this.#due].slice(0, TREES_AT_ONCE);
      const loaded = await this.#actions.load(due.map(([tree_id]) => tree_id));
      for (const [tree_id, at] of due) {
        // The timers were cleared while the tree was read.
        if (!this.#due.delete(tree_id)) continue;
        const timers = loaded.get(tree_id);
        if (timers === null) this.setLater(tree_id, this.#clock.now() + RETRY_MS);
        else this.#setDue(tree_id, timers ?? [], at);
      }
    }
    this.#isLoading = false;
  }

  /** Fires what is due at that time, and sets the rest. */
  #setDue(tree_id: string, timers: readonly Timer[], now: number): void {
    for (const timer of timers) {
      const { run_id, at } = timer;
      // An input of the tree has set it, or it has fired, since the tree was left at rest.
      if (this.#cancel.has(run_id) || this.#firing.has(run_id)) continue;
      if (Date.parse(at) <= now) this.#fire(tree_id, run_id, at);
      else this.set(tree_id, [timer]);
    }
  }

  #fire(tree_id: string, run_id: string, at: string): void {
    this.#firing.add(run_id);
    const done = (): boolean => this.#firing.delete(run_id);
    this.#actions.fire(tree_id, run_id, at).then(done, done);
  }
}

/**
 * Waits for the work, but no longer than `ms`: whatever it comes to is its own affair.
 * @returns whether it ended in that time
 */
export async function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  let ended = true;
  let cancel = (): void => undefined;
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.wake(clock.now() + ms, () => {
      ended = false;
      resolve();
    });
  });
  await Promise.race([work, timeout]).finally(cancel);
  return ended;
}
