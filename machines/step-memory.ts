// The input of a step, what it remembers while it runs, its output to its agent run, and its further attempts.

import type { ApprovalBook, ApprovalObligation } from '../src/core/contract/run/approval.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Account, Amounts } from '../src/core/contract/run/budget.js';
import type { SeenProposal } from '../src/core/contract/run/entry.js';
import type { JsonObject } from '../src/core/contract/json.js';
import type { Label } from '../src/core/contract/policy/labels.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { Exposure } from '../src/core/contract/run/response.js';
import { childRunId, type RunContext } from '../src/core/contract/run/run-context.js';
import { executionFault, type Authorization } from '../src/core/step/authorization.js';
import type { Policy } from '../src/core/policy/policy.js';
import type { StepDraft } from '../src/core/step/check-phases.js';
import { LATEST_TIMESTAMP_MS } from '../src/core/contract/shapes.js';
import { retryAttempt, mediatedContext, requestHash, type Attempt } from '../src/core/step/mediated-request.js';
import type { ExecutionCause } from '../src/core/contract/fault.js';
import type { DoneEvent, RunOutput } from './run.js';

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

// The attempts at an action (C54), and the requests that they leave unknown or that can be repeated.

/** Schedules the next attempt. The delay doubles with each attempt. */
export function scheduleRetry(step: StepMemory, { output }: DoneEvent, policy: Policy): Partial<StepMemory> {
  const pause = policy.retries.backoff_ms * 2 ** (step.attempts - 1);
  const from = output.done?.at ?? step.received_at;
  const at = new Date(Math.min(Date.parse(from) + pause, LATEST_TIMESTAMP_MS)).toISOString();
  return { next_attempt: { reason: output.done?.cause ?? 'INTERNAL', at }, ...openRequests(step, output, policy) };
}

/** The requests of a failed attempt that may have had an effect. */
export function openRequests(step: StepMemory, output: RunOutput, policy: Policy): Partial<StepMemory> {
  const unknown = findUnknownRequest(step, output, policy);
  const repeat = output.done?.cause === 'REPEATABLE' ? repeatableRequest(step, policy) : (step.repeat ?? null);
  return repeat === null ? { unknown } : { unknown, repeat };
}

/** C95: the key under which an attempt may have had its effect, for later requests for the same. */
function repeatableRequest(step: StepMemory, policy: Policy): RepeatableRequest | null {
  const request_hash = stepRequestHash(step, policy);
  const idempotency_key = repeatedKey(step, policy) ?? childRunId(step.agent.run_id, step.mediated_runs + 1);
  return request_hash === null ? null : { request_hash, idempotency_key };
}

/** C95: the key of an earlier request for the same that may have had its effect, or null. */
export function repeatedKey(step: StepMemory, policy: Policy): string | null {
  if (step.repeatable === undefined || step.repeatable.length === 0) return null;
  const hash = stepRequestHash(step, policy);
  return step.repeatable.find(({ request_hash }) => request_hash === hash)?.idempotency_key ?? null;
}

/** D8: an outcome that one attempt left unknown stays unknown after the next attempt, unless that one was done. */
export const findUnknownRequest = (step: StepMemory, { done }: RunOutput, policy: Policy): string | null =>
  done?.cause === 'OUTCOME_UNKNOWN' ? stepRequestHash(step, policy) : step.unknown;

/** S4-66 to S4-69: the next attempt uses the next ordinal of the agent, and is a child of the first attempt. */
export function nextAttempt(step: StepMemory, policy: Policy): Attempt {
  const run = mediatedContext(firstAttemptParts(step), policy);
  const run_id = childRunId(step.agent.run_id, step.mediated_runs + step.attempts + 1);
  const reason = step.next_attempt?.reason ?? 'INTERNAL';
  return retryAttempt(run, run_id, step.attempts, step.mediated_run_id, { reason, key: repeatedKey(step, policy) });
}

/** Ends the step with the failure of its last attempt, because no caller waits for another one. */
export function abandonRetry({ next_attempt }: StepMemory): Partial<StepMemory> {
  const cause = (next_attempt?.reason ?? 'INTERNAL') as ExecutionCause;
  return { next_attempt: null, fault: executionFault(cause), phase_failed_at: 'EXECUTE' };
}

/** The hash of the step's request, as in its mediated runs. */
export function stepRequestHash(step: StepMemory, policy: Policy): string | null {
  // Stryker disable next-line StringLiteral: neither name is an action
  const definition = policy.catalogue.action(step.action ?? '');
  const args = step.authorization.args ?? step.args ?? {};
  return definition === undefined
    ? null
    : requestHash(definition, args, mediatedContext(firstAttemptParts(step), policy));
}

/** The parts from which the run of the first attempt is built. */
const firstAttemptParts = ({ agent, action, mediated_runs }: StepMemory) => ({
  agent,
  action,
  mediated_run_id: childRunId(agent.run_id, mediated_runs + 1),
});
