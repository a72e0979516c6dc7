import type { ArtifactRef } from '../contract/artifact-ref.js';
import { FAULTS, messageOf, type Fault } from '../contract/fault.js';
import type { JsonObject } from '../contract/json.js';
import { buildResponse, type Exposure, type ResponseParts } from '../contract/run/response.js';
import { InvariantError } from '../errors.js';
import { attachedText } from './explanation/attached-explanation.js';
import type { Identity } from './validate-schema.js';

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
