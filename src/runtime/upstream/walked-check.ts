// Whether a value conforms to the schema of an upstream server, found out only where that costs what it may: a large
// answer, held against a large schema, is as much work as their product, and nothing else happens meanwhile.

import { isJsonObject, type Json } from '../../contract/json.js';
import { satisfies } from '../../contract/registered-schema.js';
import type { WalkedSchema } from './weakened-schema.js';

/** Parts of a schema, each counted once for every value that is held against it. */
const STEPS_MAX = 500_000;
/** Names and constants are compared faster than parts are walked. */
const COMPARED_IN_A_STEP = 8;

/** @returns false also where finding out would take too long */
export function conformsWalked(schema: WalkedSchema, value: Json): boolean {
  const room = { steps: STEPS_MAX };
  count(room, schema, value);
  return room.steps >= 0 && satisfies(schema, value);
}

interface Room {
  steps: number;
}

/** As if every branch were tried to its end. */
function count(room: Room, schema: unknown, value: Json): void {
  room.steps -= 1;
  if (room.steps < 0 || !isSchema(schema)) return;
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const branch of listOf(schema[keyword])) count(room, branch, value);
  }
  if (schema['not'] !== undefined) count(room, schema['not'], value);
  const [values, required] = [listOf(schema['enum']), listOf(schema['required'])];
  room.steps -= values.some((one) => typeof one === 'object') ? values.length : values.length / COMPARED_IN_A_STEP;
  room.steps -= required.length / COMPARED_IN_A_STEP;
  if (Array.isArray(value)) countItems(room, schema, value as readonly Json[]);
  else if (isJsonObject(value)) countMembers(room, schema, Object.entries(value));
}

function countItems(room: Room, schema: WalkedSchema, items: readonly Json[]): void {
  const first = listOf(schema['prefixItems']);
  if (schema['uniqueItems'] === true) room.steps -= items.length;
  for (const [index, item] of items.entries()) {
    if (room.steps < 0) return;
    const part = first[index] ?? schema['items'];
    if (part !== undefined) count(room, part, item);
  }
}

function countMembers(room: Room, schema: WalkedSchema, members: readonly (readonly [string, Json])[]): void {
  const { properties, additionalProperties: others, propertyNames: names, dependentSchemas: dependent } = schema;
  const known = isSchema(properties) ? properties : {};
  const whole = Object.fromEntries(members);
  room.steps -= Object.keys(known).length / COMPARED_IN_A_STEP;
  for (const [name, member] of members) {
    if (room.steps < 0) return;
    const part = Object.hasOwn(known, name) ? known[name] : others;
    if (part !== undefined) count(room, part, member);
    if (names !== undefined) count(room, names, name);
    if (isSchema(dependent) && Object.hasOwn(dependent, name)) count(room, dependent[name], whole);
  }
}

const isSchema = (value: unknown): value is WalkedSchema => typeof value === 'object' && value !== null;
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
