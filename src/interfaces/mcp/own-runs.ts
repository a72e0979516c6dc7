// The own run of an agent: the run of its proposals that name no other. A connection remembers its own run; an agent of
// the stateless protocol has it in the store (stored-runs.ts).

import type { TraceCarrier } from '../../core/contract/trace-context.js';
import type { EndedRun } from './ended-run.js';
import type { OwnRun, RunGateway } from './run-gateway.js';
import type { RunSuccession } from './run-succession.js';

export interface OwnRuns {
  /** The own run, which may have ended; null before the first one. */
  current(): Promise<OwnRun | null>;
  /** Begins the run that follows `previous`, the current one. It has an ending if policy denied its start. */
  begin(previous: OwnRun | null, trace: TraceCarrier | undefined): Promise<OwnRun>;
  /**
   * Whether the operator lets a run follow `ended`, the end of the current one.
   * @returns the run that counts, if no other run may follow; else null
   */
  findRefusal(ended: EndedRun | null): Promise<EndedRun | null>;
}

/** The run of an earlier connection of the same agent, and the function that stores the id of a run. */
export interface StoredRun {
  readonly run_id: string | null;
  readonly keep: (run_id: string) => void;
}

interface ConnectionRunsOptions {
  readonly agentRuns: Pick<RunGateway, 'start'>;
  readonly succession: RunSuccession;
  /** The correlation id of the runs. */
  readonly correlation: string;
  readonly storedRun?: StoredRun | undefined;
}

/** The runs of one connection. */
export class ConnectionRuns implements OwnRuns {
  readonly #options: ConnectionRunsOptions;
  #own: OwnRun | null;

  constructor(options: ConnectionRunsOptions) {
    this.#options = options;
    const run_id = options.storedRun?.run_id ?? null;
    this.#own = run_id === null ? null : { run_id, ending: null };
    if (this.#own !== null) options.succession.observe(this.#own);
  }

  current(): Promise<OwnRun | null> {
    return Promise.resolve(this.#own);
  }

  async begin(_previous: OwnRun | null, trace: TraceCarrier | undefined): Promise<OwnRun> {
    const { agentRuns, succession, correlation, storedRun } = this.#options;
    const own = await agentRuns.start(correlation, trace);
    this.#own = own;
    succession.observe(own);
    if (own.ending === null) storedRun?.keep(own.run_id);
    return own;
  }

  findRefusal(): Promise<EndedRun | null> {
    return this.#options.succession.findRefusal();
  }
}
