import type { GateFinding, GateVerdict } from '../contract/session.js';

/** What a reviewer must judge: whether the output of a phase is what the phase asked for. */
export interface ReviewOrder {
  readonly spec_id: string;
  readonly session_id: string;
  readonly phase_id: string;
  readonly step_id: string;
  readonly gate_attempt_id: string;
  /** The case whose sandbox contains the output; null if the session has none. */
  readonly case_id: string | null;
  readonly phase: { readonly title: string; readonly tasks: readonly ReviewedTask[] };
  /** The spec's instruction to the reviewer. */
  readonly instruction: string | null;
  /** Sandbox paths (`/sandbox/...`) that the agent's runs in this phase have changed, up to a thousand: a hint. */
  readonly files_touched: readonly string[];
}

export interface ReviewedTask {
  readonly id: string;
  readonly title: string;
  readonly status: string;
  /**
   * The instruction to the agent, and the acceptance criteria of the spec. A verification has neither. A task also has
   * neither if its texts would exceed the limit together with those of earlier tasks.
   */
  readonly instruction?: string;
  readonly acceptance?: readonly string[];
}

/** The result of a review: a verdict with its findings. */
export interface Review {
  readonly verdict: GateVerdict;
  readonly findings: readonly GateFinding[];
  readonly summary: string | null;
}

export interface Reviewer {
  /**
   * Reviews once. Any failure of the review is the verdict `fail`, with a finding that states it.
   * @throws NotExecuted if this machine cannot start a review, which must not count against the work
   * @throws `signal.reason` if the signal is aborted; there is no verdict then
   */
  review(order: ReviewOrder, signal: AbortSignal): Promise<Review>;
}
