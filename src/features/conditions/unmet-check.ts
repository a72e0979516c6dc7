// Whether it is certain that a request meets no condition: that none is satisfied and none fails. Most requests are of
// this kind, and to ask the engine costs more than to decide. In any doubt Cedar is asked, so every denial and every
// approval is its own answer.

import type { CedarEntity, CedarPolicyJson, CedarRequest } from './cedar.js';
import { compileExpression, type Evaluate } from './compile-expression.js';
import type { ExactRequest, KnownEntity } from './exact-operators.js';
import { throwUncertain, isUncertain, readEntity, ValueReader } from './exact-value.js';

/** True if it is certain that the request satisfies none of the policies, and that none fails. */
export type UnmetCheck = (request: CedarRequest) => boolean;

/** @param policies each a `forbid` */
export function compileUnmetCheck(policies: readonly CedarPolicyJson[]): UnmetCheck {
  const compiled = policies.map(compilePolicy);
  return (given) => {
    try {
      const request = toExactRequest(given);
      return compiled.every((parts) => !isSatisfied(parts, request));
    } catch (error) {
      if (isUncertain(error)) return false;
      throw error;
    }
  };
}

/** A part of a policy, and what it must be for the policy to be satisfied. */
interface PolicyPart {
  readonly evaluate: Evaluate;
  readonly expected: boolean;
}

function compilePolicy({ principal, action, resource, conditions }: CedarPolicyJson): readonly PolicyPart[] {
  const scope = Object.entries({ principal, action, resource }).flatMap(([name, constraint]) =>
    constraint.op === 'All' ? [] : [{ evaluate: compileConstraint(name, constraint), expected: true }],
  );
  const clauses = conditions.map(({ kind, body }) => ({
    evaluate: compileExpression(body),
    expected: kind === 'when',
  }));
  return [...scope, ...clauses];
}

type Constraint = CedarPolicyJson['principal'] | CedarPolicyJson['action'];

/** A constraint is an expression of the variable. */
function compileConstraint(name: string, constraint: Constraint): Evaluate {
  const left = { Var: name };
  if (constraint.op === 'is') {
    const within = constraint.in === undefined ? {} : { in: entitiesOf(constraint.in) };
    return compileExpression({ is: { left, entity_type: constraint.entity_type, ...within } });
  }
  return constraint.op === 'All'
    ? () => true
    : compileExpression({ [constraint.op]: { left, right: entitiesOf(constraint) } });
}

/** @param constraint with one entity, several, or the slot of a template, which no condition is */
function entitiesOf(constraint: object): unknown {
  if ('entities' in constraint) return { Set: (constraint.entities as readonly unknown[]).map(literal) };
  return 'entity' in constraint ? literal(constraint.entity) : null;
}

const literal = (entity: unknown): unknown => ({ Value: { __entity: entity } });

/** The parts are evaluated in their order, and after the first that is not as expected no other. */
function isSatisfied(parts: readonly PolicyPart[], request: ExactRequest): boolean {
  return parts.every(({ evaluate, expected }) => {
    const value = evaluate(request);
    return typeof value === 'boolean' ? value === expected : throwUncertain();
  });
}

function toExactRequest({ principal, action, resource, context, entities }: CedarRequest): ExactRequest {
  const reader = new ValueReader();
  return {
    principal: readEntity(principal),
    action: readEntity(action),
    resource: readEntity(resource),
    context: reader.readRecord(context),
    entities: new Map(entities.map((entity) => toKnownEntity(entity, reader))),
  };
}

function toKnownEntity(
  { uid, attrs, parents, tags }: CedarEntity,
  reader: ValueReader,
): readonly [string, KnownEntity] {
  if (tags !== undefined) return throwUncertain();
  return [readEntity(uid).key, { attributes: reader.readRecord(attrs), parents: parents.map(readEntity) }];
}
