// Schemas of upstream servers: the weakened schema accepts what they accept, the converted one can be registered, and
// values survive the conversion in both directions.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Check } from 'typebox/value';
import { type Json, type JsonObject, scanJson } from '../../../src/core/contract/json.js';
import type { JsonSchema } from '../../../src/core/contract/json-schema.js';
import { findSchemaProblem } from '../../../src/core/contract/policy/registered-schema.js';
import {
  decodeInput,
  encodeOutput,
  convertInputSchema,
  convertOutputSchema,
} from '../../../src/runtime/effects/convert-schema.js';
import { weakenSchema } from '../../../src/runtime/effects/weaken-schema.js';

/** Parsed, like a message of a server. */
function parsed(value: unknown): JsonObject {
  const scanned = scanJson(JSON.stringify(value), 64);
  if (!scanned.ok) throw new Error(scanned.problem);
  return scanned.value as JsonObject;
}
const walked = (schema: object): JsonSchema => weakenSchema(parsed(schema));

describe('the weakened schema', () => {
  test.each<[string, object, readonly unknown[], readonly unknown[]]>([
    ['types', { type: ['string', 'null'] }, ['a', null], [1, {}]],
    ['bounds', { type: 'integer', minimum: 1, exclusiveMaximum: 3 }, [1, 2], [0, 3, 1.5]],
    [
      'members',
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      [{ a: '' }],
      [{}, { a: 1 }],
    ],
    ['closed objects', { type: 'object', properties: { a: {} }, additionalProperties: false }, [{ a: 1 }], [{ b: 1 }]],
    ['maps', { type: 'object', additionalProperties: { type: 'number' } }, [{ a: 1 }], [{ a: '1' }]],
    ['alternatives', { oneOf: [{ type: 'string' }, { const: 1 }] }, ['a', 1], [2]],
    ['exactly one', { oneOf: [{ type: 'number' }, { minimum: 1 }] }, [0], [2]],
    ['negations', { not: { type: 'string' } }, [1], ['a']],
    ['references', { $defs: { n: { type: 'number' } }, items: { $ref: '#/$defs/n' } }, [[1]], [['1']]],
    ['references with neighbours', { $defs: { n: { type: 'number' } }, $ref: '#/$defs/n', minimum: 2 }, [2], [1, 'a']],
    ['references into lists', { anyOf: [{ type: 'number' }], items: { $ref: '#/anyOf/0' } }, [1], ['a']],
    ['a member that is never valid', { properties: { a: false } }, [{}], [{ a: 1 }]],
    ['distinct items', { uniqueItems: true }, [[1, 2]], [[1, 1]]],
  ])('keeps %s', (_what, schema, accepted, refused) => {
    const schema_ = walked(schema);
    expect(accepted.map((value) => Check(schema_, parsed({ value })['value']))).toEqual(accepted.map(() => true));
    expect(refused.map((value) => Check(schema_, parsed({ value })['value']))).toEqual(refused.map(() => false));
  });

  test.each<[string, object, unknown]>([
    ['patterns, which may take unbounded time', { pattern: '^(a+)+$' }, `${'a'.repeat(40)}b`],
    [
      'members that only a pattern names',
      { patternProperties: { '^x-': {} }, additionalProperties: false },
      { 'x-a': 1 },
    ],
    ['a negation of an omitted keyword', { not: { pattern: 'b' } }, 'a'],
    ['alternatives that differ in an omitted keyword', { oneOf: [{ pattern: 'a' }, { pattern: 'b' }] }, 'a'],
    ['the negation of a recursion', { $defs: { a: { not: { $ref: '#/$defs/a' } } }, $ref: '#/$defs/a' }, 1],
    ['conditions', { if: { minimum: 5 }, then: { maximum: 1 } }, 9],
    ['tuples of older drafts', { items: [{ type: 'string' }], additionalItems: false }, [1, 2]],
    ['counts of contained items', { contains: { type: 'string' }, minContains: 0 }, [1]],
    ['formats', { format: 'email' }, 'nobody'],
    ['unevaluated members', { unevaluatedProperties: false }, { a: 1 }],
  ])('omits %s', (_what, schema, value) => {
    expect(Check(walked(schema), parsed({ value })['value'])).toBe(true);
  });

  test('expands a recursion once', () => {
    const tree = {
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' }, n: { type: 'number' } } } },
      $ref: '#/$defs/node',
    };
    expect(Check(walked(tree), { n: 1, next: { n: 'anything' } })).toBe(true);
    expect(Check(walked(tree), { n: '1' })).toBe(false);
  });
});

const fit = (schema: object, side: 'input' | 'output') =>
  (side === 'input' ? convertInputSchema : convertOutputSchema)(walked(schema));
const text = { type: 'string', description: 'JSON as a text.' };
const closed = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  ...(required.length === 0 ? {} : { required }),
  additionalProperties: false,
});
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

describe('the registered schema', () => {
  test.each<[string, object, object]>([
    ['no members', { type: 'object' }, closed({})],
    ['no members, as a closed object', { type: 'object', properties: {}, additionalProperties: false }, closed({})],
    [
      'a closed object',
      object({ a: { type: 'string', minLength: 1 } }, { required: ['a'] }),
      closed({ a: { type: 'string', minLength: 1 } }, ['a']),
    ],
    ['a map', object({ m: { type: 'object' } }), closed({ m: text })],
    [
      'a map of strings',
      object({ m: { type: 'object', additionalProperties: { type: 'string' } } }),
      closed({ m: text }),
    ],
    ['anything', object({ any: {} }), closed({ any: text })],
    ['a list of anything', object({ l: { type: 'array' } }), closed({ l: text })],
    [
      'a list of maps',
      object({ l: { type: 'array', items: { type: 'object' } } }),
      closed({ l: { type: 'array', items: text } }),
    ],
    [
      'a nullable number',
      object({ n: { type: ['number', 'null'] } }),
      closed({ n: { anyOf: [{ type: 'number' }, { type: 'null' }] } }),
    ],
    ['a union with a map', object({ c: { anyOf: [{ type: 'object' }, { type: 'null' }] } }), closed({ c: text })],
    ['an enum of strings', object({ w: { enum: ['a', 'b'] } }), closed({ w: { enum: ['a', 'b'] } })],
    ['an enum of objects', object({ w: { enum: [{ a: 1 }] } }), closed({ w: text })],
    [
      'a map as the whole input',
      { type: 'object', additionalProperties: true },
      closed({ json: { ...text, description: 'JSON as a text. The whole input.' } }, ['json']),
    ],
    [
      'a union as the whole input',
      { type: 'object', oneOf: [object({ a: {} }), object({ b: {} })] },
      closed({ json: { ...text, description: 'JSON as a text. The whole input.' } }, ['json']),
    ],
    [
      'an object whose members another part may name',
      object({ o: object({ a: {} }, { allOf: [object({ b: {} })] }) }),
      closed({ o: text }),
    ],
    [
      'conditions on named members',
      object({ a: { type: 'null' } }, { anyOf: [{ required: ['a'] }] }),
      closed({ a: { type: 'null' } }),
    ],
  ])('for an input of %s', (_what, schema, expected) => {
    expect(fit(schema, 'input').schema).toEqual(expected);
  });

  test('is no deeper than the contract allows', () => {
    const nested = (depth: number): object => object({ n: depth === 0 ? {} : nested(depth - 1) });
    const held = convertInputSchema(walked(nested(16)));
    expect(findSchemaProblem(held.schema)).toBeNull();
    const input = (depth: number, innermost: unknown): unknown =>
      depth === 0 ? innermost : { n: input(depth - 1, innermost) };
    const given = parsed(input(9, JSON.stringify(input(3, 7))));
    expect(Check(held.schema, given)).toBe(true);
    expect(JSON.stringify(decodeInput(held, given))).toBe(JSON.stringify(input(12, 7)));
  });

  test('an answer is reduced to its named members, unless they are unknown', () => {
    const item = object({ a: { type: 'number' } });
    const schema = walked(object({ one: item, either: { anyOf: [item, { type: 'null' }] } }));
    const held = convertOutputSchema(schema);
    expect(encodeOutput(held.encoding, { one: { a: 1, b: 2 }, either: { a: 1, b: 2 }, more: 3 })).toEqual({
      one: { a: 1 },
      either: '{"a":1,"b":2}',
    });
  });
});

/** Schemas with all known keywords, and values that nearly conform to them. */
const schemas = fc.letrec<{ schema: object; leaf: object }>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom<object>({}, { type: 'string' }, { type: 'number' }, { type: 'boolean' }, { type: 'null' }),
    fc.constantFrom<object>({ type: 'object' }, { type: 'array' }, { type: ['integer', 'null'] }, { enum: ['a', 1] }),
    fc.constantFrom<object>({ const: { a: 1 } }, { minimum: 1 }, { type: 'string', pattern: 'a' }, { maxLength: 1 }),
    fc.constantFrom<object>({ $ref: '#/$defs/leaf' }, { $ref: '#/$defs/node' }),
  ),
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.record({ type: fc.constant('array'), items: tie('schema') }),
    fc.record(
      {
        type: fc.constantFrom('object', ['object', 'null']),
        properties: fc.dictionary(fc.constantFrom('a', 'b', 'toString'), tie('schema'), { maxKeys: 2 }),
        additionalProperties: fc.oneof(fc.boolean(), tie('schema')),
        patternProperties: fc.constant({ '^b': { type: 'string' } }),
        required: fc.subarray(['a', 'c']),
      },
      { requiredKeys: ['type', 'properties'] },
    ),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ not: tie('schema') }),
    fc.record({ if: tie('schema'), then: tie('leaf') }),
  ),
}));
const values = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<Json>(null, true, 0, 1, 1.5, '', 'a', 'ab'),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', 'toString'), tie('value'), { maxKeys: 3 }),
  ),
}));
const documents = schemas.schema.map((schema) => ({
  ...schema,
  $defs: {
    leaf: { type: 'string', maxLength: 1 },
    node: { type: 'object', properties: { a: { $ref: '#/$defs/node' } } },
  },
}));

describe('for arbitrary schemas', () => {
  const usable = (schema: object): JsonSchema | null => {
    const made = walked(schema);
    return typeof made['problem'] === 'string' ? null : made;
  };

  test('the weakened schema accepts every value that the original accepts', () => {
    fc.assert(
      fc.property(documents, values.value, (schema, value) => {
        const weaker = usable(schema);
        fc.pre(weaker !== null && accepts(schema, value));
        expect(Check(weaker, parsed({ value })['value'])).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test('every answer that the weakened schema accepts can be registered and encoded', () => {
    fc.assert(
      fc.property(documents, values.value, (schema, value) => {
        const weaker = usable(schema);
        fc.pre(weaker !== null);
        const { schema: held, encoding: coding } = convertOutputSchema(weaker);
        expect(findSchemaProblem(closed({ structured: held }))).toBeNull();
        fc.pre(Check(weaker, parsed({ value })['value']));
        expect(Check(held, parsed({ value: encodeOutput(coding, parsed({ value })['value'] ?? null) })['value'])).toBe(
          true,
        );
      }),
      { numRuns: 2_000 },
    );
  });

  test('a decoded input is the input that the server expects', () => {
    fc.assert(
      fc.property(documents, values.value, (schema, value) => {
        const weaker = usable({ type: 'object', properties: { v: schema }, $defs: schema.$defs });
        fc.pre(weaker !== null);
        const held = convertInputSchema(weaker);
        expect(findSchemaProblem(held.schema)).toBeNull();
        const { v: coding } = (
          held.encoding as { readonly members: Record<string, Parameters<typeof encodeOutput>[0]> }
        ).members;
        const written = encodeOutput(coding ?? 'as_is', value);
        fc.pre(Check(held.schema, parsed({ v: written })));
        const read = decodeInput(held, parsed({ v: written }));
        expect(JSON.parse(JSON.stringify(encodeOutput(coding ?? 'as_is', read?.['v'] ?? null)))).toEqual(written);
      }),
      { numRuns: 2_000 },
    );
  });
});

/** By the validator itself, which supports all of JSON Schema. */
const accepts = (schema: object, value: Json): boolean => Check(schema as never, parsed({ value })['value']);
