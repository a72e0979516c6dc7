// The schema that an upstream server gives for a tool, made fit to be walked: finite, without references, and only of
// keywords that cost what they say. What comes out refuses nothing that the server's own schema would let through; what
// was left out (patterns, recursion, what follows from an `if`) is for the server to refuse.

import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';

const NODES_MAX = 2_000;
const DEPTH_MAX = 24;
const LIST_MAX = 1_000;
const TEXT_CHARS_MAX = 300;
/** Of all that it says, references resolved: what is referred to a thousand times is there a thousand times. */
const CHARS_MAX = 131_072;

export type WalkedSchema = Readonly<Record<string, unknown>>;

interface Weakened {
  readonly schema: WalkedSchema;
  /** Nothing was left out of it that could refuse a value. Only then may a `not` be built on it. */
  readonly exact: boolean;
}

/** @returns the schema to walk, or what is wrong with the one that was given, in words for whoever pins the tool */
export function weakenedSchema(document: JsonObject): WalkedSchema | { readonly problem: string } {
  try {
    const walk = { root: document, nodes: NODES_MAX, chars: CHARS_MAX };
    return weakened(walk, document, { depth: 0, refs: [] }).schema;
  } catch (error) {
    if (error instanceof Unfit) return { problem: error.message };
    throw error;
  }
}

/** Within this file: the schema cannot be walked. */
class Unfit extends Error {}

interface Walk {
  readonly root: JsonObject;
  nodes: number;
  chars: number;
}
interface Place {
  readonly depth: number;
  /** The references that led here. */
  readonly refs: readonly string[];
}

function weakened(walk: Walk, node: Json | undefined, place: Place): Weakened {
  if (node === true) return { schema: {}, exact: true };
  if (node === false) return { schema: { not: {} }, exact: true };
  if (!isJsonObject(node)) throw new Unfit('a part of the schema is no schema');
  walk.nodes -= 1;
  if (walk.nodes < 0) throw new Unfit(`the schema has more than ${NODES_MAX} parts, references resolved`);
  if (place.depth > DEPTH_MAX) throw new Unfit(`the schema is deeper than ${DEPTH_MAX}, references resolved`);
  refuseElsewhere(node, place);
  return node['$ref'] === undefined ? keywordsOf(walk, node, place) : referred(walk, node, place);
}

/** Whatever would change where a reference leads. */
function refuseElsewhere(node: JsonObject, { depth }: Place): void {
  for (const keyword of ['$dynamicRef', '$recursiveRef']) {
    if (Object.hasOwn(node, keyword)) throw new Unfit(`the schema has ${keyword}, which is not followed`);
  }
  if (depth > 0 && Object.hasOwn(node, '$id')) throw new Unfit('a part of the schema has an $id of its own');
}

/** References lead within the document, or nowhere: nothing is ever fetched. */
function referred(walk: Walk, node: JsonObject, { depth, refs }: Place): Weakened {
  const { $ref: ref, ...siblings } = node;
  if (typeof ref !== 'string' || !/^#(?:\/|$)/u.test(ref)) throw new Unfit('the schema refers to something elsewhere');
  // What contains itself has no end: one level below, anything goes.
  if (refs.includes(ref)) return { schema: {}, exact: false };
  const target = weakened(walk, pointed(walk.root, ref), { depth: depth + 1, refs: [...refs, ref] });
  const beside = keywordsOf(walk, siblings, { depth, refs });
  const { description, ...constraints } = beside.schema;
  const schema = description === undefined ? target.schema : { ...target.schema, description };
  if (Object.keys(constraints).length === 0) return { ...target, schema };
  return { schema: { allOf: [schema, constraints] }, exact: target.exact && beside.exact };
}

/** By own members only: `#/constructor` is nothing. */
function pointed(root: JsonObject, ref: string): Json {
  let at: Json | undefined = root;
  for (const step of ref.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = /^\d{1,4}$/u.test(name) ? (at as readonly Json[])[Number(name)] : undefined;
    else at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  if (at === undefined) throw new Unfit('the schema refers to a part that it does not have');
  return at;
}

function keywordsOf(walk: Walk, node: JsonObject, place: Place): Weakened {
  const below: Place = { ...place, depth: place.depth + 1 };
  const schema: Record<string, unknown> = {};
  let exact = !LEFT_OUT.some((keyword) => Object.hasOwn(node, keyword)) && !Array.isArray(node['items']);
  const part = (value: Json | undefined): WalkedSchema => {
    const made = weakened(walk, value, below);
    exact &&= made.exact;
    return made.schema;
  };
  for (const [keyword, value] of Object.entries(node)) {
    if (Object.hasOwn(PLAIN, keyword)) {
      spend(walk, JSON.stringify(value));
      if (PLAIN[keyword]?.(value) !== true)
        throw new Unfit(`the schema has ${keyword} in a way that it cannot have it`);
      schema[keyword] = value;
    } else if (ONE.includes(keyword) && !Array.isArray(value)) schema[keyword] = part(value);
    else if (LISTS.includes(keyword)) schema[keyword] = listOf(value).map(part);
    else if (MAPS.includes(keyword)) schema[keyword] = mapOf(walk, value, part);
    else if (keyword === 'description') spend(walk, (schema[keyword] = shown(value)));
  }
  // A member that only a pattern names would count as additional.
  if (Object.hasOwn(node, 'patternProperties')) delete schema['additionalProperties'];
  const negated = negations(walk, node, below);
  return { schema: joined(schema, negated.schema), exact: exact && negated.exact };
}

function spend(walk: Walk, said: string): void {
  walk.chars -= said.length;
  if (walk.chars < 0) throw new Unfit(`the schema says more than ${CHARS_MAX} characters, references resolved`);
}

/** What would refuse more when its parts refuse less is kept only where nothing was left out of them. */
function negations(walk: Walk, node: JsonObject, below: Place): Weakened {
  const kept: WalkedSchema[] = [];
  let exact = true;
  if (Object.hasOwn(node, 'not')) {
    const made = weakened(walk, node['not'], below);
    exact &&= made.exact;
    if (made.exact) kept.push({ not: made.schema });
  }
  if (Object.hasOwn(node, 'oneOf')) {
    const branches = listOf(node['oneOf'] ?? null).map((branch) => weakened(walk, branch, below));
    const exactly = branches.every((branch) => branch.exact);
    exact &&= exactly;
    kept.push({ [exactly ? 'oneOf' : 'anyOf']: branches.map(({ schema }) => schema) });
  }
  return { schema: Object.assign({}, ...kept) as WalkedSchema, exact };
}

/** Both have to hold; where both say something by the same keyword, they stand side by side. */
const joined = (schema: WalkedSchema, other: WalkedSchema): WalkedSchema =>
  Object.keys(other).some((keyword) => Object.hasOwn(schema, keyword))
    ? { ...schema, allOf: [...((schema['allOf'] as readonly WalkedSchema[] | undefined) ?? []), other] }
    : { ...schema, ...other };

function listOf(value: Json): readonly Json[] {
  if (!Array.isArray(value) || value.length === 0) throw new Unfit('a part of the schema should be a list of schemas');
  return value as readonly Json[];
}

function mapOf(walk: Walk, value: Json, part: (value: Json | undefined) => WalkedSchema): WalkedSchema {
  if (!isJsonObject(value)) throw new Unfit('a part of the schema should be an object of schemas');
  const entries = Object.entries(value).map(([name, schema]) => {
    spend(walk, name);
    return [name, part(schema)] as const;
  });
  return Object.fromEntries(entries);
}

/** Words of the server's, for agents: without what cannot be seen, and not too many. */
export const shown = (text: Json | undefined): string =>
  typeof text === 'string'
    ? text
        .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
        .trim()
        .slice(0, TEXT_CHARS_MAX)
        .toWellFormed()
    : '';

/** Keywords that can refuse and are not looked at. A format is no more than a comment (JSON Schema 2020-12). */
const LEFT_OUT = [
  'pattern',
  'patternProperties',
  'if',
  'unevaluatedItems',
  'unevaluatedProperties',
  'additionalItems',
  'dependencies',
  'contains',
];
const ONE = ['additionalProperties', 'items', 'propertyNames'];
const LISTS = ['anyOf', 'allOf', 'prefixItems'];
const MAPS = ['properties', 'dependentSchemas'];

const TYPES: readonly Json[] = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];
const isNumber = (value: Json): boolean => typeof value === 'number';
const isCount = (value: Json): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isNames = (value: Json): boolean => isList(value) && value.every((name) => typeof name === 'string');
const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value) && value.length <= LIST_MAX;

const PLAIN: Readonly<Record<string, (value: Json) => boolean>> = {
  type: (value) =>
    TYPES.includes(value) || (isList(value) && value.length > 0 && value.every((t) => TYPES.includes(t))),
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
