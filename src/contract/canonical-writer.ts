// Canonical JSON by template. What a schema says of its values (which keys there are, and in which order they stand)
// is found out once, so that an entry costs a few microseconds; the generic canonicaliser sorts the keys every time.

import type { TSchema } from 'typebox';
import { canonicalJson, quote } from './canonical-json.js';
import { Actor, PolicyVersions } from './shapes.js';

/** For every value, of the schema or not, the text is `canonicalJson(value)`; for those of the schema it is cheap. */
export type CanonicalWriter = (value: unknown) => string;

/** Their values are made once a tree, never change, and stand in almost every entry. */
const SHARED: ReadonlySet<TSchema> = new Set([PolicyVersions, Actor]);

const writers = new WeakMap<TSchema, CanonicalWriter>();

/** The writer of a schema: made once, on first use. */
export function canonicalWriter(schema: TSchema): CanonicalWriter {
  const known = writers.get(schema);
  if (known !== undefined) return known;
  const writer = SHARED.has(schema) ? remembering(compile(schema)) : compile(schema);
  writers.set(schema, writer);
  return writer;
}

/** What is read of a schema. */
interface Shape extends TSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
}

function compile(schema: Shape): CanonicalWriter {
  if (isText(schema)) return text;
  if (schema.anyOf !== undefined) return compileUnion(schema.anyOf);
  if (schema.type === 'integer' || schema.type === 'number') return number;
  if (schema.type === 'array' && schema.items !== undefined) return compileArray(canonicalWriter(schema.items));
  if (schema.type === 'object' && schema.properties !== undefined) return compileObject(schema.properties);
  return canonicalJson;
}

const isText = ({ type, enum: names, anyOf }: Shape): boolean =>
  type === 'string' || names?.every((name) => typeof name === 'string') === true || anyOf?.every(isText) === true;

const text: CanonicalWriter = (value) => (typeof value === 'string' ? quote(value) : canonicalJson(value));

const number: CanonicalWriter = (value) => (Number.isSafeInteger(value) ? String(value) : canonicalJson(value));

/** Something or null; every other union is left to the generic way. */
function compileUnion(members: readonly Shape[]): CanonicalWriter {
  const [something, ...others] = members.filter(({ type }) => type !== 'null');
  if (something === undefined || others.length > 0) return canonicalJson;
  const write = canonicalWriter(something);
  return (value) => (value === null ? 'null' : write(value));
}

const compileArray =
  (write: CanonicalWriter): CanonicalWriter =>
  (value) => {
    if (!Array.isArray(value)) return canonicalJson(value);
    let written = '';
    for (let at = 0; at < value.length; at += 1) written += at === 0 ? write(value[at]) : `,${write(value[at])}`;
    return `[${written}]`;
  };

function compileObject(properties: Readonly<Record<string, Shape>>): CanonicalWriter {
  const members = Object.keys(properties)
    .sort()
    .map((key) => ({ key, named: `${quote(key)}:`, write: canonicalWriter(properties[key] as Shape) }));
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return canonicalJson(value);
    let written = '';
    let count = 0;
    for (const { key, named, write } of members) {
      const member = (value as Record<string, unknown>)[key];
      if (member === undefined) continue;
      written += count === 0 ? named + write(member) : `,${named}${write(member)}`;
      count += 1;
    }
    // Something that the schema does not have: whoever reads this must see it.
    return Object.keys(value).length === count ? `{${written}}` : canonicalJson(value);
  };
}

function remembering(write: CanonicalWriter): CanonicalWriter {
  const texts = new WeakMap<object, string>();
  return (value) => {
    if (typeof value !== 'object' || value === null) return write(value);
    const known = texts.get(value);
    if (known !== undefined) return known;
    const written = write(value);
    texts.set(value, written);
    return written;
  };
}
