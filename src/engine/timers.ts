import type { Timer } from '../kernel/decision.js';
import type { Clock } from './ports/clock.js';

/** How long an engine waits for effects in flight when it stops or restarts, in ms. */
export const DRAIN_MS = 10_000;

/** Maximum number of trees that are folded at once for their timers. */
const TREES_AT_ONCE = 64;
/** How long to wait before reading a tree's timers again after a failure, in ms. */
const RETRY_MS = 1_000;

/** Timers by tree. A tree that can never be folded is absent; null means that it could not be read now. */
export type LoadedTimers = ReadonlyMap<string, readonly Timer[] | null>;

/** The effects of timers. */
export interface TimerActions {
  /** Settles when the timer has taken effect, or will not. */
  fire(tree_id: string, run_id: string, at: string): Promise<unknown>;
  /** Reads the timers of trees that are not in memory. Never rejects. */
  load(tree_ids: readonly string[]): Promise<LoadedTimers>;
}

/** The timers of all trees. A run has at most one; a later one replaces it. */
export class Timers {
  readonly #clock: Clock;
  readonly #actions: TimerActions;
  readonly #cancel = new Map<string, () => void>();
  /** Runs whose timer has fired but has not taken effect yet. */
  readonly #firing = new Set<string>();
  /** Wake-ups of trees that are not in memory. */
  readonly #unloaded = new Map<string, () => void>();
  /** Trees of these that are due, with the due time in ms. */
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

  /** Sets a tree's timers at `at`, in ms. None of them fires earlier. */
  setLater(tree_id: string, at: number): void {
    this.#unloaded.get(tree_id)?.();
    const cancel = this.#clock.wake(at, () => {
      this.#unloaded.delete(tree_id);
      this.#due.set(tree_id, at);
      if (!this.#isLoading) void this.#loadDue();
    });
    this.#unloaded.set(tree_id, cancel);
  }

  /** Loads these trees now, fires their timers that are due, and sets the others. */
  loadNow(tree_ids: readonly string[]): void {
    const now = this.#clock.now();
    for (const tree_id of tree_ids) this.#due.set(tree_id, now);
    if (tree_ids.length > 0 && !this.#isLoading) void this.#loadDue();
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

  /** Trees that become due meanwhile share the next load. */
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

  /** Fires the timers that are due at `now`, and sets the others. */
  #setDue(tree_id: string, timers: readonly Timer[], now: number): void {
    for (const timer of timers) {
      const { run_id, at } = timer;
      // Skip a timer that an input has set, or that has fired, since the load began.
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
 * Waits for the work, but at most `ms`. Ignores its result.
 * @returns whether the work ended in time
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
