// How a value of a registered JSON Schema becomes one of Cedar.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Json } from '../../../src/core/contract/json.js';
import { findSchemaProblem, isSchemaInstance } from '../../../src/core/contract/policy/registered-schema.js';
import { PreparedPolicies } from '../../../src/features/conditions/cedar.js';
import {
  InexactValueError,
  recordShapeOf,
  recordToCedar,
  toCedar,
  type ValueShape,
} from '../../../src/features/conditions/value-shape.js';

const schemaOf = (value: object, required = true) => ({
  type: 'object',
  properties: { value },
  ...(required ? { required: ['value'] } : {}),
  additionalProperties: false,
});
const shapeOf = (value: object): ValueShape | undefined => recordShapeOf(schemaOf(value)).attributes[0]?.shape;

describe('the type of a schema', () => {
  test.each<[string, object, ValueShape | undefined]>([
    ['an integer', { type: 'integer' }, { kind: 'Long' }],
    ['a number', { type: 'number' }, { kind: 'decimal' }],
    ['a date', { type: 'string', format: 'date' }, { kind: 'datetime' }],
    ['a date and time', { type: 'string', format: 'date-time' }, { kind: 'datetime' }],
    ['a duration', { type: 'string', format: 'duration' }, { kind: 'duration' }],
    ['a list', { type: 'array', items: { type: 'string' } }, { kind: 'Set', element: { kind: 'String' } }],
    ['texts of an enumeration', { enum: ['a', 'b'] }, { kind: 'String' }],
    ['integers of an enumeration', { enum: [1, 2] }, { kind: 'Long' }],
    ['values of several types', { enum: ['a', 1] }, undefined],
    ['alternatives of several types', { anyOf: [{ type: 'string' }, { type: 'integer' }] }, undefined],
    ['a list that may contain null', { type: 'array', items: { enum: ['a', null] } }, undefined],
  ])('%s', (_what, schema, shape) => {
    expect(findSchemaProblem(schemaOf(schema))).toBeNull();
    expect(shapeOf(schema)).toEqual(shape);
  });

  test('an argument that can be null is optional, and one whose name Cedar uses cannot be read', () => {
    const { attributes } = recordShapeOf(schemaOf({ anyOf: [{ type: 'integer' }, { type: 'null' }] }));
    expect(attributes).toEqual([{ name: 'value', shape: { kind: 'Long' }, required: false }]);
    const properties = { __entity: { type: 'string' }, __proto__x: { type: 'string' } };
    expect(recordShapeOf({ type: 'object', properties, required: [] }).attributes).toEqual([]);
  });

  test('other formats are refused at registration', () => {
    expect(findSchemaProblem(schemaOf({ type: 'string', format: 'iri' }))).toContain('format');
  });
});

describe('what Cedar cannot hold exactly is refused', () => {
  test.each<[ValueShape['kind'], Json]>([
    ['Long', 2 ** 53],
    ['Long', 1.5],
    ['decimal', 0.12345],
    ['decimal', 1e21],
    ['decimal', 1e-7],
    ['datetime', '2026-02-30'],
    ['datetime', '2026-01-05T24:61:00Z'],
    ['datetime', 'tomorrow'],
    ['duration', 'P1M'],
    ['duration', 'P1W'],
    ['duration', 'PT'],
    ['duration', '-P1D'],
  ])('%s of %j', (kind, value) => {
    expect(() => toCedar({ kind } as ValueShape, value)).toThrow(InexactValueError);
  });

  test('a required argument that is absent', () => {
    expect(() => recordToCedar(recordShapeOf(schemaOf({ type: 'integer' })), {})).toThrow(InexactValueError);
  });
});

const NOT_TAKEN = { id: 'always', message: 'Cedar does not take the request' };
const idsOf = (failed: readonly { readonly id: string }[]): readonly string[] => failed.map(({ id }) => id);
const ALWAYS = new PreparedPolicies({ always: '@id("always") forbid (principal, action, resource);' });
const decide = (value: unknown) =>
  ALWAYS.decide({
    principal: { type: 'Actor', id: 'a' },
    action: { type: 'Action', id: 'A' },
    resource: { type: 'Tool', id: 't' },
    context: { args: { value } } as never,
    entities: [],
  });

describe('whatever an agent sends, the engine decides or every condition fails', () => {
  test.each<[string, object, Json]>([
    ['a date', { type: 'string', format: 'date' }, '2026-01-05'],
    ['a time with an offset', { type: 'string', format: 'date-time' }, '2026-01-05T23:30:00.5+05:45'],
    ['a leap second', { type: 'string', format: 'date-time' }, '2016-12-31T23:59:60Z'],
    ['a duration', { type: 'string', format: 'duration' }, 'P3DT4H5M6.7S'],
    ['a long duration', { type: 'string', format: 'duration' }, 'P999999999D'],
    ['a decimal', { type: 'number' }, -99_999_999_999.25],
    ['text with a lone surrogate', { type: 'string' }, 'a\ud800b'],
    ['text with a zero', { type: 'string' }, 'a\u0000b'],
    ['a text of 100,000 characters', { type: 'string' }, 'x'.repeat(100_000)],
  ])('%s', (_what, schema, value) => {
    const shape = recordShapeOf(schemaOf(schema));
    let converted;
    try {
      converted = recordToCedar(shape, { value });
    } catch (error) {
      expect(error).toBeInstanceOf(InexactValueError);
      return;
    }
    const { satisfied, failed } = decide(converted['value']);
    expect([...satisfied, ...idsOf(failed)]).toEqual(['always']);
  });

  test('any text and any number', () => {
    const shape = recordShapeOf(schemaOf({ type: 'string' }));
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        const { satisfied, failed } = decide(recordToCedar(shape, { value })['value']);
        expect([...satisfied, ...idsOf(failed)]).toEqual(['always']);
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  test('a request that the engine does not take fails every condition', () => {
    expect(decide({ __extn: { fn: 'no_such_function', arg: 'x' } })).toEqual({ satisfied: [], failed: [NOT_TAKEN] });
    const deep = JSON.parse(`${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`) as unknown;
    const { satisfied, failed } = decide(deep);
    expect([...satisfied, ...idsOf(failed)]).toEqual(['always']);
    expect(decide('again').satisfied).toEqual(['always']);
  });
});

test('a date of a schema is one for TypeBox too', () => {
  const schema = schemaOf({ type: 'string', format: 'date' });
  expect([
    isSchemaInstance(schema, { value: '2026-01-05' }),
    isSchemaInstance(schema, { value: '2026-02-30' }),
  ]).toEqual([true, false]);
});
