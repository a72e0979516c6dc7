// Compiles an expression of Cedar, as its parser returns it, into a function of a request. What a function does not
// evaluate exactly as Cedar does is uncertain, and so is every mistake, such as a missing attribute.

import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import type { CedarValue } from './cedar.js';
import { BINARY_OPERATORS, UNARY_OPERATORS, type ExactRequest } from './exact-operators.js';
import {
  asBoolean,
  asEntity,
  asString,
  throwUncertain,
  ExactEntity,
  type ExactRecord,
  type ExactValue,
  isExtensionName,
  isRecord,
  isUncertain,
  parseExtension,
  ValueReader,
} from './exact-value.js';

/** @throws UncertainError */
export type Evaluate = (request: ExactRequest) => ExactValue;

/** @param node an expression in Cedar's JSON */
export function compileExpression(node: unknown): Evaluate {
  if (!isJsonObject(node)) return throwUncertain;
  const [[operator, operands] = ['', null], ...others] = Object.entries(node);
  if (others.length > 0) return throwUncertain;
  if (operator === 'Value') return compileValue(operands);
  if (operator === 'Var') return compileVariable(operands);
  if (operator === 'Set') return compileSet(operands);
  if (operator === 'Record') return compileRecord(operands);
  if (Array.isArray(operands)) return compileCall(operator, operands);
  return isJsonObject(operands) ? compileOperator(operator, operands) : throwUncertain;
}

function compileValue(json: Json): Evaluate {
  return constant(() => new ValueReader().read(json as CedarValue));
}

/** What cannot be evaluated in advance is uncertain in each request that needs it. */
function constant(evaluate: () => ExactValue): Evaluate {
  try {
    const value = evaluate();
    return () => value;
  } catch (error) {
    if (isUncertain(error)) return throwUncertain;
    throw error;
  }
}

const VARIABLES = ['principal', 'action', 'resource', 'context'] as const;

function compileVariable(given: Json): Evaluate {
  const name = VARIABLES.find((variable) => variable === given);
  return name === undefined ? throwUncertain : (request) => request[name];
}

function compileSet(json: Json): Evaluate {
  if (!Array.isArray(json)) return throwUncertain;
  const members = json.map(compileExpression);
  return (request) => members.map((member) => member(request));
}

function compileRecord(json: Json): Evaluate {
  if (!isJsonObject(json)) return throwUncertain;
  const members = Object.entries(json).map(([name, member]) => [name, compileExpression(member)] as const);
  return (request) => new Map(members.map(([name, member]) => [name, member(request)]));
}

function compileOperator(operator: string, operands: JsonObject): Evaluate {
  const { left, right, arg } = operands;
  if (arg !== undefined) return unary(operator, compileExpression(arg));
  if (operator === 'if-then-else') {
    return choose(...(['if', 'then', 'else'] as const).map((name) => compileExpression(operands[name])));
  }
  const first = compileExpression(left);
  switch (operator) {
    case '&&':
      return and(first, compileExpression(right));
    case '||':
      return or(first, compileExpression(right));
    case '.':
      return access(first, operands['attr']);
    case 'has':
      return hasAttribute(first, operands['attr']);
    case 'like':
      return like(first, operands['pattern']);
    case 'is':
      return is(first, operands);
    default:
      return binary(operator, first, compileExpression(right));
  }
}

const and =
  (left: Evaluate, right: Evaluate): Evaluate =>
  (request) =>
    asBoolean(left(request)) && asBoolean(right(request));

const or =
  (left: Evaluate, right: Evaluate): Evaluate =>
  (request) =>
    asBoolean(left(request)) || asBoolean(right(request));

const choose =
  (
    condition: Evaluate = throwUncertain,
    then: Evaluate = throwUncertain,
    otherwise: Evaluate = throwUncertain,
  ): Evaluate =>
  (request) =>
    (asBoolean(condition(request)) ? then : otherwise)(request);

const attributesOf = (value: ExactValue, { entities }: ExactRequest): ExactRecord | undefined => {
  if (value instanceof ExactEntity) return entities.get(value.key)?.attributes;
  return isRecord(value) ? value : throwUncertain();
};

function access(operand: Evaluate, name: Json | undefined): Evaluate {
  if (typeof name !== 'string') return throwUncertain;
  return (request) => attributesOf(operand(request), request)?.get(name) ?? throwUncertain();
}

/** @param names one name, or each of a path such as `a.b` */
function hasAttribute(operand: Evaluate, names: Json | undefined): Evaluate {
  const path = [names].flat();
  if (!path.every((name) => typeof name === 'string')) return throwUncertain;
  return (request) => {
    let value: ExactValue | undefined = operand(request);
    for (const name of path) {
      value = attributesOf(value, request)?.get(name);
      if (value === undefined) return false;
    }
    return true;
  };
}

/** Each part is searched after the one before it; the first is at the beginning, and the last at the end. */
function like(operand: Evaluate, pattern: Json | undefined): Evaluate {
  const parts = readPattern(pattern);
  const last = parts?.pop();
  if (parts === null || last === undefined) return throwUncertain;
  const [first, ...middle] = parts;
  if (first === undefined) return (request) => asString(operand(request)) === last;
  return (request) => {
    const text = asString(operand(request));
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return text.length - last.length >= at && text.endsWith(last);
  };
}

/** The texts between wildcards; null for a pattern of another form. */
function readPattern(pattern: Json | undefined): string[] | null {
  const parts = [''];
  for (const element of Array.isArray(pattern) ? pattern : [null]) {
    const literal = isJsonObject(element) ? element['Literal'] : null;
    if (element === 'Wildcard') parts.push('');
    else if (typeof literal === 'string') parts.push(`${parts.pop() ?? ''}${literal}`);
    else return null;
  }
  return parts;
}

function is(operand: Evaluate, { entity_type, in: within }: JsonObject): Evaluate {
  if (typeof entity_type !== 'string') return throwUncertain;
  const isOfType: Evaluate = (request) => asEntity(operand(request)).type === entity_type;
  if (within === undefined) return isOfType;
  return and(isOfType, binary('in', operand, compileExpression(within)));
}

function unary(operator: string, operand: Evaluate): Evaluate {
  const operate = UNARY_OPERATORS.get(operator);
  return operate === undefined ? throwUncertain : (request) => operate(operand(request));
}

function binary(operator: string, left: Evaluate, right: Evaluate): Evaluate {
  const operate = BINARY_OPERATORS.get(operator);
  return operate === undefined ? throwUncertain : (request) => operate(left(request), right(request), request);
}

/** A function of an extension, or a method of its values. */
function compileCall(name: string, [first, second, ...others]: readonly Json[]): Evaluate {
  if (first === undefined || others.length > 0) return throwUncertain;
  const operand = compileExpression(first);
  if (second !== undefined) return binary(name, operand, compileExpression(second));
  if (!isExtensionName(name)) return unary(name, operand);
  const text = isJsonObject(first) ? first['Value'] : undefined;
  if (typeof text === 'string') return constant(() => parseExtension(name, text));
  return (request) => parseExtension(name, asString(operand(request)));
}
