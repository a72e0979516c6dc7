// The input of a step, what it remembers while it runs, and its output to its agent run.

import type { ApprovalBook, ApprovalObligation } from '../src/core/contract/run/approval.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Account, Amounts } from '../src/core/contract/run/budget.js';
import type { SeenProposal } from '../src/core/contract/run/entry.js';
import type { JsonObject } from '../src/core/contract/json.js';
import type { Label } from '../src/core/contract/policy/labels.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { Exposure } from '../src/core/contract/run/response.js';
import { childRunId, type RunContext } from '../src/core/contract/run/run-context.js';
import { approvalSubject } from '../src/core/step/approval-subject.js';
import { UNDECIDED_AUTHORIZATION, type Authorization } from '../src/core/step/authorization.js';
import type { Policy } from '../src/core/policy/policy.js';
import { type StepDraft } from '../src/core/step/step-draft.js';
import { UNKNOWN_IDENTITY } from '../src/core/step/validate-schema.js';
import { dropSuspendedVotes } from './approval-ballot.js';
import type { Emission } from './emission.js';

export interface StepInput {
  /** The agent run that proposes. */
  readonly agent: RunContext;
  readonly exposure: Exposure;
  readonly input_id: string;
  readonly step_index: number;
  readonly received_at: string;
  readonly payload: ArtifactRef;
  /** Null for a payload over the limit (C80). */
  readonly raw: Uint8Array | null;
  readonly seen: SeenProposal | null;
  readonly recorded_response: string | null;
  /** Number of mediated runs that the agent has had; the next ordinal is one more. */
  readonly mediated_runs: number;
  readonly account: Account;
  readonly label: Label;
  readonly approvals: ApprovalBook;
  readonly unsettled: readonly string[];
  /** Requests that failed and may have had their effect, with their keys (C95). */
  readonly repeatable?: readonly RepeatableRequest[];
  readonly overlay: OverlayFact | null;
}

/** A request for an idempotent action that may have had its effect: the next one uses the same key (C95). */
export interface RepeatableRequest {
  readonly request_hash: string;
  readonly idempotency_key: string;
}

export interface StepMemory extends StepDraft, Omit<StepInput, 'raw'> {
  readonly authorization: Authorization;
  readonly result: JsonObject | null;
  readonly result_ref: ArtifactRef | null;
  /** References to what its mediated run has produced. */
  readonly produced?: readonly ArtifactRef[];
  /** The mediated run of the current or last attempt. */
  readonly mediated_run_id: string;
  /** Number of its mediated runs, whose ordinals are used. */
  readonly attempts: number;
  /** Why the last attempt failed, and when the next one is due; null unless the step waits for a retry. */
  readonly next_attempt: { readonly reason: string; readonly at: string } | null;
  /** Set if no caller waits for another attempt. */
  readonly no_retries: boolean;
  /** The pending requests that a FINISH waits for. */
  readonly awaited?: readonly string[];
  /** The request whose outcome is unknown, if an attempt left it unknown and no later attempt was done. */
  readonly unknown: string | null;
  /** The same for an attempt that can be repeated. */
  readonly repeat?: RepeatableRequest | null;
  /** What the tool says of its failure, if the agent sees it. */
  readonly explanation_ref?: ArtifactRef;
  readonly response: string | null;
}

/** The output of a step for its agent run. */
export interface StepOutput {
  readonly step: true;
  /** Number of its mediated runs. */
  readonly mediated: number;
  /** Denied by AUTHORIZE: these denials are counted (D5). */
  readonly denied: boolean;
  /** Rejected before AUTHORIZE: these proposals are counted too (C81). */
  readonly invalid: boolean;
  /** A successful FINISH ends the agent run. */
  readonly finished: boolean;
  readonly spent: Amounts;
  /** References to new content: what was written, or the agent's final response. */
  readonly produced: readonly ArtifactRef[];
  /** The label of what it has read, which the agent carries from now on; null if it has read nothing. */
  readonly read: Label | null;
  /** Hash of a request whose outcome is unknown. */
  readonly unknown: string | null;
  /** The request that can be repeated with its key; undefined if the step made none. */
  readonly repeat?: RepeatableRequest | null;
  /** The hash of a request that succeeded. */
  readonly succeeded?: string | null;
  /** The approval request for whose lack it was denied. */
  readonly requested: {
    readonly digest: string;
    readonly name: string;
    readonly at: string;
    /** What conditions ask of the approvers. */
    readonly obligation?: ApprovalObligation;
  } | null;
}

/** Written out: a thousand steps start per second, and spreading thirty members costs more than a phase. */
export const newStepMemory = (input: StepInput): StepMemory => ({
  raw: input.raw,
  text: null,
  value: null,
  payload_sha256: input.payload.hash_sha256,
  seen: input.seen,
  identity: UNKNOWN_IDENTITY,
  action: null,
  args: null,
  args_summary: null,
  replay_of: null,
  fault: null,
  phase_failed_at: null,
  agent: input.agent,
  exposure: input.exposure,
  input_id: input.input_id,
  step_index: input.step_index,
  received_at: input.received_at,
  payload: input.payload,
  recorded_response: input.recorded_response,
  mediated_runs: input.mediated_runs,
  account: input.account,
  label: input.label,
  approvals: dropSuspendedVotes(input.approvals, input.overlay),
  unsettled: input.unsettled,
  ...(input.repeatable === undefined ? {} : { repeatable: input.repeatable }),
  overlay: input.overlay,
  mediated_run_id: childRunId(input.agent.run_id, input.mediated_runs + 1),
  authorization: UNDECIDED_AUTHORIZATION,
  result: null,
  result_ref: null,
  produced: [],
  attempts: 0,
  next_attempt: null,
  no_retries: false,
  awaited: [],
  unknown: null,
  response: null,
});

export const requestedApproval = (step: StepMemory, policy: Policy) => {
  const { verdict, digest, obligation } = step.authorization;
  if (verdict?.cause !== 'APPROVAL_REQUIRED' || digest === null) return null;
  const requested = { digest, name: approvalSubject(step, policy), at: step.received_at };
  return obligation === undefined ? requested : { ...requested, obligation };
};

export const markEmission = ({ agent, identity, step_index, payload }: StepMemory): Emission => ({
  type: 'mark',
  mark: {
    root_run_id: agent.root_run_id,
    proposal_id: (identity.proposal_id ?? '').toLowerCase(),
    run_id: agent.run_id,
    step_index,
    payload_sha256: payload.hash_sha256,
    seq: 0,
  },
});
