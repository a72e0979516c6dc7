// Computes what a step uses, reads and leaves unknown, and whether a failed action is retried (C54).

import type { Amounts } from '../src/core/contract/run/budget.js';
import type { Label } from '../src/core/contract/policy/labels.js';
import { childRunId } from '../src/core/contract/run/run-context.js';
import { LATEST_TIMESTAMP_MS } from '../src/core/contract/shapes.js';
import type { Policy } from '../src/core/policy/policy.js';
import { amountsOf } from '../src/core/run/budget-account.js';
import { executionFault } from '../src/core/step/authorization.js';
import {
  retryAttempt,
  mediatedContext,
  requestHash,
  type Attempt,
} from '../src/core/step/requests/mediated-request.js';
import { isIdempotent, resultLabel, privilegedRequest } from '../src/core/step/requests/action-request.js';
import type { ExecutionCause } from '../src/core/contract/fault.js';
import { findExhaustedBudget } from './authorize-step.js';
import type { DoneEvent, RunOutput } from './run.js';
import type { RepeatableRequest, StepMemory } from './step-memory.js';

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
