import Type, { type Static } from 'typebox';
import { FAULT_CODES, type FaultCode } from '../fault.js';
import type { JsonObject } from '../json.js';
import { stepDecisionOf, DECISIONS, OUTCOMES, type Outcome } from './phase.js';
import { closed, Nullable, OneOf } from '../shapes.js';

/** How much of the outcome an agent sees: the five keys of S0-72, or only the decision (S2-10, S2-12; C01). */
export const EXPOSURES = ['detailed', 'decision'] as const;
/** One of `EXPOSURES`. */
export type Exposure = (typeof EXPOSURES)[number];

const Result = Type.Object({}, { additionalProperties: true });
const ErrorBody = Type.Object({ error_code: OneOf(FAULT_CODES), message: Type.String() }, closed);

/** S0-72: `error` is null exactly on success, `result` is null exactly on failure. The order of the keys is fixed. */
export const DetailedResponse = Type.Object(
  {
    proposal_id: Nullable(Type.String()),
    action: Nullable(Type.String()),
    outcome: OneOf(OUTCOMES),
    result: Nullable(Result),
    error: Nullable(ErrorBody),
  },
  closed,
);
export type DetailedResponse = Static<typeof DetailedResponse>;

/** The schema of a response with the exposure `decision`: the verdict and the result, without an error. */
export const DecisionResponse = Type.Object(
  {
    proposal_id: Nullable(Type.String()),
    action: Nullable(Type.String()),
    decision: OneOf(DECISIONS),
    result: Nullable(Result),
  },
  closed,
);
/** A response that conforms to the schema `DecisionResponse`. */
export type DecisionResponse = Static<typeof DecisionResponse>;

/** The schema of the one response to a proposal, in either exposure. */
export const StepResponse = Type.Union([DetailedResponse, DecisionResponse]);
/** The one response to a proposal. Rejected and denied proposals get one, too. */
export type StepResponse = DetailedResponse | DecisionResponse;

/** All that a response consists of; RESPOND is a pure function of it (D6). */
export interface ResponseParts {
  readonly proposal_id: string | null;
  readonly action: string | null;
  readonly outcome: Outcome;
  readonly result: JsonObject | null;
  readonly error: { readonly error_code: FaultCode; readonly message: string } | null;
}

/** The response for an agent of the given exposure, with the keys in the order of the contract. */
export function buildResponse(parts: ResponseParts, exposure: Exposure): StepResponse {
  const { proposal_id, action, outcome, result, error } = parts;
  return exposure === 'detailed'
    ? { proposal_id, action, outcome, result, error }
    : { proposal_id, action, decision: stepDecisionOf(outcome), result };
}
