// A worker reports itself to the list of workers when it starts, and then every second: it may have joined again as
// another worker, and the emergency overlay may have changed.

import { BackgroundJob } from '../../engine/background-job.js';
import type { RunningReporter, StartReporter, WorkerReporterOptions } from '../../engine/ports/ledger/cluster.js';

/** Interval between two reports, in ms. */
export const REPORT_MS = 1_000;

export class WorkerReporter implements RunningReporter {
  readonly #options: WorkerReporterOptions;
  readonly #job: BackgroundJob;
  #address: string | null = null;
  #hasFailed = false;

  constructor(options: WorkerReporterOptions) {
    this.#options = options;
    this.#job = new BackgroundJob({
      clock: options.clock,
      run: () => this.#report(),
      onFailed: (error) => {
        // Once for each outage: the engine logs its own failures.
        if (!this.#hasFailed) options.log.warn('this worker cannot report itself to the database', { error });
        this.#hasFailed = true;
        return REPORT_MS;
      },
    });
  }

  /** Reports now and every second. Resolves after the first report, whether it succeeds or not. */
  async start(): Promise<void> {
    this.#job.start(0);
    await this.#job.settled();
  }

  serveAt(address: string): void {
    this.#address = address;
  }

  async close(): Promise<void> {
    this.#job.close();
    await this.#job.settled();
    await this.#options.directory.close();
  }

  async #report(): Promise<number> {
    const { directory, overlay, worker, refuses, laterTrees } = this.#options;
    const fact = overlay.current();
    const overlay_epoch = fact === null ? 0 : fact.epoch;
    const state = { refuses: refuses(), later_trees: laterTrees() };
    await directory.report({ ...worker, ...state, address: this.#address, overlay_epoch });
    this.#hasFailed = false;
    return REPORT_MS;
  }
}

export const startReporter: StartReporter = async (options) => {
  const reporter = new WorkerReporter(options);
  await reporter.start();
  return reporter;
};
