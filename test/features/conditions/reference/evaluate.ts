// Evaluates policies that forbid, as docs.cedarpolicy.com specifies it ("Authorization").

import { type Operators, OPERATORS } from './operators.js';
import type { Expression, ForbidPolicy } from './parser.js';
import type { EvaluationRequest } from './request.js';
import { type Evaluated, errorOf, type Value } from './values.js';

/** What became of the policies of a set. A policy is in neither list if its condition is false. */
export interface Evaluation {
  readonly satisfied: readonly string[];
  readonly erring: readonly string[];
}

export function evaluate(
  expression: Expression,
  request: EvaluationRequest,
  operators: Operators = OPERATORS,
): Evaluated {
  const inner = (each: Expression): Evaluated => evaluate(each, request, operators);
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'variable':
      return request[expression.name];
    case 'call':
      return operators[expression.operator](
        expression.operands.map((operand) => () => inner(operand)),
        request,
      );
    case 'set': {
      const members = valuesOf(expression.members.map(inner));
      return 'type' in members ? members : { type: 'set', members };
    }
    case 'record': {
      const values = valuesOf(expression.fields.map(([, value]) => inner(value)));
      if ('type' in values) return values;
      return { type: 'record', fields: new Map(expression.fields.map(([name], at) => [name, values[at] as Value])) };
    }
  }
}

/** The values, or the first error. */
function valuesOf(evaluated: readonly Evaluated[]): readonly Value[] | Extract<Evaluated, { readonly type: 'error' }> {
  const values: Value[] = [];
  for (const value of evaluated) {
    if (value.type === 'error') return value;
    values.push(value);
  }
  return values;
}

/** The condition of a policy has to be a bool. */
export function evaluatePolicy(
  { condition }: ForbidPolicy,
  request: EvaluationRequest,
  operators?: Operators,
): Evaluated {
  const value = evaluate(condition, request, operators);
  return value.type === 'bool' || value.type === 'error' ? value : errorOf('type');
}

export function evaluatePolicies(
  policies: ReadonlyMap<string, ForbidPolicy>,
  request: EvaluationRequest,
  operators?: Operators,
): Evaluation {
  const satisfied: string[] = [];
  const erring: string[] = [];
  for (const [id, policy] of policies) {
    const value = evaluatePolicy(policy, request, operators);
    if (value.type === 'error') erring.push(id);
    else if (value.type === 'bool' && value.value) satisfied.push(id);
  }
  return { satisfied: satisfied.sort(), erring: erring.sort() };
}
