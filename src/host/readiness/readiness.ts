// Whether this process can do all its work now, as a list of named checks. A service adds checks of its own. The first
// report loads what runs the checks.

import { usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import type { ReadinessCheck, ReadinessReport, ReadinessReporter } from './readiness-reporter.js';
import { LazyPart } from '../lazy-part.js';

/** Interval between two reports without a request, in ms. */
const WATCH_MS = 5_000;
const NAME = /^[a-z][a-z0-9-]{0,39}$/;

interface ReadinessParts {
  /** The names of the standard checks, which no other check may take. */
  readonly standardNames: readonly string[];
  /** Creates what runs the standard checks and `added`. */
  readonly openReporter: (added: ReadonlyMap<string, ReadinessCheck>) => Promise<ReadinessReporter>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The checks of one process. */
export class Readiness {
  readonly #parts: ReadinessParts;
  readonly #added = new Map<string, ReadinessCheck>();
  readonly #reporter: LazyPart<ReadinessReporter>;
  #running: Promise<ReadinessReport> | null = null;

  constructor(parts: ReadinessParts) {
    this.#parts = parts;
    this.#reporter = new LazyPart(() => parts.openReporter(this.#added));
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
    for (const check of checks) this.#added.set(check.name, check);
    return () => {
      for (const { name } of checks) this.#added.delete(name);
    };
  }

  /** Whether there is a check of this name. */
  has(name: string): boolean {
    return this.#added.has(name) || this.#parts.standardNames.includes(name);
  }

  /** Runs every check. Concurrent callers share one report. Rejects only if the checks cannot be loaded. */
  report(): Promise<ReadinessReport> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Logs what changes, also without a request for a report. @returns a function that ends it */
  watch(): () => void {
    const { clock, log } = this.#parts;
    let hasEnded = false;
    let cancel = (): void => undefined;
    const look = async (): Promise<void> => {
      try {
        await this.report();
      } catch (error) {
        log.error('the readiness checks cannot be loaded', { error });
      }
      next();
    };
    const next = (): void => {
      if (hasEnded) return;
      cancel = clock.wake(clock.now() + WATCH_MS, () => void look());
    };
    next();
    return () => {
      hasEnded = true;
      cancel();
    };
  }

  async #runAll(): Promise<ReadinessReport> {
    const reporter = await this.#reporter.get();
    return reporter.report();
  }
}
