import { authorizedResult } from '../../machines/caller-runs/caller-run.js';
import { messageOf, type Fault } from '../core/contract/fault.js';
import { HASHED_PREFIX } from '../core/contract/free-text.js';
import { sha256 } from '../core/contract/hash.js';
import type { JsonObject } from '../core/contract/json.js';
import type { Exposure } from '../core/contract/run/response.js';
import type { StepTrace } from '../core/contract/run/step-trace.js';
import { LedgerError } from '../core/errors.js';
import type { Policy } from '../core/policy/policy.js';
import { IDENTITY_PHASES, newStepDraft, runCheckPhases } from '../core/step/check-phases.js';
import { resultWithoutEffect, respond } from '../core/step/concluded-step.js';

export interface RecordedStep {
  readonly trace: StepTrace;
  /** The content of `trace.payload`, and of `trace.result` if there is one. */
  readonly payload: Uint8Array;
  readonly result: Uint8Array | null;
  /** The content of `trace.explanation_ref`, if there is one. */
  readonly explanation: Uint8Array | null;
  readonly exposure: Exposure;
  readonly policy: Policy;
}

/**
 * Rebuilds the response of a recorded step, byte for byte, from its trace and artifacts (D6).
 * @throws LedgerError LEDGER_TAMPERED if the rebuilt response does not match the hash in the trace
 */
export function rebuildResponse(step: RecordedStep): string {
  const { trace, exposure } = step;
  const { proposal_id, outcome, error_code } = trace;
  const explanation = explanationTextOf(step) ?? trace.explanation ?? null;
  const action = responseAction(step);
  const cause = trace.cause as Fault['cause'];
  const error =
    error_code === null ? null : { error_code, message: messageOf({ code: error_code, cause }), explanation };
  const response = respond({ proposal_id, action, outcome, result: responseResult(step), error }, exposure);
  if (sha256(response) !== trace.response_sha256) {
    throw new LedgerError({
      code: 'LEDGER_TAMPERED',
      message: `the response of step ${trace.step_index} of ${trace.run_id} cannot be made again from its artifacts`,
    });
  }
  return response;
}

const explanationTextOf = ({ trace, explanation }: RecordedStep): string | null =>
  trace.explanation_ref === undefined || explanation === null ? null : Buffer.from(explanation).toString('utf8');

/** A trace names an unknown action by its hash; the response has the name from the payload. */
function responseAction({ trace: { action, payload: ref }, payload, policy }: RecordedStep): string | null {
  if (action?.startsWith(HASHED_PREFIX) !== true) return action;
  return runCheckPhases(newStepDraft(payload, ref.hash_sha256, null), policy, IDENTITY_PHASES).identity.action;
}

function responseResult({ trace, payload, result, policy }: RecordedStep): JsonObject | null {
  if (trace.outcome !== 'SUCCESS') return null;
  if (result !== null) return JSON.parse(Buffer.from(result).toString('utf8')) as JsonObject;
  // A mediated run without a result in its step is one whose action the caller executes (U-08).
  if (trace.mediated_run_id !== null) return authorizedResult(trace);
  return resultWithoutEffect(runCheckPhases(newStepDraft(payload, trace.payload.hash_sha256, null), policy));
}
