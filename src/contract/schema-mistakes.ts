// What is wrong with a document that does not have the shape of its schema, in words for whoever wrote it.

import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { inQuotes, printable } from './finding-text.js';

export const SCHEMA_RULES = ['schema.unknown_key', 'schema.missing_key', 'schema.type', 'schema.value'] as const;
export type SchemaRule = (typeof SCHEMA_RULES)[number];

/** One place in a document that its schema does not admit. The message is one line of printable ASCII. */
export interface Mistake {
  /** JSON pointer of what is wrong, or of what lacks something. */
  readonly pointer: string;
  readonly rule: SchemaRule;
  readonly message: string;
}

interface Shape {
  Check(value: unknown): boolean;
  Errors(value: unknown): TLocalizedValidationError[];
}
const shapes = new Map<TSchema, Shape>();

function shapeOf(schema: TSchema): Shape {
  const shape = shapes.get(schema) ?? Compile(schema);
  shapes.set(schema, shape);
  return shape;
}

/** Values must come from a parser: inherited members count as present. */
export const isInstance = <const T extends TSchema>(schema: T, value: unknown): value is Static<T> =>
  shapeOf(schema).Check(value);

/**
 * The first few mistakes of `value`; none exactly when it is an instance of `schema`.
 * @param at where the value stands: a JSON pointer that goes before those of the mistakes
 */
export function mistakesIn(schema: TSchema, value: unknown, at = ''): readonly Mistake[] {
  if (isInstance(schema, value)) return [];
  const told = shapeOf(schema)
    .Errors(value)
    .flatMap((error) => mistakesOf(error, at));
  const mistakes =
    told.length > 0 ? told : [{ pointer: at, rule: 'schema.value', message: `${named(at)} is wrong` } as const];
  // The same may be said twice: of a constant, for example, that it has the wrong type and the wrong value.
  return [...new Map(mistakes.map((mistake) => [mistake.message, mistake])).values()];
}

const named = (pointer: string): string => (pointer === '' ? 'the file' : printable(pointer));

function mistakesOf({ keyword, instancePath, params, message }: TLocalizedValidationError, at: string): Mistake[] {
  const pointer = at + instancePath;
  const where = named(pointer);
  // An unknown key is told of twice, at itself and at its object; the second is dropped, as the first few errors of a
  // file are all there are, and may all be of the first kind.
  if (keyword === 'additionalProperties') return [];
  if (keyword === 'boolean') return [{ pointer, rule: 'schema.unknown_key', message: `${where} is not known` }];
  if (keyword === 'required') {
    return params.requiredProperties.map((key) => {
      return { pointer, rule: 'schema.missing_key', message: `${where} has no ${inQuotes(key)}` };
    });
  }
  const rule = keyword === 'type' ? 'schema.type' : 'schema.value';
  if (keyword === 'const')
    return [{ pointer, rule, message: printable(`${where} must be ${String(params.allowedValue)}`) }];
  const allowed = keyword === 'enum' ? `: ${params.allowedValues.join(', ')}` : '';
  return [{ pointer, rule, message: printable(`${where} ${message}${allowed}`) }];
}
