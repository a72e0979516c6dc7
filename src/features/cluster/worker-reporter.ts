// A worker reports itself to the list of workers when it starts, and then every second: it may have joined again as
// another worker, and the emergency overlay may have changed.

import type { RunningReporter, StartReporter, WorkerReporterOptions } from '../../engine/ports/ledger/cluster.js';

/** Interval between two reports, in ms. */
export const REPORT_MS = 1_000;

export class WorkerReporter implements RunningReporter {
  readonly #options: WorkerReporterOptions;
  #address: string | null = null;
  #cancelTimer = (): void => undefined;
  #last: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #closed = false;

  constructor(options: WorkerReporterOptions) {
    this.#options = options;
  }

  /** Reports now and every second. Resolves after the first report, whether it succeeds or not. */
  async start(): Promise<void> {
    await this.#report();
  }

  serveAt(address: string): void {
    this.#address = address;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    await this.#last;
    await this.#options.directory.close();
  }

  #report(): Promise<void> {
    this.#last = this.#send();
    return this.#last;
  }

  async #send(): Promise<void> {
    const { directory, overlay, worker, refuses, laterTrees, clock, log } = this.#options;
    const fact = overlay.current();
    try {
      const overlay_epoch = fact === null ? 0 : fact.epoch;
      const state = { refuses: refuses(), later_trees: laterTrees() };
      await directory.report({ ...worker, ...state, address: this.#address, overlay_epoch });
      this.#hasFailed = false;
    } catch (error) {
      // Once for each outage: the engine logs its own failures.
      if (!this.#hasFailed) log.warn('this worker cannot report itself to the database', { error });
      this.#hasFailed = true;
    }
    if (!this.#closed) this.#cancelTimer = clock.wake(clock.now() + REPORT_MS, () => void this.#report());
  }
}

export const startReporter: StartReporter = async (options) => {
  const reporter = new WorkerReporter(options);
  await reporter.start();
  return reporter;
};
