// Where a value does not match the schema of an action, tool or target, in words of the schema. The words become part
// of entries, which hold no free text (C90): they contain nothing of the value, neither a text nor a name that the
// schema does not have. The library's own list of errors is not used, because its order and wording may change.

import { Check } from 'typebox/value';
import { quoteForMessage, toPrintable } from '../finding-text.js';
import { isJsonObject } from '../json.js';
import { branchesOf, propertiesOf, requiredOf, type JsonSchema } from '../json-schema.js';
import { describeTextRule } from '../text-rule.js';

/** A part of a value, and the constraint that it breaks. */
export interface SchemaMismatch {
  /** Names of the schema, and positions in lists. */
  readonly path: readonly (string | number)[];
  readonly constraint: string;
}

/** The maximum number of characters of an explanation. */
export const EXPLANATION_CHARS_MAX = 300;
const FIELD_CHARS_MAX = 120;
const ENUM_SHOWN_MAX = 12;

/** The first part of `value` that does not match `schema`; null if the whole value matches. */
export function findSchemaMismatch(schema: JsonSchema, value: unknown): SchemaMismatch | null {
  if (Check(schema, value)) return null;
  return mismatchAt(schema, value, []);
}

/** `args.amount: must be <= 100`: one bounded line of printable ASCII. */
export function explanationText(root: string, { path, constraint }: SchemaMismatch): string {
  const field = path.reduce<string>((text, part) => text + stepText(part, text === ''), root);
  const shown = field.length > FIELD_CHARS_MAX ? `...${field.slice(3 - FIELD_CHARS_MAX)}` : field;
  return `${shown === '' ? '' : `${shown}: `}${toPrintable(constraint)}`.slice(0, EXPLANATION_CHARS_MAX);
}

const SIMPLE_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

function stepText(part: string | number, isFirst: boolean): string {
  if (typeof part === 'number') return `[${part}]`;
  if (!SIMPLE_NAME.test(part)) return `[${quoteForMessage(part)}]`;
  return isFirst ? part : `.${part}`;
}

type Path = readonly (string | number)[];

function mismatchAt(schema: JsonSchema, value: unknown, path: Path): SchemaMismatch {
  const constraint = brokenConstraint(schema, value);
  if (constraint !== null) return { path, constraint };
  return (
    memberMismatch(schema, value, path) ??
    itemMismatch(schema, value, path) ??
    branchMismatch(schema, value, path) ?? { path, constraint: 'does not match its schema' }
  );
}

/** The constraints on the value itself, in the order in which they are checked, each with its words. */
const CONSTRAINTS: Readonly<Record<string, (limit: unknown) => string>> = {
  type: (type) => `must be ${typeWords(type)}`,
  const: (only) => `must be ${valueWords(only)}`,
  enum: (values) => enumWords(values as readonly unknown[]),
  minLength: (count) => `must have at least ${countWords(count, 'character')}`,
  maxLength: (count) => `must have at most ${countWords(count, 'character')}`,
  pattern: (pattern) => patternWords(String(pattern)),
  format: (format) => `must be ${FORMAT_WORDS[String(format)] ?? 'of another format'}`,
  minimum: (limit) => `must be >= ${String(limit)}`,
  maximum: (limit) => `must be <= ${String(limit)}`,
  exclusiveMinimum: (limit) => `must be > ${String(limit)}`,
  exclusiveMaximum: (limit) => `must be < ${String(limit)}`,
  minItems: (count) => `must have at least ${countWords(count, 'item')}`,
  maxItems: (count) => `must have at most ${countWords(count, 'item')}`,
};

const FORMAT_WORDS: Readonly<Record<string, string>> = {
  date: 'a date, such as 2026-01-05',
  'date-time': 'a date and time, such as 2026-01-05T10:00:00Z',
  duration: 'a duration, such as P1DT2H',
  email: 'one address, such as anna@a.example',
};

function brokenConstraint(schema: JsonSchema, value: unknown): string | null {
  for (const [keyword, words] of Object.entries(CONSTRAINTS)) {
    const limit = schema[keyword];
    if (limit !== undefined && !Check({ [keyword]: limit }, value)) return words(limit);
  }
  return null;
}

function memberMismatch(schema: JsonSchema, value: unknown, path: Path): SchemaMismatch | null {
  if (!isJsonObject(value) || schema['properties'] === undefined) return null;
  const properties = propertiesOf(schema);
  const missing = requiredOf(schema).find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return { path: [...path, missing], constraint: 'is missing' };
  // Names that the schema does not have are the agent's own: they are counted.
  const unknown = Object.keys(value).filter((name) => !Object.hasOwn(properties, name)).length;
  if (schema['additionalProperties'] === false && unknown > 0)
    return { path, constraint: `has ${countWords(unknown, 'unknown field')}` };
  for (const [name, member] of Object.entries(properties)) {
    if (Object.hasOwn(value, name) && isJsonObject(member) && !Check(member, value[name]))
      return mismatchAt(member, value[name], [...path, name]);
  }
  return null;
}

function itemMismatch({ items }: JsonSchema, value: unknown, path: Path): SchemaMismatch | null {
  if (!Array.isArray(value) || !isJsonObject(items)) return null;
  const at = value.findIndex((item) => !Check(items, item));
  return at < 0 ? null : mismatchAt(items, value[at], [...path, at]);
}

/** Of several alternatives, the one that is meant: the only one whose type and constants fit. */
function branchMismatch(schema: JsonSchema, value: unknown, path: Path): SchemaMismatch | null {
  const branches = branchesOf(schema, 'anyOf');
  if (branches.length === 0) return null;
  const types = branches.map(({ type }) => type).filter((type) => typeof type === 'string');
  const fitting = branches.filter((branch) => isMeant(branch, value));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return mismatchAt(only, value, path);
  if (types.length === branches.length && !types.some((type) => Check({ type }, value)))
    return { path, constraint: `must be ${[...new Set(types)].map(typeWords).join(' or ')}` };
  return { path, constraint: `must match one of ${branches.length} alternatives` };
}

function isMeant(branch: JsonSchema, value: unknown): boolean {
  if (branch['type'] === undefined || !Check({ type: branch['type'] }, value)) return false;
  if (!isJsonObject(value)) return true;
  return Object.entries(propertiesOf(branch)).every(
    ([name, member]) => !isJsonObject(member) || member['const'] === undefined || Check(member, value[name]),
  );
}

const typeWords = (type: unknown): string =>
  type === 'null' ? 'null' : `${/^[aeio]/.test(String(type)) ? 'an' : 'a'} ${String(type)}`;

const countWords = (count: unknown, unit: string): string => `${String(count)} ${unit}${count === 1 ? '' : 's'}`;

const valueWords = (value: unknown): string =>
  typeof value === 'string' ? quoteForMessage(value) : JSON.stringify(value);

function enumWords(values: readonly unknown[]): string {
  const shown = values.slice(0, ENUM_SHOWN_MAX).map(valueWords).join(', ');
  return `must be one of ${shown}${values.length > ENUM_SHOWN_MAX ? ', ...' : ''}`;
}

function patternWords(pattern: string): string {
  const beginning = /^\^([A-Za-z0-9_/-]+)$/.exec(pattern)?.[1];
  if (beginning !== undefined) return `must begin with ${quoteForMessage(beginning)}`;
  const words = describeTextRule({ pattern });
  return words === null ? `must match the pattern ${pattern}` : `must have ${words}`;
}
