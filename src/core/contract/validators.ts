// Validators of the contract's documents, each compiled on first use, and explanations of what does not match.

import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { quoteForMessage, toPrintable } from './finding-text.js';
import { isJsonObject } from './json.js';
import { branchesOf, propertiesOf } from './json-schema.js';
import { suggestion } from './policy/near-names.js';
import { describeTextRule } from './text-rule.js';
import { entrySchema, inputSchema, type EntryBody, type EntryType, type RecordedInput } from './run/entry.js';

interface CompiledSchema {
  Check(value: unknown): boolean;
  Errors(value: unknown): TLocalizedValidationError[];
}
const compiledSchemas = new Map<TSchema, CompiledSchema>();

function compiledSchemaOf(schema: TSchema): CompiledSchema {
  const shape = compiledSchemas.get(schema) ?? Compile(schema);
  compiledSchemas.set(schema, shape);
  return shape;
}

/** Whether `value` matches `schema`. Values must come from a parser: inherited members count as present. */
export const isConforming = (schema: TSchema, value: unknown): boolean => compiledSchemaOf(schema).Check(value);

/** `isConforming`, as a type guard. */
export const isInstance = <const T extends TSchema>(schema: T, value: unknown): value is Static<T> =>
  isConforming(schema, value);

/** Whether a body matches the schema of its type: of core, or of a feature that is installed. */
export function isEntryBody<T extends EntryType>(type: T, value: unknown): value is EntryBody<T> {
  if (type === 'input') return isRecordedInput(value);
  const schema = entrySchema(type);
  return schema !== null && isConforming(schema, value);
}

export function isRecordedInput(value: unknown): value is RecordedInput {
  const kind = (value as { kind?: unknown } | null)?.kind;
  const schema = typeof kind === 'string' ? inputSchema(kind) : null;
  return schema !== null && isConforming(schema, value);
}

export const SCHEMA_RULES = ['schema.unknown_key', 'schema.missing_key', 'schema.type', 'schema.value'] as const;
export type SchemaRule = (typeof SCHEMA_RULES)[number];

/** One place in a document where it does not match its schema. The message is one line of printable ASCII. */
export interface SchemaMistake {
  /** JSON pointer of the wrong value, or of the object that lacks a member. */
  readonly pointer: string;
  readonly rule: SchemaRule;
  readonly message: string;
}

/**
 * @returns the first few mistakes of `value`; empty exactly when it matches `schema`
 * @param at JSON pointer of the value; it becomes the prefix of every pointer in the result
 */
export function findSchemaMistakes(schema: TSchema, value: unknown, at = ''): readonly SchemaMistake[] {
  if (isInstance(schema, value)) return [];
  const reported = compiledSchemaOf(schema)
    .Errors(value)
    .flatMap((error) => toSchemaMistakes(error, at, schema));
  const mistakes =
    reported.length > 0
      ? reported
      : [{ pointer: at, rule: 'schema.value', message: `${nameOfPointer(at)} is wrong` } as const];
  // The validator can report one mistake twice: of a constant, for example, the wrong type and the wrong value.
  return [...new Map(mistakes.map((mistake) => [mistake.message, mistake])).values()];
}

/** The names of the way to a value, and its own. */
function splitPointer(pointer: string): readonly [readonly string[], string] {
  const names = pointer.split('/').map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  return [names.slice(1, -1), names.at(-1) ?? ''];
}

/** The keys that an object at this place of the schema can have. */
function keysAt(schema: unknown, [name, ...rest]: readonly string[]): readonly string[] {
  if (!isJsonObject(schema)) return [];
  const properties = propertiesOf(schema);
  const here = [name, ...rest].filter((each) => each !== undefined);
  const branches = branchesOf(schema, 'anyOf').flatMap((branch) => keysAt(branch, here));
  if (name === undefined) return [...Object.keys(properties), ...branches];
  const inner = Object.hasOwn(properties, name) ? properties[name] : /^\d+$/.test(name) ? schema['items'] : undefined;
  return [...keysAt(inner, rest), ...branches];
}

const nameOfPointer = (pointer: string): string => (pointer === '' ? 'the file' : toPrintable(pointer));

function toSchemaMistakes(
  { keyword, instancePath, params, message }: TLocalizedValidationError,
  at: string,
  schema: TSchema,
): SchemaMistake[] {
  const pointer = at + instancePath;
  const where = nameOfPointer(pointer);
  // The validator reports an unknown key twice: at the key and at its object. Only the first is reported here, because
  // the number of mistakes in the result is limited and both could otherwise use it up.
  if (keyword === 'additionalProperties') return [];
  if (keyword === 'boolean') {
    const [parent, key] = splitPointer(instancePath);
    const message = `${where} is not known${suggestion(key, keysAt(schema, parent))}`;
    return [{ pointer, rule: 'schema.unknown_key', message }];
  }
  if (keyword === 'required') {
    return params.requiredProperties.map((key) => {
      return { pointer, rule: 'schema.missing_key', message: `${where} has no ${quoteForMessage(key)}` };
    });
  }
  const rule = keyword === 'type' ? 'schema.type' : 'schema.value';
  if (keyword === 'const')
    return [{ pointer, rule, message: toPrintable(`${where} must be ${String(params.allowedValue)}`) }];
  const words = keyword === 'pattern' ? describeTextRule({ pattern: String(params.pattern) }) : null;
  if (words !== null) return [{ pointer, rule, message: toPrintable(`${where} must have ${words}`) }];
  const allowed = keyword === 'enum' ? `: ${params.allowedValues.join(', ')}` : '';
  return [{ pointer, rule, message: toPrintable(`${where} ${message}${allowed}`) }];
}
