// Converts the schema of an upstream tool to one that the contract can register: closed objects and few other keywords
// (S1-02). Schemas of servers may be open anywhere. A part that cannot be converted becomes a string that contains
// JSON. Its value stays visible, and is validated against the server's own schema after parsing.

import { isJsonObject, type Json, type JsonObject, scanJson, canonicalJson } from '../../core/contract/json.js';
import { branchesOf, propertiesOf, requiredOf, type JsonSchema } from '../../core/contract/json-schema.js';

/** Deeper parts become strings of JSON. The contract's own limit is 12. */
const DEPTH_MAX = 8;
/** Depth limits of an input as agents send it, and of the JSON inside a string. */
const INPUT_DEPTH_MAX = 64;
const TEXT_DEPTH_MAX = 32;
/** The only member of an input that can be represented only as a string. */
const WHOLE_INPUT = 'json';

/** Which parts of a value are represented as strings of JSON. */
type ValueEncoding =
  'as_is' | 'text' | { readonly members: Readonly<Record<string, ValueEncoding>> } | { readonly items: ValueEncoding };

export interface ConvertedSchema {
  readonly schema: JsonSchema;
  readonly encoding: ValueEncoding;
}

export interface ConvertedInput extends ConvertedSchema {
  /** The whole input is one string. */
  readonly whole: boolean;
}

/** The registered schema of a tool's input: always a closed object, even if the server accepts more. */
export function convertInputSchema(schema: JsonSchema): ConvertedInput {
  // Servers describe a tool without parameters by a schema that contains only `type: object`.
  const bare = schema['type'] === 'object' && !hasMembers(schema) && schema['additionalProperties'] === undefined;
  const converted = convertSchema(bare && !hasUnion(schema) ? EMPTY_INPUT : schema, INPUT_ROOT);
  if (converted.schema['type'] === 'object') return { ...converted, whole: false };
  return { ...convertedObject({ [WHOLE_INPUT]: asText('The whole input.') }, [WHOLE_INPUT], undefined), whole: true };
}

/** The registered schema of the structured part of an answer. */
export const convertOutputSchema = (schema: JsonSchema): ConvertedSchema =>
  convertSchema(schema, { ...INPUT_ROOT, side: 'output' });

/** The schema of arbitrary JSON, represented as a string. */
export const anyJsonSchema = (): ConvertedSchema => convertOutputSchema({});

/**
 * The input as the server expects it.
 * @returns null if a string does not contain JSON, or the JSON is not an object
 */
export function decodeInput({ encoding, whole }: ConvertedInput, input: JsonObject): JsonObject | null {
  // Parsed anew, so that inherited members do not pass for members of the input.
  const own = scanJson(canonicalJson(input), INPUT_DEPTH_MAX);
  const read = own.ok ? decodeValue(encoding, own.value) : undefined;
  const value = whole && isJsonObject(read) ? read[WHOLE_INPUT] : read;
  return isJsonObject(value) ? value : null;
}

/**
 * The registered form of the structured part of an answer. Members that the server's schema does not name are omitted.
 */
export function encodeOutput(encoding: ValueEncoding, value: Json): Json {
  if (encoding === 'as_is') return value;
  if (encoding === 'text') return canonicalJson(value);
  if ('items' in encoding)
    return Array.isArray(value) ? value.map((item: Json) => encodeOutput(encoding.items, item)) : value;
  if (!isJsonObject(value)) return value;
  const named = Object.entries(encoding.members).filter(([name]) => Object.hasOwn(value, name));
  return Object.fromEntries(named.map(([name, member]) => [name, encodeOutput(member, value[name] ?? null)]));
}

/** The registered form of an input. Members that the schema does not name stay, so that the input is refused. */
export function encodeInput({ encoding, whole }: ConvertedInput, input: JsonObject): JsonObject {
  if (whole) return { [WHOLE_INPUT]: canonicalJson(input) };
  const encoded = encodeOutput(encoding, input);
  return isJsonObject(encoded) ? { ...input, ...encoded } : input;
}

/** @returns undefined if a string does not contain JSON */
function decodeValue(encoding: ValueEncoding, value: Json): Json | undefined {
  if (encoding === 'as_is') return value;
  if (encoding === 'text') {
    const scanned = typeof value === 'string' ? scanJson(value, TEXT_DEPTH_MAX) : null;
    return scanned?.ok === true ? scanned.value : undefined;
  }
  if ('items' in encoding) {
    if (!Array.isArray(value)) return undefined;
    const items = value.map((item: Json) => decodeValue(encoding.items, item));
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const members = Object.create(null) as Record<string, Json>;
  for (const [name, member] of Object.entries(value)) {
    const own = Object.hasOwn(encoding.members, name) ? encoding.members[name] : undefined;
    const read = own === undefined ? undefined : decodeValue(own, member);
    if (read === undefined) return undefined;
    members[name] = read;
  }
  return members;
}

interface SchemaPosition {
  readonly depth: number;
  readonly side: 'input' | 'output';
  /** In a union, the branch of a value is unknown when the value is read. So no part of a branch can be rewritten. */
  readonly inUnion: boolean;
}
const INPUT_ROOT: SchemaPosition = { depth: 0, side: 'input', inUnion: false };

function convertSchema(schema: JsonSchema, position: SchemaPosition): ConvertedSchema {
  const { type, description } = schema;
  if (position.depth > DEPTH_MAX) return asText(description);
  const values = schema['const'] === undefined ? schema['enum'] : [schema['const']];
  if (Array.isArray(values)) {
    return values.every(isScalar) ? asIs({ ...descriptionOf(description), enum: values }) : asText(description);
  }
  if (Array.isArray(type)) {
    const branches = type.map((one: string) => ({ ...schema, description: undefined, type: one }));
    return convertUnion(branches, description, position);
  }
  const union = branchesOf(schema, schema['anyOf'] === undefined ? 'oneOf' : 'anyOf');
  if (union.length > 0 && (type === undefined || (type === 'object' && !hasMembers(schema)))) {
    const branches = union.map((branch) => (type === undefined ? branch : { type, ...branch }));
    return convertUnion(branches, description, position);
  }
  const [only, ...others] = branchesOf(schema, 'allOf');
  if (type === undefined && only !== undefined && others.length === 0) {
    return convertSchema({ ...only, ...descriptionOf(description) }, { ...position, depth: position.depth + 1 });
  }
  if (type === 'object') return convertObject(schema, position);
  if (type === 'array') return convertArray(schema, position);
  if (typeof type !== 'string') return asText(description);
  return asIs({ ...descriptionOf(description), type, ...pickKeywords(schema, SCALAR_KEYWORDS) });
}

function convertUnion(
  branches: readonly JsonSchema[],
  description: unknown,
  position: SchemaPosition,
): ConvertedSchema {
  const converted = branches.map((branch) =>
    convertSchema(branch, { ...position, depth: position.depth + 1, inUnion: true }),
  );
  if (!converted.every(({ encoding }) => isAsIs(encoding))) return asText(description);
  return asIs({ ...descriptionOf(description), anyOf: converted.map((branch) => branch.schema) });
}

function convertObject(schema: JsonSchema, { depth, side, inUnion }: SchemaPosition): ConvertedSchema {
  const { description, additionalProperties: others } = schema;
  const properties = propertiesOf(schema);
  const required = requiredOf(schema);
  const closed = isFalseSchema(others);
  const maps = !closed && (!hasMembers(schema) || (isJsonObject(others) && Object.keys(others).length > 0));
  // An answer cannot be reduced to the members of its branch: the branch itself must be closed.
  const uncut = side === 'output' && inUnion && !closed;
  const unnamed = required.some((name) => !Object.hasOwn(properties, name));
  if (maps || uncut || unnamed || hasUnion(schema)) return asText(description);
  const members = Object.entries(properties).map(
    ([name, member]) => [name, convertSchema(member as JsonSchema, { depth: depth + 1, side, inUnion })] as const,
  );
  return convertedObject(Object.fromEntries(members), required, description);
}

function convertArray(schema: JsonSchema, position: SchemaPosition): ConvertedSchema {
  const { items, description } = schema;
  if (!isJsonObject(items) || schema['prefixItems'] !== undefined) return asText(description);
  const each = convertSchema(items, { ...position, depth: position.depth + 1 });
  const converted = {
    ...descriptionOf(description),
    type: 'array',
    items: each.schema,
    ...pickKeywords(schema, ARRAY_KEYWORDS),
  };
  return { schema: converted, encoding: { items: each.encoding } };
}

function convertedObject(
  members: Readonly<Record<string, ConvertedSchema>>,
  required: readonly string[],
  description: unknown,
): ConvertedSchema {
  const entries = Object.entries(members);
  const schema = {
    ...descriptionOf(description),
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, member]) => [name, member.schema])),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
    additionalProperties: false,
  };
  return { schema, encoding: { members: Object.fromEntries(entries.map(([name, { encoding }]) => [name, encoding])) } };
}

const asIs = (schema: JsonSchema): ConvertedSchema => ({ schema, encoding: 'as_is' });

const asText = (description: unknown): ConvertedSchema => ({
  schema: {
    type: 'string',
    description: `JSON as a text. ${typeof description === 'string' ? description : ''}`.trim(),
  },
  encoding: 'text',
});

function isAsIs(encoding: ValueEncoding): boolean {
  if (typeof encoding === 'string') return encoding === 'as_is';
  return 'items' in encoding ? isAsIs(encoding.items) : Object.values(encoding.members).every(isAsIs);
}

/** Whether subschemas, besides the schema's own properties, may name more members. */
function hasUnion(schema: JsonSchema): boolean {
  const dependent = Object.values((schema['dependentSchemas'] ?? {}) as Readonly<Record<string, JsonSchema>>);
  const parts = [...UNIONS.flatMap((keyword) => branchesOf(schema, keyword)), ...dependent];
  return parts.some((part) => hasMembers(part) || part['additionalProperties'] !== undefined || hasUnion(part));
}

const UNIONS = ['allOf', 'anyOf', 'oneOf'] as const;
const hasMembers = (schema: JsonSchema): boolean => Object.keys(propertiesOf(schema)).length > 0;
const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;
/** The form that `weakenSchema` gives to the schema `false`. */
const isFalseSchema = (schema: unknown): boolean =>
  isJsonObject(schema) && Object.keys(schema).join() === 'not' && Object.keys(schema['not'] ?? {}).length === 0;

const descriptionOf = (description: unknown): JsonSchema =>
  typeof description === 'string' && description !== '' ? { description } : {};
const pickKeywords = (schema: JsonSchema, keywords: readonly string[]): JsonSchema =>
  Object.fromEntries(keywords.filter((name) => Object.hasOwn(schema, name)).map((name) => [name, schema[name]]));

const EMPTY_INPUT: JsonSchema = { type: 'object', properties: {}, additionalProperties: { not: {} } };
const SCALAR_KEYWORDS = ['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const ARRAY_KEYWORDS = ['minItems', 'maxItems'];
