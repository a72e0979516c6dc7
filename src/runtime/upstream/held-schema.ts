// The schema by which the contract holds a tool of an upstream server: closed objects and little else (S1-02), while
// the schemas of servers may be open anywhere. What cannot be held as it is, is held as a text of JSON in its place:
// what goes through stays visible, and is still checked against the server's own schema once it is read.

import { canonicalJson } from '../../contract/canonical-json.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { scanJson } from '../../step/json-scanner.js';
import type { WalkedSchema } from './weakened-schema.js';

/** Deeper parts are texts. The contract's own limit is 12. */
const DEPTH_MAX = 8;
/** Of an input as agents give it, and of the JSON inside a text. */
const INPUT_DEPTH_MAX = 64;
const TEXT_DEPTH_MAX = 32;
/** The one member of an input that can only be held as a text. */
const WHOLE = 'json';

/** Where in a value a text of JSON stands for what it says. */
type Coding = 'as_is' | 'text' | { readonly members: Readonly<Record<string, Coding>> } | { readonly items: Coding };

export interface Held {
  readonly schema: WalkedSchema;
  readonly coding: Coding;
}

export interface HeldInput extends Held {
  /** It is one text as a whole. */
  readonly whole: boolean;
}

/** How the input of a tool is held: always as a closed object, also where its server would take more. */
export function heldInput(schema: WalkedSchema): HeldInput {
  // A schema that says no more than `object` is how servers describe a tool that takes nothing.
  const bare = schema['type'] === 'object' && !hasMembers(schema) && schema['additionalProperties'] === undefined;
  const held = heldAt(bare && !hasUnion(schema) ? TAKES_NOTHING : schema, INPUT);
  if (held.schema['type'] === 'object') return { ...held, whole: false };
  return { ...objectOf({ [WHOLE]: asText('The whole input.') }, [WHOLE], undefined), whole: true };
}

/** How the structured part of an answer is held. */
export const heldOutput = (schema: WalkedSchema): Held => heldAt(schema, { ...INPUT, side: 'output' });

/** Any JSON at all, held as a text. */
export const heldAnything = (): Held => heldOutput({});

/** The input as the server is to get it. @returns null where a text holds no JSON, or not that of an object */
export function decodedInput({ coding, whole }: HeldInput, input: JsonObject): JsonObject | null {
  // Read anew: members that objects inherit must not pass for members of the input.
  const own = scanJson(canonicalJson(input), INPUT_DEPTH_MAX);
  const read = own.ok ? decoded(coding, own.value) : undefined;
  const value = whole && isJsonObject(read) ? read[WHOLE] : read;
  return isJsonObject(value) ? value : null;
}

/** The structured part of an answer as it is held: members that the server's schema does not name are left out. */
export function encodedOutput(coding: Coding, value: Json): Json {
  if (coding === 'as_is') return value;
  if (coding === 'text') return canonicalJson(value);
  if ('items' in coding)
    return Array.isArray(value) ? value.map((item: Json) => encodedOutput(coding.items, item)) : value;
  if (!isJsonObject(value)) return value;
  const named = Object.entries(coding.members).filter(([name]) => Object.hasOwn(value, name));
  return Object.fromEntries(named.map(([name, member]) => [name, encodedOutput(member, value[name] ?? null)]));
}

/** @returns undefined where a text holds no JSON */
function decoded(coding: Coding, value: Json): Json | undefined {
  if (coding === 'as_is') return value;
  if (coding === 'text') {
    const scanned = typeof value === 'string' ? scanJson(value, TEXT_DEPTH_MAX) : null;
    return scanned?.ok === true ? scanned.value : undefined;
  }
  if ('items' in coding) {
    if (!Array.isArray(value)) return undefined;
    const items = value.map((item: Json) => decoded(coding.items, item));
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const members = Object.create(null) as Record<string, Json>;
  for (const [name, member] of Object.entries(value)) {
    const own = Object.hasOwn(coding.members, name) ? coding.members[name] : undefined;
    const read = own === undefined ? undefined : decoded(own, member);
    if (read === undefined) return undefined;
    members[name] = read;
  }
  return members;
}

interface Place {
  readonly depth: number;
  readonly side: 'input' | 'output';
  /** Which branch a value belongs to is not known where it is read, so nothing in one can be rewritten. */
  readonly inUnion: boolean;
}
const INPUT: Place = { depth: 0, side: 'input', inUnion: false };

function heldAt(schema: WalkedSchema, place: Place): Held {
  const { type, description, allOf } = schema;
  if (place.depth > DEPTH_MAX) return asText(description);
  const values = schema['const'] === undefined ? schema['enum'] : [schema['const']];
  if (Array.isArray(values)) {
    return values.every(isScalar) ? asIs({ ...described(description), enum: values }) : asText(description);
  }
  if (Array.isArray(type)) {
    const branches = type.map((one: string) => ({ ...schema, description: undefined, type: one }));
    return heldUnion(branches, description, place);
  }
  const union = (schema['anyOf'] ?? schema['oneOf']) as readonly WalkedSchema[] | undefined;
  if (union !== undefined && (type === undefined || (type === 'object' && !hasMembers(schema)))) {
    const branches = union.map((branch) => (type === undefined ? branch : { type, ...branch }));
    return heldUnion(branches, description, place);
  }
  if (type === undefined && Array.isArray(allOf) && allOf.length === 1) {
    const [only] = allOf as readonly WalkedSchema[];
    return heldAt({ ...only, ...described(description) }, { ...place, depth: place.depth + 1 });
  }
  if (type === 'object') return heldObject(schema, place);
  if (type === 'array') return heldArray(schema, place);
  if (typeof type !== 'string') return asText(description);
  return asIs({ ...described(description), type, ...picked(schema, SCALAR_KEYWORDS) });
}

function heldUnion(branches: readonly WalkedSchema[], description: unknown, place: Place): Held {
  const held = branches.map((branch) => heldAt(branch, { ...place, depth: place.depth + 1, inUnion: true }));
  if (!held.every(({ coding }) => isAsIs(coding))) return asText(description);
  return asIs({ ...described(description), anyOf: held.map((branch) => branch.schema) });
}

function heldObject(schema: WalkedSchema, { depth, side, inUnion }: Place): Held {
  const { description, additionalProperties: others } = schema;
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, WalkedSchema>>;
  const required = (schema['required'] ?? []) as readonly string[];
  const closed = isNothing(others);
  const maps = !closed && (!hasMembers(schema) || (isSchema(others) && Object.keys(others).length > 0));
  // An answer cannot be cut to what its branch of a union names: the branch must be closed by itself.
  const uncut = side === 'output' && inUnion && !closed;
  const unnamed = required.some((name) => !Object.hasOwn(properties, name));
  if (maps || uncut || unnamed || hasUnion(schema)) return asText(description);
  const members = Object.entries(properties).map(
    ([name, member]) => [name, heldAt(member, { depth: depth + 1, side, inUnion })] as const,
  );
  return objectOf(Object.fromEntries(members), required, description);
}

function heldArray(schema: WalkedSchema, place: Place): Held {
  const { items, description } = schema;
  if (!isSchema(items) || schema['prefixItems'] !== undefined) return asText(description);
  const each = heldAt(items, { ...place, depth: place.depth + 1 });
  const held = { ...described(description), type: 'array', items: each.schema, ...picked(schema, ARRAY_KEYWORDS) };
  return { schema: held, coding: { items: each.coding } };
}

function objectOf(members: Readonly<Record<string, Held>>, required: readonly string[], description: unknown): Held {
  const entries = Object.entries(members);
  const schema = {
    ...described(description),
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, member]) => [name, member.schema])),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
    additionalProperties: false,
  };
  return { schema, coding: { members: Object.fromEntries(entries.map(([name, { coding }]) => [name, coding])) } };
}

const asIs = (schema: WalkedSchema): Held => ({ schema, coding: 'as_is' });

const asText = (description: unknown): Held => ({
  schema: {
    type: 'string',
    description: `JSON as a text. ${typeof description === 'string' ? description : ''}`.trim(),
  },
  coding: 'text',
});

function isAsIs(coding: Coding): boolean {
  if (typeof coding === 'string') return coding === 'as_is';
  return 'items' in coding ? isAsIs(coding.items) : Object.values(coding.members).every(isAsIs);
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
const isNothing = (schema: unknown): boolean =>
  isSchema(schema) && Object.keys(schema).join() === 'not' && Object.keys(schema['not'] ?? {}).length === 0;

const described = (description: unknown): WalkedSchema =>
  typeof description === 'string' && description !== '' ? { description } : {};
const picked = (schema: WalkedSchema, keywords: readonly string[]): WalkedSchema =>
  Object.fromEntries(keywords.filter((name) => Object.hasOwn(schema, name)).map((name) => [name, schema[name]]));

const TAKES_NOTHING: WalkedSchema = { type: 'object', properties: {}, additionalProperties: { not: {} } };
const SCALAR_KEYWORDS = ['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const ARRAY_KEYWORDS = ['minItems', 'maxItems'];
