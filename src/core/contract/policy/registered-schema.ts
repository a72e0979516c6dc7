// JSON Schemas that an embedding service has registered. A replay reads them from the ledger, so they are data like any
// other: a small, closed subset of JSON Schema, checked by interpretation and never compiled into code.

import { Check } from 'typebox/value';
import { isJsonObject } from '../json.js';
import { isCount, partsOf, SCHEMA_TYPES, type JsonSchema } from '../json-schema.js';

/** Deeper or larger schemas are refused at registration. */
const DEPTH_MAX = 12;
const NODES_MAX = 2_000;
const PATTERN_CHARS_MAX = 400;

/** The supported keywords, each with a check of its value. Other keywords would be accepted without effect. */
const KEYWORDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) => SCHEMA_TYPES.includes(value),
  title: isText,
  description: isText,
  properties: isJsonObject,
  required: (value) => Array.isArray(value) && value.every(isText),
  additionalProperties: (value) => value === false,
  items: isJsonObject,
  anyOf: (value) => Array.isArray(value) && value.length > 0 && value.every(isJsonObject),
  enum: (value) => Array.isArray(value) && value.length > 0 && value.every(isScalar),
  const: isScalar,
  pattern: isPattern,
  // Values of these formats are dates, durations and addresses for conditions.
  format: (value) => typeof value === 'string' && FORMATS.includes(value),
  minLength: isCount,
  maxLength: isCount,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  minItems: isCount,
  maxItems: isCount,
};
const FORMATS = ['date', 'date-time', 'duration', 'email'];

/** Whether a value from the strict parser matches a registered schema. */
export const isSchemaInstance = (schema: JsonSchema, value: unknown): boolean => Check(schema, value);

/**
 * What is wrong with a schema, in words for the programmer who registers it, or null. The schema and every object in it
 * must be closed (`additionalProperties: false`): no field may become a hidden channel (S1-02).
 */
export function findSchemaProblem(schema: unknown): string | null {
  const budget = { nodes: NODES_MAX };
  if (!isJsonObject(schema) || schema['type'] !== 'object') return 'it must be a Type.Object';
  return findProblemAt(schema, '', 0, budget);
}

function findProblemAt(schema: unknown, at: string, depth: number, budget: { nodes: number }): string | null {
  const location = at === '' ? 'the schema' : at;
  if (!isJsonObject(schema)) return `${location} is no schema`;
  if (depth > DEPTH_MAX) return `${location} is deeper than ${DEPTH_MAX}`;
  budget.nodes -= 1;
  if (budget.nodes < 0) return `it has more than ${NODES_MAX} parts`;
  for (const [keyword, value] of Object.entries(schema)) {
    const isAllowedValue = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined;
    if (isAllowedValue?.(value) !== true) return `${location} has ${keyword}, which a registered schema cannot have so`;
  }
  if (schema['type'] === undefined && schema['anyOf'] === undefined && !isClosedSet(schema)) {
    return `${location} says no type`;
  }
  if (schema['type'] === 'object' && (schema['additionalProperties'] !== false || !isJsonObject(schema['properties'])))
    return `${location} must be closed: { additionalProperties: false }`;
  for (const [name, part] of partsOf(schema)) {
    const problem = findProblemAt(part, `${at}/${name}`, depth + 1, budget);
    if (problem !== null) return problem;
  }
  return null;
}

const isClosedSet = (schema: JsonSchema): boolean => schema['enum'] !== undefined || schema['const'] !== undefined;

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.length <= 2_000 && value.isWellFormed();
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value);
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value === 'boolean' || isNumber(value) || isText(value);
}

function isPattern(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > PATTERN_CHARS_MAX || !value.isWellFormed()) return false;
  try {
    return new RegExp(value, 'u').source !== '';
  } catch {
    return false;
  }
}
