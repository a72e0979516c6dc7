// What the step machine computes: its input, what it remembers while it runs, its attempts, the stages of AUTHORIZE,
// and its output to its agent run.

import type { ApprovalBook, ApprovalObligation } from '../src/core/contract/run/approval.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Account, Amounts, BudgetKind } from '../src/core/contract/run/budget.js';
import type { SeenProposal } from '../src/core/contract/run/entry.js';
import type { JsonObject } from '../src/core/contract/json.js';
import type { Label } from '../src/core/contract/policy/labels.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { Exposure } from '../src/core/contract/run/response.js';
import { childRunId, type RunContext } from '../src/core/contract/run/run-context.js';
import {
  UNDECIDED_AUTHORIZATION,
  type Authorization,
  approvalSubject,
  executionFault,
  authorizeLane,
  authorizeWithFacts,
  type AuthorizationSubject,
} from '../src/core/step/authorization.js';
import type { Policy } from '../src/core/policy/policy.js';
import { type StepDraft, UNKNOWN_IDENTITY } from '../src/core/step/check-phases.js';
import { dropSuspendedVotes } from './approval-ballot.js';
import type { Emission } from './emission.js';
import { LATEST_TIMESTAMP_MS } from '../src/core/contract/shapes.js';
import { amountsOf, lackingKind } from '../src/core/run/budget-account.js';
import {
  retryAttempt,
  mediatedContext,
  requestHash,
  type Attempt,
  isIdempotent,
  resultLabel,
  privilegedRequest,
} from '../src/core/step/mediated-request.js';
import type { ExecutionCause } from '../src/core/contract/fault.js';
import type { DoneEvent, RunOutput } from './run.js';
import type { GatheredFacts } from '../src/core/contract/run/effect.js';
import type { Verdict } from '../src/core/policy/verdict.js';

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
  approvals:
    input.approvals.entries.length === 0 ? input.approvals : dropSuspendedVotes(input.approvals, input.overlay),
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

// Computes what a step uses, reads and leaves unknown, and whether a failed action is retried (C54).

/** The amounts that the step itself has used; its time and its payload were charged when it started. */
export const spentAmounts = ({ attempts, result_ref, explanation_ref }: StepMemory): Amounts => {
  const bytes = (result_ref?.byte_size ?? 0) + (explanation_ref?.byte_size ?? 0);
  return amountsOf({ steps: 1, tool_calls: attempts, bytes });
};

/** The label that the agent gets from this step; null if the step has read nothing. */
export function readLabel(step: StepMemory, policy: Policy): Label | null {
  const { catalogue } = policy;
  // Stryker disable next-line StringLiteral: neither name is an action
  const definition = catalogue.action(step.action ?? '');
  if (definition === undefined || step.attempts === 0) return null;
  const args = step.args ?? {};
  const request = privilegedRequest(
    definition,
    args,
    mediatedContext(firstAttemptParts(step), policy),
    catalogue,
    step.label,
  );
  return resultLabel(definition, args, request, catalogue);
}

/** Whether a failed action is retried: it must be retryable and idempotent, and policy and budget must permit it. */
export function canRetry(step: StepMemory, { state, end }: RunOutput, policy: Policy): boolean {
  const { catalogue, retries } = policy;
  // Stryker disable next-line StringLiteral: neither name is an action
  const definition = catalogue.action(step.action ?? '');
  return (
    !step.no_retries &&
    state === 'failed' &&
    end.error?.retryable === true &&
    step.attempts <= retries.max &&
    definition !== undefined &&
    // A record that was settled as not written can never be written under this key; the agent may propose it anew.
    !(definition.run_kind === 'db_write' && end.reason === 'INTERRUPTED') &&
    isIdempotent(definition, step.args ?? {}, catalogue) &&
    findExhaustedBudget(step.account, step.attempts + 1) === null
  );
}

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

// AUTHORIZE of one step, stage by stage. The step machine, `policy simulate` and `policy explain` use these functions,
// so that the order of the stages exists once:
//
//   start:  lane, overlay, case, budget (`STEP_CHECKS`), and whatever needs no facts
//   facts:  paths, quota, unknown outcomes, approval
//   ending: the run was cancelled before the facts arrived
//
// The budget is last of the first stage: an agent without budget learns first that a lane denies it.

/** What starts a stage. */
type AuthorizationStage =
  | { readonly kind: 'start'; readonly account: Account }
  | { readonly kind: 'facts'; readonly facts: GatheredFacts | null }
  | { readonly kind: 'ending' };

/** Runs one stage. Returns no verdict if facts are needed, or if an action without a run of its own is allowed. */
export function authorizeStep(step: AuthorizationSubject, stage: AuthorizationStage, policy: Policy): Authorization {
  switch (stage.kind) {
    case 'start': {
      const runs = isPrivileged(step, policy) ? 1 : 0;
      return authorizeLane(step, policy, findExhaustedBudget(stage.account, runs));
    }
    case 'facts':
      return authorizeWithFacts(step, stage.facts, policy);
    case 'ending':
      return { ...step.authorization, verdict: RUN_ENDING_DENIAL };
  }
}

/** Whether the action of the step needs a mediated run. */
export const isPrivileged = ({ action }: Pick<AuthorizationSubject, 'action'>, { catalogue }: Policy): boolean =>
  // Stryker disable next-line StringLiteral: neither name is an action
  catalogue.action(action ?? '')?.run_kind !== null;

/** The verdict on a step whose agent run is ending. */
export const RUN_ENDING_DENIAL: Verdict = { decision: 'deny', rule_id: 'lifecycle.run_ending', cause: 'LIFECYCLE' };

/**
 * The first budget kind that is exhausted for a step with `runs` mediated runs, or null. A step needs one step, its
 * runs, and something left of time, bytes and limited tokens.
 */
export function findExhaustedBudget(account: Account, runs: number): BudgetKind | null {
  const needed = { steps: 1, tool_calls: runs, wall_ms: 1, bytes: 1, tokens: 1 };
  return lackingKind(account, needed);
}
