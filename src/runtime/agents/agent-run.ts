import type { BudgetKind } from '../../contract/run/budget.js';
import type { StepResponse } from '../../contract/run/response.js';
import type { TaxonomyVersions } from '../../contract/shapes.js';
import type { TerminalState } from '../../contract/run/run-state.js';

export interface AgentOptions {
  readonly lane?: string;
  readonly role?: string;
  /** Who the agent is, for the audit; 3 to 120 characters. */
  readonly actor?: string;
  readonly case?: string;
  /** Further scope fields that a lane may require. */
  readonly scope?: Readonly<Record<string, string>>;
  readonly correlation?: string;
  /** The versions of the taxonomies that mapping or tagging work goes by (S4-30). */
  readonly taxonomy?: TaxonomyVersions;
  /** May only narrow what the policy shows (D6). */
  readonly exposure?: 'detailed' | 'decision';
  /** D3: an attached agent (the default) ends when this process does. */
  readonly link?: 'attached' | 'remote';
  /** Of a remote agent: how long it may be silent. Default 15 minutes. */
  readonly idleMs?: number;
  /** What the agent may use up at most; the policy may allow less. */
  readonly budget?: Partial<Record<BudgetKind, number>>;
  /** The prompts that the agent works from: at most 16, each of 4 MiB. The record of its run names them (S4-59). */
  readonly prompts?: readonly string[];
}

/** How an agent run ended. */
export interface RunEnding {
  readonly run_id: string;
  readonly state: TerminalState;
  /** Why: `finished`, `end_of_input`, the rule that denied, the error code that failed, the reason of a cancel. */
  readonly reason: string;
}

export interface SubmitOptions {
  /** The caller's own id of this request: sent again, it gets the recorded response and does nothing (D4). */
  readonly inputId?: string;
  /** Tokens that the agent has used since its last proposal; they are charged to its budget. */
  readonly tokens?: number;
  /** What the agent was asked with, at most 4 MiB: recorded with the case, and named by the record of the run. */
  readonly prompt?: string;
}

/** One agent's run, as its caller holds it. */
export interface AgentRun {
  readonly run_id: string;
  readonly root_run_id: string;
  readonly correlation_id: string;
  /**
   * Takes one raw payload through the nine phases. Proposals that come while one is under way wait their turn.
   * A refusal is a response, never an error. @throws RunError RUN_ENDED, AGENT_BUSY; UsageError
   */
  submit(raw: string | Uint8Array, options?: SubmitOptions): Promise<StepResponse>;
  /** The same, with the response as the JSON text whose hash the ledger holds. */
  respond(raw: string | Uint8Array, options?: SubmitOptions): Promise<string>;
  /** There are no more proposals: the run is completed as `end_of_input` unless it has ended before (D5). */
  end(): Promise<RunEnding>;
  /**
   * Cancels the run tree, children first (C53). @throws RunError INVALID_STATE_TRANSITION when it has ended; RUN_ENDED
   * when it continues after a restart, where only a new handle acts on it
   */
  cancel(reason: string): Promise<RunEnding>;
  /** The attached caller is gone: the run fails as INTERRUPTED (D3). */
  interrupt(): Promise<RunEnding>;
  readonly finished: Promise<RunEnding>;
}
