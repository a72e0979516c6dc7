// JSON Schemas as plain data: of registrations, of upstream servers, and of documents of the contract. The functions
// read the parts of a schema that may not have been checked yet, and take a malformed keyword for an absent one.

import { isJsonObject } from './json.js';

export type JsonSchema = Readonly<Record<string, unknown>>;

export const SCHEMA_TYPES: readonly unknown[] = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

/** Whether a value suits `minLength` and other keywords that count. */
export const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

/** The schemas of the members that a schema names. */
export const propertiesOf = ({ properties }: JsonSchema): Readonly<Record<string, unknown>> =>
  isJsonObject(properties) ? properties : {};

/** The names of the members that a value must have. */
export const requiredOf = (schema: JsonSchema): readonly string[] => listAt(schema, 'required').map(String);

/** The schemas in a list of alternatives or of further constraints. */
export const branchesOf = (schema: JsonSchema, keyword: 'allOf' | 'anyOf' | 'oneOf'): readonly JsonSchema[] =>
  listAt(schema, keyword).filter(isJsonObject);

/** The list that a keyword holds. */
export function listAt(schema: JsonSchema, keyword: string): readonly unknown[] {
  const list = schema[keyword];
  return Array.isArray(list) ? list : [];
}

/** The parts of a schema of the registered subset that are schemas, each with its place. */
export const partsOf = (schema: JsonSchema): readonly (readonly [place: string, part: unknown])[] => [
  ...Object.entries(propertiesOf(schema)),
  ...(schema['items'] === undefined ? [] : [['items', schema['items']] as const]),
  ...listAt(schema, 'anyOf').map((part, index) => [`anyOf/${index}`, part] as const),
];
