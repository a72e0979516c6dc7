// The Cedar type of a registered JSON Schema, and the conversion of a value of that schema. Both follow the schema, so
// an agent cannot choose how Cedar reads a value.

import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import { branchesOf, listAt, propertiesOf, requiredOf, type JsonSchema } from '../../core/contract/json-schema.js';
import type { CedarRecordType, CedarType, CedarValue } from './cedar.js';

/** What Cedar can hold of a schema. */
export type ValueShape =
  | { readonly kind: 'Long' | 'String' | 'Boolean' | 'decimal' | 'datetime' | 'duration' }
  | { readonly kind: 'Set'; readonly element: ValueShape }
  | RecordShape;
export interface RecordShape {
  readonly kind: 'Record';
  readonly attributes: readonly Attribute[];
}
export interface Attribute {
  readonly name: string;
  readonly shape: ValueShape;
  /** False if it can be absent or null: both are an absent attribute. */
  readonly required: boolean;
}

export const recordOf = (...attributes: readonly Attribute[]): RecordShape => ({ kind: 'Record', attributes });
export const required = (name: string, shape: ValueShape): Attribute => ({ name, shape, required: true });
export const optional = (name: string, shape: ValueShape): Attribute => ({ name, shape, required: false });

export const STRING: ValueShape = { kind: 'String' };
export const LONG: ValueShape = { kind: 'Long' };
export const BOOLEAN: ValueShape = { kind: 'Boolean' };
export const DATETIME: ValueShape = { kind: 'datetime' };

/** A value that Cedar cannot hold exactly. The request is denied. */
export class InexactValueError extends Error {
  /** Names of the record that leads to the value, the outermost first. */
  readonly path: string[] = [];
}

/** The shape of an object's schema: properties that Cedar cannot hold are left out, so no condition can name them. */
export function recordShapeOf(schema: JsonSchema): RecordShape {
  const names = requiredOf(schema);
  return recordShapeBy(schema, (part, name) => {
    const found = nullableShapeOf(part);
    return found === null ? null : { shape: found.shape, required: names.includes(name) && !found.nullable };
  });
}

/**
 * A record of an object's properties.
 * @param attributeOf the attribute of a property; null leaves it out
 */
export function recordShapeBy(
  schema: JsonSchema,
  attributeOf: (part: JsonSchema, name: string) => Omit<Attribute, 'name'> | null,
): RecordShape {
  const attributes = Object.entries(propertiesOf(schema)).flatMap(([name, part]): Attribute[] => {
    // Names with this beginning are how Cedar's JSON marks an entity or an extension value.
    const found = isJsonObject(part) && !name.startsWith('__') ? attributeOf(part, name) : null;
    return found === null ? [] : [{ name, ...found }];
  });
  return recordOf(...attributes);
}

interface NullableShape {
  readonly shape: ValueShape;
  readonly nullable: boolean;
}

/** @returns null if Cedar has no type for it */
function nullableShapeOf(schema: JsonSchema): NullableShape | null {
  const branches = branchesOf(schema, 'anyOf');
  if (branches.length === 0) {
    const shape = shapeOf(schema);
    return shape === null ? null : { shape, nullable: listAt(schema, 'enum').includes(null) };
  }
  const others = branches.filter(({ type }) => type !== 'null');
  const shapes = others.map(nullableShapeOf);
  const [first] = shapes;
  if (first == null || shapes.some((shape) => shape === null || !isSameShape(shape.shape, first.shape))) return null;
  const nullable = others.length < branches.length || shapes.some((shape) => shape?.nullable === true);
  return { shape: first.shape, nullable };
}

const isSameShape = (one: ValueShape, other: ValueShape): boolean => JSON.stringify(one) === JSON.stringify(other);

function shapeOf(schema: JsonSchema): ValueShape | null {
  switch (schema['type']) {
    case 'string':
      return stringShape(schema['format']);
    case 'integer':
      return LONG;
    case 'number':
      return { kind: 'decimal' };
    case 'boolean':
      return BOOLEAN;
    case 'object':
      return recordShapeOf(schema);
    case 'array': {
      const items = isJsonObject(schema['items']) ? nullableShapeOf(schema['items']) : null;
      return items === null || items.nullable ? null : { kind: 'Set', element: items.shape };
    }
    case undefined:
      return literalShape(schema['enum'] === undefined ? [schema['const']] : listAt(schema, 'enum'));
    default:
      return null;
  }
}

function stringShape(format: unknown): ValueShape {
  if (format === 'date' || format === 'date-time') return DATETIME;
  return format === 'duration' ? { kind: 'duration' } : STRING;
}

/** The shape of an enumeration: of text, of integers, or of truth values. */
function literalShape(values: readonly unknown[]): ValueShape | null {
  const present = values.filter((value) => value !== null);
  if (present.length === 0) return null;
  if (present.every((value) => typeof value === 'string')) return STRING;
  if (present.every((value) => typeof value === 'boolean')) return BOOLEAN;
  return present.every((value) => Number.isSafeInteger(value)) ? LONG : null;
}

/** The type of a shape in a Cedar schema. */
export function cedarTypeOf(shape: ValueShape): CedarType {
  switch (shape.kind) {
    case 'Record':
      return recordTypeOf(shape);
    case 'Set':
      return { type: 'Set', element: cedarTypeOf(shape.element) };
    case 'Long':
    case 'String':
    case 'Boolean':
      return { type: shape.kind };
    default:
      return { type: 'Extension', name: shape.kind };
  }
}

export const recordTypeOf = ({ attributes }: RecordShape): CedarRecordType => ({
  type: 'Record',
  attributes: Object.fromEntries(
    attributes.map(({ name, shape, required }) => [name, { ...cedarTypeOf(shape), required }]),
  ),
});

/**
 * Converts a value that matches the schema of the shape. A member that the shape does not have is left out.
 * @throws InexactValueError
 */
export function toCedar(shape: ValueShape, value: Json): CedarValue {
  switch (shape.kind) {
    case 'Record':
      return recordToCedar(shape, isJsonObject(value) ? value : refuse('it is not an object'));
    case 'Set':
      return Array.isArray(value)
        ? value.map((item: Json) => toCedar(shape.element, item))
        : refuse('it is not a list');
    case 'Long':
      return typeof value === 'number' && Number.isSafeInteger(value)
        ? value
        : refuse('it is not an integer that Cedar holds exactly');
    case 'Boolean':
      return typeof value === 'boolean' ? value : refuse('it is not true or false');
    case 'String':
      return typeof value === 'string' ? value : refuse('it is not a text');
    case 'decimal':
      return extension('decimal', decimalText(value));
    case 'datetime':
      return extension('datetime', datetimeText(value));
    case 'duration':
      return extension('duration', durationText(value));
  }
}

export function recordToCedar({ attributes }: RecordShape, value: JsonObject): Record<string, CedarValue> {
  const record: Record<string, CedarValue> = {};
  for (const { name, shape, required } of attributes) {
    const member = Object.hasOwn(value, name) ? value[name] : undefined;
    if (member !== undefined && member !== null) record[name] = memberToCedar(name, shape, member);
    else if (required) refuse(`${name} is missing`);
  }
  return record;
}

function memberToCedar(name: string, shape: ValueShape, value: Json): CedarValue {
  try {
    return toCedar(shape, value);
  } catch (error) {
    if (error instanceof InexactValueError) error.path.unshift(name);
    throw error;
  }
}

export const extension = (fn: 'decimal' | 'datetime' | 'duration', text: string): CedarValue => ({
  __extn: { fn, arg: text },
});

function refuse(why: string): never {
  throw new InexactValueError(why);
}

/** Cedar's decimal has at most 4 digits after the point and 64 bits; a number of JSON keeps 15 digits. */
const DECIMAL = /^(-?\d{1,11})(?:\.(\d{1,4}))?$/;

function decimalText(value: Json): string {
  const [, whole, fraction = '0'] = (typeof value === 'number' && DECIMAL.exec(String(value))) || [];
  return whole === undefined
    ? refuse('it is not a number with at most 4 digits after the point')
    : `${whole}.${fraction}`;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?(?:Z|[+-]\d{2}:\d{2})$/;

/** A date is its first moment in UTC. */
function datetimeText(value: Json): string {
  if (typeof value !== 'string' || (!DATE.test(value) && !DATE_TIME.test(value))) return refuse('it is not a date');
  const at = Date.parse(value);
  if (Number.isNaN(at) || !isRealDay(value)) return refuse('there is no such day');
  return new Date(at).toISOString();
}

/** The parser of JavaScript takes 30 February for 2 March. */
function isRealDay(value: string): boolean {
  const day = value.slice(0, 10);
  const time = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day);
}

const DURATION = /^P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,3}))?S)?)?$/;

/** Years, months and weeks have no fixed length, or none that Cedar writes: such a duration is refused. */
function durationText(value: Json): string {
  const text = typeof value === 'string' ? value : '';
  const parts = DURATION.exec(text);
  if (parts === null || text === 'P' || text.endsWith('T')) {
    return refuse('it is not a duration of days, hours, minutes and seconds');
  }
  const [, days = '0', hours = '0', minutes = '0', seconds = '0', fraction = ''] = parts;
  return `${days}d${hours}h${minutes}m${seconds}s${fraction.padEnd(3, '0')}ms`;
}
