// Whether this process can do all its work now, as a list of named checks. A service adds checks of its own.

import { waitAtMost } from '../../engine/timers.js';
import { usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';

/** Interval between two reports without a request, in ms. */
const WATCH_MS = 5_000;
/** How long one check may take, in ms. */
const CHECK_MS_MAX = 2_000;
const NAME = /^[a-z][a-z0-9-]{0,39}$/;

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

interface ReadinessParts {
  /** The checks of every Turnpike, which come first. */
  readonly standard: readonly ReadinessCheck[];
  readonly clock: Clock;
  readonly log: Log;
}

/** The checks of one process. Logs what changes. */
export class Readiness {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #checks: Map<string, ReadinessCheck>;
  /** The reasons of the last report, of the checks that failed. */
  readonly #reasons = new Map<string, string>();
  /** Checks without an answer yet. They are not begun again: a thread or a connection may wait for each run. */
  readonly #pending = new Map<ReadinessCheck, Promise<string | null>>();
  #running: Promise<ReadinessReport> | null = null;

  constructor(parts: ReadinessParts) {
    this.#checks = new Map(parts.standard.map((check) => [check.name, check]));
    this.#clock = parts.clock;
    this.#log = parts.log;
  }

  /**
   * Adds checks, until the returned function removes them.
   * @throws UsageError for a malformed name, or one that is taken
   */
  add(...checks: readonly ReadinessCheck[]): () => void {
    for (const { name } of checks) {
      if (!NAME.test(name))
        throw usageError('the name of a readiness check has lower-case letters, digits and hyphens');
      if (this.has(name)) throw usageError(`there is a readiness check ${name} already`);
    }
    for (const check of checks) this.#checks.set(check.name, check);
    return () => {
      for (const { name } of checks) this.#checks.delete(name);
    };
  }

  /** Whether there is a check of this name. */
  has(name: string): boolean {
    return this.#checks.has(name);
  }

  /** Runs every check. Concurrent callers share one report. Never rejects. */
  report(): Promise<ReadinessReport> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Logs what changes, also without a request for a report. @returns a function that ends it */
  watch(): () => void {
    let hasEnded = false;
    let cancel = (): void => undefined;
    const next = (): void => {
      if (hasEnded) return;
      cancel = this.#clock.wake(this.#clock.now() + WATCH_MS, () => void this.report().then(next));
    };
    next();
    return () => {
      hasEnded = true;
      cancel();
    };
  }

  async #runAll(): Promise<ReadinessReport> {
    const checks = await Promise.all([...this.#checks.values()].map((check) => this.#run(check)));
    for (const result of checks) this.#logChange(result);
    return { isReady: checks.every(({ reason }) => reason === null), checks };
  }

  async #run(check: ReadinessCheck): Promise<ReadinessResult> {
    let reason: string | null = TIMED_OUT;
    const running = this.#pending.get(check) ?? this.#begin(check);
    await waitAtMost(
      this.#clock,
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
      if (!this.#reasons.has(name)) this.#log.error('a readiness check failed', { check: name, error });
      return thrown;
    }
  }

  #logChange({ name, reason }: ReadinessResult): void {
    if ((this.#reasons.get(name) ?? null) === reason) return;
    if (reason === null) {
      this.#reasons.delete(name);
      this.#log.info('a readiness check holds again', { check: name });
    } else {
      this.#reasons.set(name, reason);
      this.#log.error('this process is not ready', { check: name, reason });
    }
  }
}
