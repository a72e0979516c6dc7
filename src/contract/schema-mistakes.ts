// What is wrong with a document that does not have the shape of its schema, in words for whoever wrote it.

import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { quoteForMessage, toPrintable } from './finding-text.js';

export const SCHEMA_RULES = ['schema.unknown_key', 'schema.missing_key', 'schema.type', 'schema.value'] as const;
export type SchemaRule = (typeof SCHEMA_RULES)[number];

/** One place in a document that its schema does not admit. The message is one line of printable ASCII. */
export interface SchemaMistake {
  /** JSON pointer of what is wrong, or of what lacks something. */
  readonly pointer: string;
  readonly rule: SchemaRule;
  readonly message: string;
}

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

/** Values must come from a parser: inherited members count as present. */
export const isInstance = <const T extends TSchema>(schema: T, value: unknown): value is Static<T> =>
  compiledSchemaOf(schema).Check(value);

/**
 * The first few mistakes of `value`; none exactly when it is an instance of `schema`.
 * @param at where the value stands: a JSON pointer that goes before those of the mistakes
 */
export function findSchemaMistakes(schema: TSchema, value: unknown, at = ''): readonly SchemaMistake[] {
  if (isInstance(schema, value)) return [];
  const reported = compiledSchemaOf(schema)
    .Errors(value)
    .flatMap((error) => toSchemaMistakes(error, at));
  const mistakes =
    reported.length > 0
      ? reported
      : [{ pointer: at, rule: 'schema.value', message: `${nameOfPointer(at)} is wrong` } as const];
  // The same may be said twice: of a constant, for example, that it has the wrong type and the wrong value.
  return [...new Map(mistakes.map((mistake) => [mistake.message, mistake])).values()];
}

const nameOfPointer = (pointer: string): string => (pointer === '' ? 'the file' : toPrintable(pointer));

function toSchemaMistakes(
  { keyword, instancePath, params, message }: TLocalizedValidationError,
  at: string,
): SchemaMistake[] {
  const pointer = at + instancePath;
  const where = nameOfPointer(pointer);
  // An unknown key is told of twice, at itself and at its object; the second is dropped, as the first few errors of a
  // file are all there are, and may all be of the first kind.
  if (keyword === 'additionalProperties') return [];
  if (keyword === 'boolean') return [{ pointer, rule: 'schema.unknown_key', message: `${where} is not known` }];
  if (keyword === 'required') {
    return params.requiredProperties.map((key) => {
      return { pointer, rule: 'schema.missing_key', message: `${where} has no ${quoteForMessage(key)}` };
    });
  }
  const rule = keyword === 'type' ? 'schema.type' : 'schema.value';
  if (keyword === 'const')
    return [{ pointer, rule, message: toPrintable(`${where} must be ${String(params.allowedValue)}`) }];
  const allowed = keyword === 'enum' ? `: ${params.allowedValues.join(', ')}` : '';
  return [{ pointer, rule, message: toPrintable(`${where} ${message}${allowed}`) }];
}
