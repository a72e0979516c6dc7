import { findPermanentFailure } from '../engine/failures.js';
import type { Recovery, TreeEngine } from '../engine/tree-engine.js';
import type { Clock } from '../engine/ports/clock.js';
import type { Log } from '../engine/ports/log.js';

/** Milliseconds between a failure and the first try. Each further try waits twice as long. */
export const RESTART_MS = 1_000;
/** The longest interval, in milliseconds. After this time without a failure, the intervals start again. */
export const RESTART_MS_MAX = 60_000;

type RestartableEngine = Pick<TreeEngine, 'restart' | 'hasFailed'>;

/** Restarts a failed engine at growing intervals, until a restart succeeds or the failure is permanent. */
export class AutomaticRestarts {
  readonly #clock: Clock;
  readonly #log: Log;
  #engine: RestartableEngine | null = null;
  #interval_ms = RESTART_MS;
  /** When the last restart succeeded. */
  #lastRestartAt = 0;
  #cancelTimer: (() => void) | null = null;
  #closed = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Starts. A failure before this call ends the opening. */
  open(engine: RestartableEngine): void {
    this.#engine = engine;
    if (engine.hasFailed) this.onEngineFailed();
  }

  onEngineFailed(): void {
    if (this.#engine === null) return;
    // An engine that fails again soon, on a disk that is still full, keeps its long interval.
    if (this.#clock.now() - this.#lastRestartAt >= RESTART_MS_MAX) this.#interval_ms = RESTART_MS;
    this.#plan(this.#engine);
  }

  /** Logs a successful restart, by this object or by another caller. */
  onEngineRestarted(recovery: Recovery): void {
    this.#cancelTimer?.();
    this.#lastRestartAt = this.#clock.now();
    this.#log.info('the ledger can be written again', { ...recovery });
  }

  close(): void {
    this.#closed = true;
    this.#cancelTimer?.();
  }

  #plan(engine: RestartableEngine): void {
    if (this.#closed) return;
    this.#cancelTimer?.();
    const interval_ms = this.#interval_ms;
    this.#interval_ms = Math.min(2 * interval_ms, RESTART_MS_MAX);
    this.#cancelTimer = this.#clock.wake(this.#clock.now() + interval_ms, () => void this.#restart(engine));
  }

  async #restart(engine: RestartableEngine): Promise<void> {
    try {
      await engine.restart();
    } catch (error) {
      if (this.#closed) return;
      if (findPermanentFailure(error) === null) {
        this.#log.warn('the ledger still cannot be written; another restart follows', { error });
        this.#plan(engine);
      } else {
        this.#log.error('the ledger is not restarted: open it again', { error });
      }
    }
  }
}
