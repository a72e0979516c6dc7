// When a worker of a shared ledger integrates pending appends.
//
//   I1. One worker leads: it integrates the appends of all workers, in intervals. The store gives the lead to another
//       one when the session of the leader is gone.
//   I2. The others follow: they read the head now and then, so that each has it in its own head file.
//   I3. A leader that stands still blocks nothing: if the same append is pending for a whole follower interval, the
//       follower integrates. The compare-and-set on the size of the log orders them.

import { BackgroundJob } from '../background-job.js';
import type { Clock } from '../ports/clock.js';
import type { Log } from '../ports/log.js';
import type { SharedLedgerStore } from '../ports/ledger/shared-store.js';
import type { IntegrationLeader, IntegrationWork } from './ledger-writer.js';

/** Interval of the leader while appends are pending, in ms. */
export const LEADER_MS = 50;
/** Interval of the leader after nothing was pending, in ms. */
export const LEADER_IDLE_MS = 200;
/** Interval of a follower, in ms. */
export const FOLLOWER_MS = 1_000;

interface LogLeaderOptions extends IntegrationWork {
  readonly store: Pick<SharedLedgerStore, 'lead' | 'pending'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class LogLeader implements IntegrationLeader {
  readonly #options: LogLeaderOptions;
  readonly #job: BackgroundJob;
  #isLeader = false;
  #lastRound = -Infinity;
  /** Whether this worker has committed during the current round. */
  #isDue = false;
  /** The oldest pending append at the last round of a follower. */
  #oldest: number | null = null;

  constructor(options: LogLeaderOptions) {
    this.#options = options;
    this.#job = new BackgroundJob({
      clock: options.clock,
      run: () => this.#round(),
      onFailed: (error) => {
        options.log.warn('the log of the shared ledger was not extended', { error });
        return this.#restAfter(FOLLOWER_MS);
      },
    });
  }

  start(): void {
    this.#job.start(0);
  }

  stop(): void {
    this.#job.close();
  }

  /** This worker has committed: the leader integrates soon. */
  onCommitted(): void {
    if (!this.#isLeader) return;
    if (this.#job.isRunning) this.#isDue = true;
    else this.#job.request(Math.max(0, this.#lastRound + LEADER_MS - this.#options.clock.now()));
  }

  async #round(): Promise<number> {
    this.#isDue = false;
    this.#lastRound = this.#options.clock.now();
    this.#isLeader = await this.#options.store.lead();
    if (!this.#isLeader) return this.#follow();
    return this.#restAfter((await this.#options.integrate()) ? LEADER_MS : LEADER_IDLE_MS);
  }

  /** The rest after a round, in ms. */
  #restAfter(ms: number): number {
    return this.#isDue && this.#isLeader ? LEADER_MS : ms;
  }

  /** I2, I3. */
  async #follow(): Promise<number> {
    const [first] = await this.#options.store.pending(1);
    const oldest = first?.commit_no ?? null;
    if (oldest !== null && oldest === this.#oldest) await this.#options.integrate();
    else await this.#options.follow();
    this.#oldest = oldest;
    return FOLLOWER_MS;
  }
}
