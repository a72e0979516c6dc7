// RECORD and RESPOND as pure functions of the decided step.

import { findAction } from '../contract/policy/catalogue.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import type { JsonObject } from '../contract/json.js';
import type { Outcome, StepDecision } from '../contract/run/phase.js';
import type { Exposure, ResponseParts, StepError, StepResponse } from '../contract/run/response.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { StepTraceDraft } from '../contract/run/step-trace.js';
import type { Policy } from '../policy/policy.js';
import {
  IDENTITY_PHASES,
  newStepDraft,
  runCheckPhases,
  type StepDraft,
  recordedIdentity,
  type Identity,
} from './check-phases.js';
import { FAULTS, type Fault, messageOf } from '../contract/fault.js';
import { unprivilegedResult } from './mediated-request.js';
import { InvariantError } from '../errors.js';

/** A step whose decision and result are known. */
export interface ConcludedStep extends StepDraft {
  readonly agent: RunContext;
  readonly exposure: Exposure;
  readonly step_index: number;
  readonly received_at: string;
  readonly payload: ArtifactRef;
  readonly recorded_response: string | null;
  readonly result: JsonObject | null;
  readonly result_ref: ArtifactRef | null;
  /** What the tool says of its failure, if the agent sees it (C94). */
  readonly explanation_ref?: ArtifactRef;
  readonly attempts: number;
  readonly mediated_run_id: string;
  readonly response: string | null;
}

/** Returns the text of the response; for a repeated proposal, the recorded response unchanged (C19). */
export function composeResponse(step: ConcludedStep): string {
  if (step.replay_of !== null && step.recorded_response !== null) return step.recorded_response;
  return respond(responseParts(step), step.exposure);
}

/** Returns the result of THINK or FINISH; null for an action that needs a mediated run. */
export function resultWithoutEffect({ action, args }: Pick<StepDraft, 'action' | 'args'>): JsonObject | null {
  const definition = findAction(action ?? '');
  return definition === undefined ? null : unprivilegedResult(definition, args ?? {});
}

/** The trace of the step (S0-56 to S0-66). Requires that the response has been composed. */
export function composeTrace(step: ConcludedStep, policy: Policy): StepTraceDraft {
  const { identity, fault, seen } = step;
  const { action, schema_version } = recordedIdentity(identity, policy);
  const repeated = step.replay_of === null ? null : seen;
  const outcome = repeated?.outcome ?? outcomeOf(fault);
  return {
    run_id: step.agent.run_id,
    step_index: step.step_index,
    proposal_id: identity.proposal_id,
    schema_version,
    action,
    args_summary: step.args_summary,
    outcome,
    decision: stepDecisionOf(outcome),
    error_code: repeated === null ? (fault?.code ?? null) : repeated.error_code,
    ...(fault?.explanation === undefined ? {} : { explanation: fault.explanation }),
    ...(step.explanation_ref === undefined ? {} : { explanation_ref: step.explanation_ref }),
    cause: fault?.cause ?? null,
    rule_id: fault?.rule_id ?? null,
    phase_failed_at: step.phase_failed_at,
    received_at: step.received_at,
    completed_at: '',
    reasoning: identity.reasoning,
    payload: step.payload,
    result: step.result_ref,
    mediated_run_id: step.attempts > 0 ? step.mediated_run_id : null,
    response_sha256: sha256(step.response ?? ''),
    replay_of: step.replay_of,
  };
}

/**
 * Returns the response of a step that could not be recorded (D2, C35): the only response that is not in the ledger. It
 * holds the proposal id and action if the payload has valid ones, and never a result.
 */
export function auditFailureResponse(payload: Uint8Array, policy: Policy, exposure: Exposure): string {
  const draft = runCheckPhases(newStepDraft(payload, '', null), policy, IDENTITY_PHASES);
  const fault: Fault = { code: 'AUDIT_FAILURE', cause: null, rule_id: 'record.unavailable' };
  return respond(responseParts({ identity: draft.identity, fault, result: null }), exposure);
}

/** Whether every check has passed: a failed execution was still allowed (C01). */
export const stepDecisionOf = (outcome: Outcome): StepDecision =>
  outcome === 'SUCCESS' || outcome === 'EXECUTION_ERROR' ? 'ALLOW' : 'DENY';

const outcomeOf = (fault: Fault | null): Outcome => (fault === null ? 'SUCCESS' : FAULTS[fault.code].outcome);

interface EndedStep {
  readonly identity: Identity;
  /** The fault that stopped the step; null if it succeeded. */
  readonly fault: Fault | null;
  /** The result of a successful action; ignored for a failed step. */
  readonly result: JsonObject | null;
  /** What the tool says of its failure. */
  readonly explanation_ref?: ArtifactRef;
}

/**
 * The members of the one response of a step (S0-72, C02): an error exactly if it failed, a result exactly if it
 * succeeded. The response omits cause and rule of a fault; its message is the constant one for them (C01). Only the
 * exposure `explained` shows its explanation (C94).
 *
 * @throws InvariantError for a step that neither failed nor has a result
 */
export function responseParts({ identity, fault, result, explanation_ref }: EndedStep): ResponseParts {
  const { proposal_id, action } = identity;
  if (fault !== null) {
    const explanation = explanation_ref === undefined ? (fault.explanation ?? null) : attachedText(explanation_ref);
    const shown = { error_code: fault.code, message: messageOf(fault) };
    const error = explanation === null ? shown : { ...shown, explanation };
    return { proposal_id, action, outcome: FAULTS[fault.code].outcome, result: null, error };
  }
  if (result === null) throw new InvariantError('a step succeeded without a result');
  return { proposal_id, action, outcome: 'SUCCESS', result, error: null };
}

/** RESPOND: the response as compact JSON, with its keys in the order of the contract (S0-69). */
export const respond = (parts: ResponseParts, exposure: Exposure): string =>
  JSON.stringify(buildResponse(parts, exposure));

/** The response for an agent of the given exposure, with the keys in the order of the contract. */
export function buildResponse(parts: ResponseParts, exposure: Exposure): StepResponse {
  const { proposal_id, action, outcome, result, error } = parts;
  if (exposure === 'decision') return { proposal_id, action, decision: stepDecisionOf(outcome), result };
  return { proposal_id, action, outcome, result, error: error === null ? null : shownError(error, exposure) };
}

function shownError({ error_code, message, explanation = null }: StepError, exposure: Exposure): StepError {
  return exposure === 'explained' ? { error_code, message, explanation } : { error_code, message };
}

// What a tool says of its failure, while a step composes its response (C94). The machines carry the reference only. The
// text is attached to the reference for one macrostep, so that no snapshot of a tree holds content of a case.

const attachedTexts = new WeakMap<ArtifactRef, string>();

/** @param ref the reference in the input that brings the text */
export function attachText(ref: ArtifactRef, text: string): ArtifactRef {
  attachedTexts.set(ref, text);
  return ref;
}

/** @throws InvariantError after the macrostep of the input that brought the text */
function attachedText(ref: ArtifactRef): string {
  const text = attachedTexts.get(ref);
  if (text === undefined)
    throw new InvariantError('the explanation of a tool is needed after the input that brought it');
  return text;
}
