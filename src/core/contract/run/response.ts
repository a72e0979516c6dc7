import Type, { type Static } from 'typebox';
import { FAULT_CODES, type FaultCode } from '../fault.js';
import type { JsonObject } from '../json.js';
import { DECISIONS, OUTCOMES, type Outcome } from './phase.js';
import { closed, Nullable, OneOf } from '../shapes.js';

/**
 * How much of the outcome an agent sees, from most to least: the five keys of S0-72 with an explanation of the error
 * (C94), the five keys with constant messages, or only the decision (S2-10, S2-12; C01).
 */
export const EXPOSURES = ['explained', 'detailed', 'decision'] as const;
/** One of `EXPOSURES`. */
export type Exposure = (typeof EXPOSURES)[number];

/** The maximum number of characters of a tool's words about its failure (C94). */
export const TOOL_WORDS_CHARS_MAX = 2_000;

const Result = Type.Object({}, { additionalProperties: true });
const errorProperties = { error_code: OneOf(FAULT_CODES), message: Type.String() };
const ErrorBody = Type.Object(errorProperties, closed);
/** `explanation`: the field and the constraint that it breaks, or the words of the tool, or null. */
const ExplainedErrorBody = Type.Object({ ...errorProperties, explanation: Nullable(Type.String()) }, closed);

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

/** The schema of a response with the exposure `explained`: the detailed one, with an explanation of the error (C94). */
export const ExplainedResponse = Type.Object(
  { ...DetailedResponse.properties, error: Nullable(ExplainedErrorBody) },
  closed,
);
/** A response that conforms to the schema `ExplainedResponse`. */
export type ExplainedResponse = Static<typeof ExplainedResponse>;

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

/** The schema of the one response to a proposal, in any exposure. */
export const StepResponse = Type.Union([ExplainedResponse, DetailedResponse, DecisionResponse]);
/** The one response to a proposal. Rejected and denied proposals get one, too. */
export type StepResponse = ExplainedResponse | DetailedResponse | DecisionResponse;

/** The error of a failed step. Only the exposure `explained` shows the explanation. */
export interface StepError {
  readonly error_code: FaultCode;
  readonly message: string;
  readonly explanation?: string | null;
}

/** All that a response consists of; RESPOND is a pure function of it (D6). */
export interface ResponseParts {
  readonly proposal_id: string | null;
  readonly action: string | null;
  readonly outcome: Outcome;
  readonly result: JsonObject | null;
  readonly error: StepError | null;
}
