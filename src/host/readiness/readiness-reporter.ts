// Runs the checks that say whether a process can do all its work now.

import { waitAtMost } from '../../engine/timers.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';

/** How long one check may take, in ms. */
const CHECK_MS_MAX = 2_000;

/** One condition of readiness. */
export interface ReadinessCheck {
  /** Lower-case words with hyphens; no other check has it. */
  readonly name: string;
  /**
   * Returns null if the condition holds, otherwise the reason: a constant text without content, because clients without
   * a token read it. If it throws, the reason is `thrown`, and the error is logged.
   */
  readonly run: () => string | null | Promise<string | null>;
  /** The reason if `run` throws. Default: that the check failed. */
  readonly thrown?: string;
}

/** What one check has found. */
export interface ReadinessResult {
  readonly name: string;
  /** Null if the condition holds. */
  readonly reason: string | null;
}

/** What all checks have found. */
export interface ReadinessReport {
  readonly isReady: boolean;
  /** In the order in which the checks were added. */
  readonly checks: readonly ReadinessResult[];
}

const TIMED_OUT = `no answer within ${CHECK_MS_MAX / 1_000} s`;
const THROWN = 'the check failed: see the log';

interface ReporterParts {
  /** The checks of every Turnpike, which come first. */
  readonly standard: readonly ReadinessCheck[];
  /** Those that a service has added and not removed, at any time. */
  readonly added: ReadonlyMap<string, ReadinessCheck>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Runs the checks of one process, and logs what changes. */
export class ReadinessReporter {
  readonly #parts: ReporterParts;
  /** The reasons of the last report, of the checks that failed. */
  readonly #reasons = new Map<string, string>();
  /** Checks without an answer yet. They are not begun again: a thread or a connection may wait for each run. */
  readonly #pending = new Map<ReadinessCheck, Promise<string | null>>();

  constructor(parts: ReporterParts) {
    this.#parts = parts;
  }

  /** Runs every check. Never rejects. */
  async report(): Promise<ReadinessReport> {
    const { standard, added } = this.#parts;
    const checks = await Promise.all([...standard, ...added.values()].map((check) => this.#run(check)));
    for (const result of checks) this.#logChange(result);
    return { isReady: checks.every(({ reason }) => reason === null), checks };
  }

  async #run(check: ReadinessCheck): Promise<ReadinessResult> {
    let reason: string | null = TIMED_OUT;
    const running = this.#pending.get(check) ?? this.#begin(check);
    await waitAtMost(
      this.#parts.clock,
      CHECK_MS_MAX,
      running.then((found) => (reason = found)),
    );
    return { name: check.name, reason };
  }

  #begin(check: ReadinessCheck): Promise<string | null> {
    const running = this.#answer(check);
    this.#pending.set(check, running);
    void running.finally(() => this.#pending.delete(check));
    return running;
  }

  /** Never rejects. */
  async #answer({ name, run, thrown = THROWN }: ReadinessCheck): Promise<string | null> {
    try {
      return await run();
    } catch (error) {
      if (!this.#reasons.has(name)) this.#parts.log.error('a readiness check failed', { check: name, error });
      return thrown;
    }
  }

  #logChange({ name, reason }: ReadinessResult): void {
    const { log } = this.#parts;
    if ((this.#reasons.get(name) ?? null) === reason) return;
    if (reason === null) {
      this.#reasons.delete(name);
      log.info('a readiness check holds again', { check: name });
    } else {
      this.#reasons.set(name, reason);
      log.error('this process is not ready', { check: name, reason });
    }
  }
}
