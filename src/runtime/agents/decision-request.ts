// A request for a decision about an action that the caller executes itself, and the decision.

import type { JsonObject } from '../../core/contract/json.js';

/** For whom a decision is made. */
export interface DecisionCaller {
  readonly actor: string;
  /** The person behind the actor, who cannot approve what it requests. */
  readonly person?: string;
  readonly role: string;
  readonly lane?: string;
  readonly case?: string;
}

/** What a caller wants to do. */
export interface DecisionRequest extends DecisionCaller {
  /** The name of an external tool (`defineExternalTool`). */
  readonly tool: string;
  /** The input of the tool: what the decision is about. At most 256 KiB as JSON. */
  readonly input: JsonObject;
  /**
   * While a run of the caller lasts, an equal request with the same key gets the recorded decision, and another one
   * with it is refused.
   */
  readonly key?: string;
}

/** A decision that is recorded. */
export interface ActionDecision {
  readonly decision: boolean;
  /** Whether a person has to approve the action first: after the vote, an equal request is allowed. */
  readonly pending: boolean;
  /** The run whose outcome is reported with `Turnpike.report`; null unless the decision is `true`. */
  readonly call: string | null;
  /** The agent run that has the record, and the step in it; null if policy denied the agent run itself. */
  readonly run: string;
  readonly step: number | null;
  /** The rule that decided; null if another check did. */
  readonly rule: string | null;
  /** `ALLOWED`, `APPROVAL_PENDING`, `NOT_EXTERNAL`, `RUN_DENIED` or the error code of the step. */
  readonly code: string;
  /** A constant text. */
  readonly message: string;
}
