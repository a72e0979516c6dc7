// Counts the runs of one agent that were denied, failed or were cancelled, over all connections of its server. Each run
// has a limit of denials of its own, so the operator can limit how many runs follow.

import { isContinuable, type EndedRun } from './ended-run.js';
import type { OwnRun, RunGateway } from './run-gateway.js';

/** Runs whose end has not been seen; beyond the limit, the oldest is no longer observed. */
const OBSERVED_MAX = 4_096;

export class RunSuccession {
  readonly #gateway: Pick<RunGateway, 'ending'>;
  readonly #newRunsMax: number | null;
  readonly #observed = new Set<string>();
  #ended = 0;
  #last: EndedRun | null = null;

  /** @param newRunsMax the number of runs that may follow such ends; null for any number */
  constructor(gateway: Pick<RunGateway, 'ending'>, newRunsMax: number | null) {
    this.#gateway = gateway;
    this.#newRunsMax = newRunsMax;
  }

  /** Whether an agent may open another run after a denial, a failure or a cancellation at all. */
  get isAllowed(): boolean {
    return this.#newRunsMax !== 0;
  }

  /** Observes a run of the agent. */
  observe({ run_id, ending }: OwnRun): void {
    if (this.#newRunsMax === null) return;
    if (ending === null) this.#observed.add(run_id);
    else this.#count(ending);
    const [oldest] = this.#observed;
    if (this.#observed.size > OBSERVED_MAX && oldest !== undefined) this.#observed.delete(oldest);
  }

  /** @returns the last run that counts, if no other run may follow; else null */
  async findRefusal(): Promise<EndedRun | null> {
    if (this.#newRunsMax === null) return null;
    for (const run_id of [...this.#observed]) {
      const ending = await this.#gateway.ending(run_id);
      // Another connection may have counted it meanwhile.
      if (ending !== null && this.#observed.delete(run_id)) this.#count(ending);
    }
    return this.#ended > this.#newRunsMax ? this.#last : null;
  }

  #count(ending: EndedRun): void {
    if (isContinuable(ending)) return;
    this.#ended += 1;
    this.#last = ending;
  }
}
