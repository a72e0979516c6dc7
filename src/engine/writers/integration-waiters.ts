// Callers that wait until the entries of their trees are in the log. They share one poll of the pending appends, so
// their number costs the store nothing. A poll only reads: the leader integrates, and a follower if the leader stands
// still (`log-leader.ts`).

import type { Clock } from '../ports/clock.js';
import type { LogHead, PendingAppend } from '../../core/ledger/readable-ledger.js';
import type { IntegrationWaiting } from './ledger-writer.js';
import type { LogStore } from '../ports/ledger/log-store.js';

/** Interval of the poll while callers wait, in ms. */
export const INTEGRATION_POLL_MS = 25;
/** Maximum number of pending appends that one poll reads. */
const APPENDS_MAX = 4_096;

interface IntegrationWaitersOptions {
  readonly store: Pick<LogStore, 'pending'>;
  readonly clock: Clock;
  /** Writes a head to the head file that covers all that was integrated before this call. Null after a failure. */
  readonly confirm: () => Promise<LogHead | null>;
}

interface Waiter {
  readonly tree_id: string;
  readonly deadline: number;
  /** The number of its tree's last pending append at its first poll; null before. */
  last: number | null;
  isAnswered: boolean;
  resolve(head: LogHead | null): void;
}

export class IntegrationWaiters implements IntegrationWaiting {
  readonly #options: IntegrationWaitersOptions;
  #waiters: Waiter[] = [];
  #isPolling = false;

  constructor(options: IntegrationWaitersOptions) {
    this.#options = options;
  }

  /**
   * Waits for what this tree has now.
   * @returns the head that covers it, once the head file has it; null after `timeoutMs`, or if the ledger has failed
   */
  wait(tree_id: string, timeoutMs: number): Promise<LogHead | null> {
    const { clock } = this.#options;
    const deadline = clock.now() + timeoutMs;
    return new Promise((resolve) => {
      // A poll may take longer than the caller waits: a server or a disk that does not answer.
      const cancel = clock.wake(deadline, () => waiter.resolve(null));
      const waiter: Waiter = {
        tree_id,
        deadline,
        last: null,
        isAnswered: false,
        resolve: (head) => {
          cancel();
          waiter.isAnswered = true;
          resolve(head);
        },
      };
      this.#waiters.push(waiter);
      if (!this.#isPolling) void this.#poll();
    });
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    const { clock } = this.#options;
    while (this.#waiters.length > 0) {
      await this.#round();
      const { length } = this.#waiters;
      if (length > 0) await new Promise<void>((resume) => clock.wake(clock.now() + INTEGRATION_POLL_MS, resume));
    }
    this.#isPolling = false;
  }

  /** Answers those whose entries are in the log, and those whose time is up. Never rejects. */
  async #round(): Promise<void> {
    // A caller that comes during a read may have committed after it.
    const present = this.#waiters.filter(({ isAnswered }) => !isAnswered);
    this.#waiters = [];
    const waiting: Waiter[] = [];
    const { store, clock, confirm } = this.#options;
    try {
      const pending = await store.pending(APPENDS_MAX);
      const done = present.filter((waiter) => isIntegrated(waiter, pending));
      const head = done.length === 0 ? null : await confirm();
      for (const waiter of done) waiter.resolve(head);
      waiting.push(...present.filter((waiter) => !done.includes(waiter)));
    } catch {
      // The store cannot be read now. The engine notices that itself.
      waiting.push(...present);
    }
    const now = clock.now();
    for (const waiter of waiting) {
      if (waiter.isAnswered) continue;
      if (waiter.deadline <= now) waiter.resolve(null);
      else this.#waiters.push(waiter);
    }
  }
}

/** @param pending the oldest pending appends */
function isIntegrated(waiter: Waiter, pending: readonly PendingAppend[]): boolean {
  const isWhole = pending.length < APPENDS_MAX;
  const own = pending.filter(({ tree_id }) => tree_id === waiter.tree_id).map(({ commit_no }) => commit_no);
  // If the list is cut off, later appends of the tree may be missing in it.
  if (isWhole) waiter.last ??= Math.max(-1, ...own);
  if (waiter.last === null) return false;
  const { last } = waiter;
  return own.every((commit_no) => commit_no > last) && (isWhole || (pending.at(-1)?.commit_no ?? 0) > last);
}
