// Weakens the schema of an upstream tool so that validating against it is bounded: finite, without references, and only
// with keywords of known cost. The result accepts every value that the server's schema accepts. The server itself must
// check the omitted parts: patterns, recursion and the consequences of an `if`.

import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import { branchesOf, isCount, SCHEMA_TYPES, type JsonSchema } from '../../core/contract/json-schema.js';

const NODES_MAX = 2_000;
const DEPTH_MAX = 24;
const LIST_MAX = 1_000;
const TEXT_CHARS_MAX = 300;
/**
 * Characters of the schema with references resolved: a part that is referenced a thousand times counts a thousand
 * times.
 */
const CHARS_MAX = 131_072;

interface WeakenedSchema {
  readonly schema: JsonSchema;
  /** No constraint was omitted. Only an exact part may stand below a `not`. */
  readonly exact: boolean;
}

/** @returns the weakened schema, or the problem of the given one, for the operator who pins the tool */
export function weakenSchema(document: JsonObject): JsonSchema | { readonly problem: string } {
  try {
    const walk = { root: document, nodes: NODES_MAX, chars: CHARS_MAX };
    return weakenNode(walk, document, { depth: 0, refs: [] }).schema;
  } catch (error) {
    if (error instanceof UnsupportedSchemaError) return { problem: error.message };
    throw error;
  }
}

/** Internal to this file: the schema cannot be weakened. */
class UnsupportedSchemaError extends Error {}

interface WalkBudget {
  readonly root: JsonObject;
  nodes: number;
  chars: number;
}
interface NodePosition {
  readonly depth: number;
  /** The references that led to this node. */
  readonly refs: readonly string[];
}

function weakenNode(walk: WalkBudget, node: Json | undefined, position: NodePosition): WeakenedSchema {
  if (node === true) return { schema: {}, exact: true };
  if (node === false) return { schema: { not: {} }, exact: true };
  if (!isJsonObject(node)) throw new UnsupportedSchemaError('a part of the schema is not a schema');
  walk.nodes -= 1;
  if (walk.nodes < 0)
    throw new UnsupportedSchemaError(`the schema has more than ${NODES_MAX} parts, references resolved`);
  if (position.depth > DEPTH_MAX)
    throw new UnsupportedSchemaError(`the schema is deeper than ${DEPTH_MAX}, references resolved`);
  refuseForeignReferences(node, position);
  return node['$ref'] === undefined ? weakenKeywords(walk, node, position) : weakenReference(walk, node, position);
}

/** Rejects keywords that would change the target of a reference. */
function refuseForeignReferences(node: JsonObject, { depth }: NodePosition): void {
  for (const keyword of ['$dynamicRef', '$recursiveRef']) {
    if (Object.hasOwn(node, keyword))
      throw new UnsupportedSchemaError(`the schema has ${keyword}, which is not followed`);
  }
  if (depth > 0 && Object.hasOwn(node, '$id'))
    throw new UnsupportedSchemaError('a part of the schema has an $id of its own');
}

/** Resolves references within the document only: nothing is ever fetched. */
function weakenReference(walk: WalkBudget, node: JsonObject, { depth, refs }: NodePosition): WeakenedSchema {
  const { $ref: ref, ...siblings } = node;
  if (typeof ref !== 'string' || !/^#(?:\/|$)/u.test(ref))
    throw new UnsupportedSchemaError('the schema refers to another document');
  // A recursive schema is infinite: below the first level, every value is accepted.
  if (refs.includes(ref)) return { schema: {}, exact: false };
  const target = weakenNode(walk, resolvePointer(walk.root, ref), { depth: depth + 1, refs: [...refs, ref] });
  const siblingSchema = weakenKeywords(walk, siblings, { depth, refs });
  const { description, ...constraints } = siblingSchema.schema;
  const schema = description === undefined ? target.schema : { ...target.schema, description };
  if (Object.keys(constraints).length === 0) return { ...target, schema };
  return { schema: { allOf: [schema, constraints] }, exact: target.exact && siblingSchema.exact };
}

/** Follows own members only: `#/constructor` resolves to nothing. */
function resolvePointer(root: JsonObject, ref: string): Json {
  let at: Json | undefined = root;
  for (const step of ref.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = /^\d{1,4}$/u.test(name) ? (at as readonly Json[])[Number(name)] : undefined;
    else at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  if (at === undefined) throw new UnsupportedSchemaError('the schema refers to a part that it does not have');
  return at;
}

function weakenKeywords(walk: WalkBudget, node: JsonObject, position: NodePosition): WeakenedSchema {
  const childPosition: NodePosition = { ...position, depth: position.depth + 1 };
  const schema: Record<string, unknown> = {};
  let exact = !OMITTED_KEYWORDS.some((keyword) => Object.hasOwn(node, keyword)) && !Array.isArray(node['items']);
  const part = (value: Json | undefined): JsonSchema => {
    const weakenedPart = weakenNode(walk, value, childPosition);
    exact &&= weakenedPart.exact;
    return weakenedPart.schema;
  };
  for (const [keyword, value] of Object.entries(node)) {
    if (Object.hasOwn(VALUE_KEYWORDS, keyword)) {
      spendChars(walk, JSON.stringify(value));
      if (VALUE_KEYWORDS[keyword]?.(value) !== true)
        throw new UnsupportedSchemaError(`the schema has an invalid value of ${keyword}`);
      schema[keyword] = value;
    } else if (SCHEMA_KEYWORDS.includes(keyword) && !Array.isArray(value)) schema[keyword] = part(value);
    else if (SCHEMA_LIST_KEYWORDS.includes(keyword)) schema[keyword] = listOf(value).map(part);
    else if (SCHEMA_MAP_KEYWORDS.includes(keyword)) schema[keyword] = mapOf(walk, value, part);
    else if (keyword === 'description') spendChars(walk, (schema[keyword] = printableText(value)));
  }
  // A member that only a pattern names would otherwise count as additional.
  if (Object.hasOwn(node, 'patternProperties')) delete schema['additionalProperties'];
  const negated = weakenNegations(walk, node, childPosition);
  return { schema: joinSchemas(schema, negated.schema), exact: exact && negated.exact };
}

function spendChars(walk: WalkBudget, text: string): void {
  walk.chars -= text.length;
  if (walk.chars < 0)
    throw new UnsupportedSchemaError(`the schema has more than ${CHARS_MAX} characters, references resolved`);
}

/** A weaker part makes these keywords stricter, so they are kept only if their parts are exact. */
function weakenNegations(walk: WalkBudget, node: JsonObject, childPosition: NodePosition): WeakenedSchema {
  const keywords: JsonSchema[] = [];
  let exact = true;
  if (Object.hasOwn(node, 'not')) {
    const weakenedPart = weakenNode(walk, node['not'], childPosition);
    exact &&= weakenedPart.exact;
    if (weakenedPart.exact) keywords.push({ not: weakenedPart.schema });
  }
  if (Object.hasOwn(node, 'oneOf')) {
    const branches = listOf(node['oneOf'] ?? null).map((branch) => weakenNode(walk, branch, childPosition));
    const isExact = branches.every((branch) => branch.exact);
    exact &&= isExact;
    keywords.push({ [isExact ? 'oneOf' : 'anyOf']: branches.map(({ schema }) => schema) });
  }
  return { schema: Object.assign({}, ...keywords) as JsonSchema, exact };
}

/** Both schemas must hold. If they share a keyword, `allOf` combines them. */
const joinSchemas = (schema: JsonSchema, other: JsonSchema): JsonSchema =>
  Object.keys(other).some((keyword) => Object.hasOwn(schema, keyword))
    ? { ...schema, allOf: [...branchesOf(schema, 'allOf'), other] }
    : { ...schema, ...other };

function listOf(value: Json): readonly Json[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new UnsupportedSchemaError('a part of the schema should be a list of schemas');
  return value as readonly Json[];
}

function mapOf(walk: WalkBudget, value: Json, part: (value: Json | undefined) => JsonSchema): JsonSchema {
  if (!isJsonObject(value)) throw new UnsupportedSchemaError('a part of the schema should be an object of schemas');
  const entries = Object.entries(value).map(([name, schema]) => {
    spendChars(walk, name);
    return [name, part(schema)] as const;
  });
  return Object.fromEntries(entries);
}

/** Text of the server for agents: without invisible characters, and of limited length. */
export const printableText = (text: Json | undefined): string =>
  typeof text === 'string'
    ? text
        .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
        .trim()
        .slice(0, TEXT_CHARS_MAX)
        .toWellFormed()
    : '';

/** Keywords that can reject a value and are omitted. `format` is only an annotation (JSON Schema 2020-12). */
const OMITTED_KEYWORDS = [
  'pattern',
  'patternProperties',
  'if',
  'unevaluatedItems',
  'unevaluatedProperties',
  'additionalItems',
  'dependencies',
  'contains',
];
const SCHEMA_KEYWORDS = ['additionalProperties', 'items', 'propertyNames'];
const SCHEMA_LIST_KEYWORDS = ['anyOf', 'allOf', 'prefixItems'];
const SCHEMA_MAP_KEYWORDS = ['properties', 'dependentSchemas'];

const isNumber = (value: Json): boolean => typeof value === 'number';
const isNames = (value: Json): boolean => isList(value) && value.every((name) => typeof name === 'string');
const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value) && value.length <= LIST_MAX;

const VALUE_KEYWORDS: Readonly<Record<string, (value: Json) => boolean>> = {
  type: (value) =>
    SCHEMA_TYPES.includes(value) ||
    (isList(value) && value.length > 0 && value.every((type) => SCHEMA_TYPES.includes(type))),
  enum: (value) => isList(value) && value.length > 0,
  const: () => true,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => typeof value === 'number' && value > 0,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  uniqueItems: (value) => typeof value === 'boolean',
  minProperties: isCount,
  maxProperties: isCount,
  required: isNames,
  dependentRequired: (value) => isJsonObject(value) && Object.values(value).every((names) => isNames(names)),
};
