import type { GateFinding, GateVerdict } from '../contract/session/session.js';

/** What a reviewer is asked to judge: whether what a phase made is what it was asked for. */
export interface ReviewOrder {
  readonly spec_id: string;
  readonly session_id: string;
  readonly phase_id: string;
  readonly step_id: string;
  readonly gate_attempt_id: string;
  /** Whose sandbox holds what was made; null where the session has none. */
  readonly case_id: string | null;
  readonly phase: { readonly title: string; readonly tasks: readonly ReviewedTask[] };
  /** What the spec tells the reviewer. */
  readonly instruction: string | null;
  /** Sandbox paths (`/sandbox/...`) that the agent's runs in this phase have changed, up to a thousand: a hint. */
  readonly files_touched: readonly string[];
}

export interface ReviewedTask {
  readonly id: string;
  readonly title: string;
  readonly status: string;
  /**
   * What the agent was told, and what the spec says it will be judged by. A verification has neither, nor has a task
   * whose words would be too many beside those of the tasks before it.
   */
  readonly instruction?: string;
  readonly acceptance?: readonly string[];
}

export interface Review {
  readonly verdict: GateVerdict;
  readonly findings: readonly GateFinding[];
  readonly summary: string | null;
}

export interface Reviewer {
  /**
   * Judges once. Whatever goes wrong in a review is the verdict `fail`, with a finding that says so.
   * @throws NotExecuted if this machine cannot begin one, which is nothing that could be held against the work
   * @throws `signal.reason` when the signal is aborted: then there is no verdict
   */
  review(order: ReviewOrder, signal: AbortSignal): Promise<Review>;
}
