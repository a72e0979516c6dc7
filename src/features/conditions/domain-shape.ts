// The domains of arguments that are addresses (`format: email`). A pattern such as `like "*@a.example"` also matches a
// text with two addresses, so conditions compare the domain of a text that is exactly one.

import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { CedarValue } from './cedar.js';
import { recordShapeBy, STRING, type Attribute, type RecordShape } from './value-shape.js';

/** The shape of an object's schema with only its addresses, each optional: it is absent if it is not one address. */
export const domainShapeOf = (schema: JsonSchema): RecordShape =>
  recordShapeBy(schema, (part) => {
    const shape = shapeOfDomains(part);
    return shape === null ? null : { shape, required: false };
  });

function shapeOfDomains(schema: JsonSchema): Attribute['shape'] | null {
  const { type, format, items } = schema;
  if (type === 'string') return format === 'email' ? STRING : null;
  if (type === 'array') {
    const element = isJsonObject(items) ? shapeOfDomains(items) : null;
    return element?.kind === 'String' ? { kind: 'Set', element } : null;
  }
  const nested = type === 'object' ? domainShapeOf(schema) : null;
  return nested !== null && nested.attributes.length > 0 ? nested : null;
}

/** The domains in a value that matches the schema of the shape. */
export function domainsOf({ attributes }: RecordShape, value: JsonObject): Record<string, CedarValue> {
  const domains: Record<string, CedarValue> = {};
  for (const { name, shape } of attributes) {
    const found = Object.hasOwn(value, name) ? domainIn(shape, value[name]) : null;
    if (found !== null) domains[name] = found;
  }
  return domains;
}

/** @returns null if the value is not one address, or if one of its addresses is not */
function domainIn(shape: Attribute['shape'], value: Json | undefined): CedarValue | null {
  if (shape.kind === 'Record') return isJsonObject(value) ? domainsOf(shape, value) : null;
  if (shape.kind !== 'Set') return typeof value === 'string' ? domainOf(value) : null;
  if (!Array.isArray(value)) return null;
  const all = value.map((item: Json) => (typeof item === 'string' ? domainOf(item) : null));
  return all.every((domain) => domain !== null) ? all : null;
}

const ADDRESS_CHARS_MAX = 320;
const ADDRESS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)$/;

/** The domain of a text that is exactly one plain address, in small letters. */
export const domainOf = (text: string): string | null =>
  text.length > ADDRESS_CHARS_MAX ? null : (ADDRESS.exec(text)?.[1]?.toLowerCase() ?? null);
