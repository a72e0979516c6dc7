// The schema by which the contract holds a tool of an upstream server: closed objects and little else (S1-02), while
// the schemas of servers may be open anywhere. What cannot be held as it is, is held as a text of JSON in its place:
// what goes through stays visible, and is still checked against the server's own schema once it is read.

import { canonicalJson } from '../../contract/canonical-json.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { scanJson } from '../../step/json-scanner.js';
import type { WalkedSchema } from './weaken-schema.js';

/** Deeper parts are texts. The contract's own limit is 12. */
const DEPTH_MAX = 8;
/** Of an input as agents give it, and of the JSON inside a text. */
const INPUT_DEPTH_MAX = 64;
const TEXT_DEPTH_MAX = 32;
/** The one member of an input that can only be held as a text. */
const WHOLE_INPUT = 'json';

/** Where in a value a text of JSON stands for what it says. */
type ValueEncoding =
  'as_is' | 'text' | { readonly members: Readonly<Record<string, ValueEncoding>> } | { readonly items: ValueEncoding };

export interface ConvertedSchema {
  readonly schema: WalkedSchema;
  readonly encoding: ValueEncoding;
}

export interface ConvertedInput extends ConvertedSchema {
  /** It is one text as a whole. */
  readonly whole: boolean;
}

/** How the input of a tool is held: always as a closed object, also where its server would take more. */
export function convertInputSchema(schema: WalkedSchema): ConvertedInput {
  // A schema that says no more than `object` is how servers describe a tool that takes nothing.
  const bare = schema['type'] === 'object' && !hasMembers(schema) && schema['additionalProperties'] === undefined;
  const converted = convertSchema(bare && !hasUnion(schema) ? EMPTY_INPUT : schema, INPUT_ROOT);
  if (converted.schema['type'] === 'object') return { ...converted, whole: false };
  return { ...convertedObject({ [WHOLE_INPUT]: asText('The whole input.') }, [WHOLE_INPUT], undefined), whole: true };
}

/** How the structured part of an answer is held. */
export const convertOutputSchema = (schema: WalkedSchema): ConvertedSchema =>
  convertSchema(schema, { ...INPUT_ROOT, side: 'output' });

/** Any JSON at all, held as a text. */
export const anyJsonSchema = (): ConvertedSchema => convertOutputSchema({});

/** The input as the server is to get it. @returns null where a text holds no JSON, or not that of an object */
export function decodeInput({ encoding, whole }: ConvertedInput, input: JsonObject): JsonObject | null {
  // Read anew: members that objects inherit must not pass for members of the input.
  const own = scanJson(canonicalJson(input), INPUT_DEPTH_MAX);
  const read = own.ok ? decodeValue(encoding, own.value) : undefined;
  const value = whole && isJsonObject(read) ? read[WHOLE_INPUT] : read;
  return isJsonObject(value) ? value : null;
}

/** The structured part of an answer as it is held: members that the server's schema does not name are left out. */
export function encodeOutput(encoding: ValueEncoding, value: Json): Json {
  if (encoding === 'as_is') return value;
  if (encoding === 'text') return canonicalJson(value);
  if ('items' in encoding)
    return Array.isArray(value) ? value.map((item: Json) => encodeOutput(encoding.items, item)) : value;
  if (!isJsonObject(value)) return value;
  const named = Object.entries(encoding.members).filter(([name]) => Object.hasOwn(value, name));
  return Object.fromEntries(named.map(([name, member]) => [name, encodeOutput(member, value[name] ?? null)]));
}

/** @returns undefined where a text holds no JSON */
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
  /** Which branch a value belongs to is not known where it is read, so nothing in one can be rewritten. */
  readonly inUnion: boolean;
}
const INPUT_ROOT: SchemaPosition = { depth: 0, side: 'input', inUnion: false };

function convertSchema(schema: WalkedSchema, position: SchemaPosition): ConvertedSchema {
  const { type, description, allOf } = schema;
  if (position.depth > DEPTH_MAX) return asText(description);
  const values = schema['const'] === undefined ? schema['enum'] : [schema['const']];
  if (Array.isArray(values)) {
    return values.every(isScalar) ? asIs({ ...descriptionOf(description), enum: values }) : asText(description);
  }
  if (Array.isArray(type)) {
    const branches = type.map((one: string) => ({ ...schema, description: undefined, type: one }));
    return convertUnion(branches, description, position);
  }
  const union = (schema['anyOf'] ?? schema['oneOf']) as readonly WalkedSchema[] | undefined;
  if (union !== undefined && (type === undefined || (type === 'object' && !hasMembers(schema)))) {
    const branches = union.map((branch) => (type === undefined ? branch : { type, ...branch }));
    return convertUnion(branches, description, position);
  }
  if (type === undefined && Array.isArray(allOf) && allOf.length === 1) {
    const [only] = allOf as readonly WalkedSchema[];
    return convertSchema({ ...only, ...descriptionOf(description) }, { ...position, depth: position.depth + 1 });
  }
  if (type === 'object') return convertObject(schema, position);
  if (type === 'array') return convertArray(schema, position);
  if (typeof type !== 'string') return asText(description);
  return asIs({ ...descriptionOf(description), type, ...pickKeywords(schema, SCALAR_KEYWORDS) });
}

function convertUnion(
  branches: readonly WalkedSchema[],
  description: unknown,
  position: SchemaPosition,
): ConvertedSchema {
  const converted = branches.map((branch) =>
    convertSchema(branch, { ...position, depth: position.depth + 1, inUnion: true }),
  );
  if (!converted.every(({ encoding }) => isAsIs(encoding))) return asText(description);
  return asIs({ ...descriptionOf(description), anyOf: converted.map((branch) => branch.schema) });
}

function convertObject(schema: WalkedSchema, { depth, side, inUnion }: SchemaPosition): ConvertedSchema {
  const { description, additionalProperties: others } = schema;
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, WalkedSchema>>;
  const required = (schema['required'] ?? []) as readonly string[];
  const closed = isFalseSchema(others);
  const maps = !closed && (!hasMembers(schema) || (isSchema(others) && Object.keys(others).length > 0));
  // An answer cannot be cut to what its branch of a union names: the branch must be closed by itself.
  const uncut = side === 'output' && inUnion && !closed;
  const unnamed = required.some((name) => !Object.hasOwn(properties, name));
  if (maps || uncut || unnamed || hasUnion(schema)) return asText(description);
  const members = Object.entries(properties).map(
    ([name, member]) => [name, convertSchema(member, { depth: depth + 1, side, inUnion })] as const,
  );
  return convertedObject(Object.fromEntries(members), required, description);
}

function convertArray(schema: WalkedSchema, position: SchemaPosition): ConvertedSchema {
  const { items, description } = schema;
  if (!isSchema(items) || schema['prefixItems'] !== undefined) return asText(description);
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

const asIs = (schema: WalkedSchema): ConvertedSchema => ({ schema, encoding: 'as_is' });

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

/** Whether parts of a schema beside its own properties may name others. */
function hasUnion(schema: WalkedSchema): boolean {
  const lists = [schema['allOf'], schema['anyOf'], schema['oneOf'], Object.values(schema['dependentSchemas'] ?? {})];
  const parts = lists.flatMap((list) => (list ?? []) as readonly WalkedSchema[]);
  return parts.some((part) => hasMembers(part) || part['additionalProperties'] !== undefined || hasUnion(part));
}

const hasMembers = ({ properties }: WalkedSchema): boolean => Object.keys(properties ?? {}).length > 0;
const isSchema = (value: unknown): value is WalkedSchema => typeof value === 'object' && value !== null;
const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;
/** What `false` was as a schema. */
const isFalseSchema = (schema: unknown): boolean =>
  isSchema(schema) && Object.keys(schema).join() === 'not' && Object.keys(schema['not'] ?? {}).length === 0;

const descriptionOf = (description: unknown): WalkedSchema =>
  typeof description === 'string' && description !== '' ? { description } : {};
const pickKeywords = (schema: WalkedSchema, keywords: readonly string[]): WalkedSchema =>
  Object.fromEntries(keywords.filter((name) => Object.hasOwn(schema, name)).map((name) => [name, schema[name]]));

const EMPTY_INPUT: WalkedSchema = { type: 'object', properties: {}, additionalProperties: { not: {} } };
const SCALAR_KEYWORDS = ['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const ARRAY_KEYWORDS = ['minItems', 'maxItems'];
