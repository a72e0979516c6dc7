// Access evaluations of AuthZEN 1.0 (OpenID Foundation), as requests for decisions.

import Type, { type Static, type TSchema } from 'typebox';
import type { JsonObject } from '../../core/contract/json.js';
import { OneOf } from '../../core/contract/shapes.js';
import type { ActionDecision, DecisionRequest } from '../../runtime/agents/decision-request.js';

/** How many evaluations one request may have. */
export const EVALUATIONS_MAX = 64;

/** The specification wants unknown members ignored. */
const open = { additionalProperties: true } as const;
const Text = Type.String({ minLength: 1, maxLength: 400 });
const Properties = Type.Optional(Type.Record(Type.String(), Type.Unknown()));

const Subject = Type.Object({ type: Text, id: Text, properties: Properties }, open);
const Action = Type.Object({ name: Type.String({ minLength: 1, maxLength: 128 }), properties: Properties }, open);
const Resource = Type.Object({ type: Text, id: Text, properties: Properties }, open);

/** A request of the Access Evaluation API. */
export const Evaluation = Type.Object(
  { subject: Subject, action: Action, resource: Resource, context: Properties },
  open,
);
export type Evaluation = Static<typeof Evaluation>;

const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(schema);
const EvaluationPart = Type.Object(
  { subject: optional(Subject), action: optional(Action), resource: optional(Resource), context: Properties },
  open,
);
type EvaluationPart = Static<typeof EvaluationPart>;

const SEMANTICS = ['execute_all', 'deny_on_first_deny', 'permit_on_first_permit'] as const;

/** A request of the Access Evaluations API: what is missing in an evaluation is taken from the request. */
export const EvaluationList = Type.Object(
  {
    ...EvaluationPart.properties,
    evaluations: Type.Optional(Type.Array(EvaluationPart, { maxItems: EVALUATIONS_MAX })),
    options: Type.Optional(Type.Object({ evaluations_semantic: Type.Optional(OneOf(SEMANTICS)) }, open)),
  },
  open,
);
export type EvaluationList = Static<typeof EvaluationList>;

/** The evaluations of a request with their defaults; null if one of them lacks a member. */
export function evaluationsOf({ evaluations = [], ...defaults }: EvaluationList): readonly Evaluation[] | null {
  const complete: Evaluation[] = [];
  for (const part of evaluations) {
    const evaluation = completed(part, defaults);
    if (evaluation === null) return null;
    complete.push(evaluation);
  }
  return complete;
}

/** An evaluation with the defaults of its request; null if it lacks a member. */
export function completed(part: EvaluationPart, defaults: EvaluationPart): Evaluation | null {
  const subject = part.subject ?? defaults.subject;
  const action = part.action ?? defaults.action;
  const resource = part.resource ?? defaults.resource;
  const context = part.context ?? defaults.context;
  if (subject === undefined || action === undefined || resource === undefined) return null;
  return { subject, action, resource, ...(context === undefined ? {} : { context }) };
}

/**
 * The tool and its input. The input has the members of the evaluation that the specification names, so a decision is
 * never made about a part that the record omits.
 */
export function toToolCall({
  subject,
  action,
  resource,
  context,
}: Evaluation): Pick<DecisionRequest, 'tool' | 'input'> {
  const input = {
    subject: entityOf(subject),
    resource: entityOf(resource),
    ...(action.properties === undefined ? {} : { action: { properties: action.properties } }),
    ...(context === undefined ? {} : { context }),
  };
  return { tool: action.name, input: input as JsonObject };
}

const entityOf = ({ type, id, properties }: Evaluation['subject']): object => ({
  type,
  id,
  ...(properties === undefined ? {} : { properties }),
});

/** A decision in the form of the specification. Its context has only constants, ids and names of rules. */
export const toEvaluationResult = ({ decision, pending, call, run, step, rule, code, message }: ActionDecision) => ({
  decision,
  context: {
    code,
    message,
    ...(rule === null ? {} : { rule }),
    ...(pending ? { approval: 'pending' } : {}),
    ...(call === null ? {} : { call }),
    run,
    ...(step === null ? {} : { step }),
  },
});
export type EvaluationResult = ReturnType<typeof toEvaluationResult>;

/** Decides one evaluation after the other, until the semantic of the request ends it. */
export async function evaluateAll(
  evaluations: readonly Evaluation[],
  semantic: (typeof SEMANTICS)[number],
  decide: (evaluation: Evaluation) => Promise<ActionDecision>,
): Promise<readonly EvaluationResult[]> {
  const results: EvaluationResult[] = [];
  for (const evaluation of evaluations) {
    const result = toEvaluationResult(await decide(evaluation));
    results.push(result);
    if (semantic === 'deny_on_first_deny' && !result.decision) break;
    if (semantic === 'permit_on_first_permit' && result.decision) break;
  }
  return results;
}
