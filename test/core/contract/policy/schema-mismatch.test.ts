// Every sample is checked against the library: a value that it rejects has a mismatch, without any text of the value.

import { describe, expect, test } from '@jest/globals';
import { Check } from 'typebox/value';
import type { JsonSchema } from '../../../../src/core/contract/json-schema.js';
import {
  EXPLANATION_CHARS_MAX,
  explanationText,
  findSchemaMismatch,
} from '../../../../src/core/contract/policy/schema-mismatch.js';
import { random as seededRandom } from '../../../fixtures/random.js';

const closed = (properties: object, required = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

function explain(schema: JsonSchema, value: unknown): string | null {
  const mismatch = findSchemaMismatch(schema, value);
  return mismatch === null ? null : explanationText('args', mismatch);
}

const AMOUNT = closed({ amount: { type: 'integer', minimum: 1, maximum: 100 } });
const NESTED = closed({ lines: { type: 'array', maxItems: 3, items: closed({ price: { type: 'number' } }) } });
const EITHER = { anyOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }] };
const SHAPES = closed({
  shape: {
    anyOf: [
      closed({ kind: { type: 'string', const: 'circle' }, radius: { type: 'number', exclusiveMinimum: 0 } }),
      closed({ kind: { type: 'string', const: 'square' }, side: { type: 'number', exclusiveMaximum: 9 } }),
    ],
  },
});

test.each<[JsonSchema, unknown, string | null]>([
  [AMOUNT, { amount: 100 }, null],
  [AMOUNT, { amount: 101 }, 'args.amount: must be <= 100'],
  [AMOUNT, { amount: 0 }, 'args.amount: must be >= 1'],
  [AMOUNT, { amount: 1.5 }, 'args.amount: must be an integer'],
  [AMOUNT, {}, 'args.amount: is missing'],
  [AMOUNT, { amount: 1, 'to whom?': 'SECRET' }, 'args: has 1 unknown field'],
  [AMOUNT, { amount: 1, a: 1, b: 2 }, 'args: has 2 unknown fields'],
  [AMOUNT, 'SECRET', 'args: must be an object'],
  [NESTED, { lines: [{ price: 1 }, { price: 'SECRET' }] }, 'args.lines[1].price: must be a number'],
  [NESTED, { lines: [{}, {}, {}, {}] }, 'args.lines: must have at most 3 items'],
  [closed({ id: { type: 'string', minLength: 2 } }), { id: 'x' }, 'args.id: must have at least 2 characters'],
  [closed({ id: { type: 'string', maxLength: 1 } }), { id: 'xx' }, 'args.id: must have at most 1 character'],
  [
    closed({ id: { type: 'string', pattern: '^[a-z]+$' } }),
    { id: 'X' },
    'args.id: must have at least 1 character of small letters',
  ],
  [closed({ id: { type: 'string', pattern: '^(?:a|b)$' } }), { id: 'X' }, 'args.id: must match the pattern ^(?:a|b)$'],
  [closed({ unit: { enum: ['kg', 'lb', 3] } }), { unit: 'SECRET' }, 'args.unit: must be one of "kg", "lb", 3'],
  [closed({ unit: { const: 'kg' } }), { unit: 'SECRET' }, 'args.unit: must be "kg"'],
  [
    closed({ list: { type: 'array', minItems: 1, items: { type: 'null' } } }),
    { list: [] },
    'args.list: must have at least 1 item',
  ],
  [closed({ note: EITHER }), { note: 7 }, 'args.note: must be a string or null'],
  [closed({ note: EITHER }), { note: 'SECRET' }, 'args.note: must have at most 3 characters'],
  [SHAPES, { shape: { kind: 'circle', radius: 0 } }, 'args.shape.radius: must be > 0'],
  [SHAPES, { shape: { kind: 'square', side: 9 } }, 'args.shape.side: must be < 9'],
  [SHAPES, { shape: { kind: 'SECRET' } }, 'args.shape: must match one of 2 alternatives'],
  [closed({ 'a b': { type: 'null' } }), { 'a b': 1 }, 'args["a b"]: must be null'],
])('%j of %j is explained as %s', (schema, value, words) => {
  expect(explain(schema, value)).toBe(words);
});

test('a mismatch that has no words of its own is named with its place', () => {
  const schema = closed({ tag: { type: 'string', not: { const: 'x' } } });
  expect(explain(schema, { tag: 'x' })).toBe('args.tag: does not match its schema');
});

test('a long name, a long list and a long pattern leave a bounded line of printable ASCII', () => {
  const deep = Array.from({ length: 12 }).reduce<JsonSchema>(
    (inner) => closed({ ['n'.repeat(60)]: inner }),
    closed({ unit: { enum: Array.from({ length: 200 }, (_, at) => `unit-${at}-\u202e`) } }),
  );
  const value = Array.from({ length: 12 }).reduce<unknown>((inner) => ({ ['n'.repeat(60)]: inner }), { unit: 1 });
  const words = explain(deep, value) ?? '';
  expect(words.length).toBeLessThanOrEqual(EXPLANATION_CHARS_MAX);
  expect(words).toMatch(/^\.\.\.n[ -~]*\.unit: must be one of "unit-0-\\u\{202e\}"/);
});

describe('random schemas and values', () => {
  const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null', 'anyOf', 'enum'] as const;

  type Random = () => number;
  const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

  function schemaFrom(random: Random, depth: number): JsonSchema {
    const type = depth > 3 ? 'string' : pick(random, TYPES);
    switch (type) {
      case 'object':
        return closed(
          { one: schemaFrom(random, depth + 1), two: schemaFrom(random, depth + 1) },
          random() < 0.5 ? ['one'] : ['one', 'two'],
        );
      case 'array':
        return { type, items: schemaFrom(random, depth + 1), maxItems: 2, minItems: pick(random, [0, 1]) };
      case 'string':
        return { type, minLength: 2, maxLength: pick(random, [4, 12]), ...pick(random, [{}, { pattern: '^C' }]) };
      case 'number':
      case 'integer':
        return { type, minimum: -3, ...pick(random, [{ maximum: 5 }, { exclusiveMaximum: 5 }]) };
      case 'anyOf':
        return { anyOf: [schemaFrom(random, depth + 1), schemaFrom(random, depth + 1)] };
      case 'enum':
        return { enum: ['x', 1, null] };
      default:
        return { type };
    }
  }

  /** Every text and every invented name of a value is a canary. */
  function valueFrom(random: Random, depth: number): unknown {
    const kind = depth > 3 ? 4 : Math.floor(random() * 9);
    if (kind < 2) {
      const names = pick(random, [['one'], ['one', 'two'], ['one', 'CANARY-name'], []]);
      return Object.fromEntries(names.map((name) => [name, valueFrom(random, depth + 1)]));
    }
    if (kind === 2) return Array.from({ length: Math.floor(random() * 4) }, () => valueFrom(random, depth + 1));
    return pick<unknown>(random, ['CANARY', 'CANARY-text', '', 7, -4, 1.5, true, null]);
  }

  test('a mismatch exists exactly for values that the schema rejects, and holds nothing of the value', () => {
    const random = seededRandom(14);
    let rejected = 0;
    for (let round = 0; round < 4_000; round += 1) {
      const schema = schemaFrom(random, 0);
      const value = valueFrom(random, 0);
      const words = explain(schema, value);
      expect(words === null).toBe(Check(schema, value));
      if (words === null) continue;
      rejected += 1;
      expect(words).not.toContain('CANARY');
      expect(words).toMatch(/^[ -~]{5,300}$/);
    }
    expect(rejected).toBeGreaterThan(1_000);
  });
});
