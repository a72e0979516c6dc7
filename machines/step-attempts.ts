// What a step uses up, learns and leaves behind; and whether what has failed is tried again (C54).

import type { Amounts } from '../src/contract/run/budget.js';
import type { Label } from '../src/contract/policy/labels.js';
import { childRunId } from '../src/contract/run/run-context.js';
import { LATEST_TIMESTAMP_MS } from '../src/contract/shapes.js';
import type { Policy } from '../src/policy/policy.js';
import { amountsOf } from '../src/run/budget.js';
import { executionFault } from '../src/step/authorization.js';
import { retryAttempt, mediatedContext, requestHash, type Attempt } from '../src/step/mediated-request.js';
import { isIdempotent, resultLabel, privilegedRequest } from '../src/step/privileged-request.js';
import type { ExecutionCause } from '../src/contract/fault.js';
import { findExhaustedBudget } from './authorize-step.js';
import type { DoneEvent, RunOutput } from './run.js';
import type { StepMemory } from './step-memory.js';

/** What the step has used up itself; its time and its payload were charged when it began. */
export const spentAmounts = ({ attempts, result_ref }: StepMemory): Amounts =>
  amountsOf({ steps: 1, tool_calls: attempts, bytes: result_ref?.byte_size ?? 0 });

/** What the agent knows from this step on. */
export function readLabel(step: StepMemory, policy: Policy): Label | null {
  const { catalogue } = policy;
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

/** Only what has failed, may be tried again, and does once what it does twice; as often as policy says. */
export function canRetry(step: StepMemory, { state, end }: RunOutput, policy: Policy): boolean {
  const { catalogue, retries } = policy;
  const definition = catalogue.action(step.action ?? '');
  return (
    !step.last &&
    state === 'failed' &&
    end.error?.retryable === true &&
    step.attempts <= retries.max &&
    definition !== undefined &&
    // A record that was settled as not written never will be, under this key: the agent may propose it anew.
    !(definition.run_kind === 'db_write' && end.reason === 'INTERRUPTED') &&
    isIdempotent(definition, step.args ?? {}, catalogue) &&
    findExhaustedBudget(step.account, step.attempts + 1) === null
  );
}

/** When the next attempt is due: the pause doubles with every one. */
export function scheduleRetry(step: StepMemory, { output }: DoneEvent, policy: Policy): Partial<StepMemory> {
  const pause = policy.retries.backoff_ms * 2 ** (step.attempts - 1);
  const from = output.done?.at ?? step.received_at;
  const at = new Date(Math.min(Date.parse(from) + pause, LATEST_TIMESTAMP_MS)).toISOString();
  return { again: { reason: output.done?.cause ?? 'INTERNAL', at }, unknown: findUnknownRequest(step, output, policy) };
}

/** D8: what one attempt has left unknown stays so whatever the next one came to, unless that was done. */
export const findUnknownRequest = (step: StepMemory, { done }: RunOutput, policy: Policy): string | null =>
  done?.cause === 'OUTCOME_UNKNOWN' ? stepRequestHash(step, policy) : step.unknown;

/** S4-66 to S4-69: the next ordinal of the agent, a child of the first attempt. */
export function nextAttempt(step: StepMemory, policy: Policy): Attempt {
  const run = mediatedContext(firstAttemptParts(step), policy);
  const run_id = childRunId(step.agent.run_id, step.mediated_runs + step.attempts + 1);
  return retryAttempt(run, run_id, step.attempts, step.mediated_run_id, step.again?.reason ?? 'INTERNAL');
}

/** What has failed has failed: nobody waits for another attempt. */
export function abandonRetry({ again }: StepMemory): Partial<StepMemory> {
  const cause = (again?.reason ?? 'INTERNAL') as ExecutionCause;
  return { again: null, fault: executionFault(cause), phase_failed_at: 'EXECUTE' };
}

/** The hash of the step's request, as its mediated runs carry it. */
export function stepRequestHash(step: StepMemory, policy: Policy): string | null {
  const definition = policy.catalogue.action(step.action ?? '');
  const args = step.authorization.args ?? step.args ?? {};
  return definition === undefined
    ? null
    : requestHash(definition, args, mediatedContext(firstAttemptParts(step), policy));
}

/** What the run of the first attempt is made of. */
const firstAttemptParts = ({ agent, action, mediated_runs }: StepMemory) => ({
  agent,
  action,
  mediated_run_id: childRunId(agent.run_id, mediated_runs + 1),
});
