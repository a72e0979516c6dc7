import type { BudgetKind } from '../../core/contract/run/budget.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { TaxonomyVersions } from '../../core/contract/shapes.js';
import type { TerminalState } from '../../core/contract/run/run-context.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';

/** Options of an agent run: who acts, for which case, and within which limits. */
export interface AgentOptions {
  readonly lane?: string;
  readonly role?: string;
  /** The name of the agent in the audit; 3 to 120 characters. */
  readonly actor?: string;
  /** The person behind the actor, if it has another name: that person cannot approve what the agent requests. */
  readonly person?: string;
  readonly case?: string;
  /** Further scope fields that a lane may require. */
  readonly scope?: Readonly<Record<string, string>>;
  readonly correlation?: string;
  /** The versions of the taxonomies for mapping or tagging work (S4-30). */
  readonly taxonomy?: TaxonomyVersions;
  /** May only narrow what the policy shows (D6). */
  readonly exposure?: 'explained' | 'detailed' | 'decision';
  /** D3: an attached agent (the default) ends when this process does. */
  readonly link?: 'attached' | 'remote';
  /**
   * A key of the caller, 1 to 128 printable ASCII characters: the same key gives the same run, also after this process
   * has ended. The run is remote. Actor, person, role, lane and case must be the same, and so must each other option
   * that is given.
   */
  readonly key?: string;
  /** For a remote agent: the idle timeout in milliseconds. Default 15 minutes; with a key 7 days. */
  readonly idleMs?: number;
  /** The budget of the agent; the policy may allow less. */
  readonly budget?: Partial<Record<BudgetKind, number>>;
  /** The agent's prompts: at most 16, each of at most 4 MiB. The record of its run lists them (S4-59). */
  readonly prompts?: readonly string[];
  /**
   * The trace to which the run tree belongs. It decides nothing and is not recorded. Default: that of the calling code,
   * else one of its own.
   */
  readonly trace?: TraceCarrier;
}

/** How an agent run ended. */
export interface RunEnding {
  readonly run_id: string;
  readonly state: TerminalState;
  /**
   * The reason: `finished`, `end_of_input`, the rule that denied, the error code that failed, or the reason of a
   * cancel.
   */
  readonly reason: string;
}

/** Options of one submitted proposal. */
export interface SubmitOptions {
  /**
   * The caller's id of this request: a second request with it and the same payload gets the recorded response and has
   * no effect (D4). With another payload it is refused as IDEMPOTENCY_CONFLICT, and that is recorded.
   */
  readonly inputId?: string;
  /** The SHA-256 of the payload, of a caller that no longer has the payload: only a recorded response is returned. */
  readonly payloadSha256?: string;
  /** Tokens that the agent has used since its last proposal; charged to its budget. */
  readonly tokens?: number;
  /**
   * Waits until the log includes the entries of the step and the head file has a head that covers them, at most 10 s.
   * Then the submission throws IntegrationError NOT_INTEGRATED, which has the response. Default: the response comes
   * when the step is durable.
   */
  readonly integrated?: boolean;
  /** The prompt of this proposal, at most 4 MiB: recorded with the case and listed in the record of the run. */
  readonly prompt?: string;
  /** The event of a coding agent that this proposal is made of, without secrets: recorded like a prompt. */
  readonly hookEvent?: string;
  /** The trace context of the request. It decides nothing and is not recorded. Default: that of the calling code. */
  readonly trace?: TraceCarrier;
}

/** The handle of one agent run. */
export interface AgentRun {
  readonly run_id: string;
  readonly root_run_id: string;
  readonly correlation_id: string;
  /** Whether `startAgent` has found the run by its key. Absent: the caller gave none. */
  readonly resumed?: boolean;
  /**
   * Takes one raw payload through the nine phases. Proposals that arrive while one is in flight are queued. A rejected
   * or denied proposal is a response, never an error.
   * @see Agents in agents.ts, which creates the handles
   * @throws RunError RUN_ENDED, AGENT_BUSY, IDEMPOTENCY_CONFLICT; UsageError
   */
  submit(raw: string | Uint8Array, options?: SubmitOptions): Promise<StepResponse>;
  /** Like `submit`, but returns the response as the JSON text whose hash the ledger records. */
  respond(raw: string | Uint8Array, options?: SubmitOptions): Promise<string>;
  /** Declares the end of the input: the run is completed as `end_of_input` unless it has ended before (D5). */
  end(): Promise<RunEnding>;
  /**
   * Cancels the run tree, children first (C53).
   * @throws RunError INVALID_STATE_TRANSITION if it has ended; RUN_ENDED if it continues after a restart, which
   * requires a new handle
   */
  cancel(reason: string): Promise<RunEnding>;
  /** Reports that the attached caller is gone: the run fails as INTERRUPTED (D3). */
  interrupt(): Promise<RunEnding>;
  readonly finished: Promise<RunEnding>;
}
