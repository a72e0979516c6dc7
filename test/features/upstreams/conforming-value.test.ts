// Limits on the cost of an upstream server: its tool list, its schemas, and the validation against them.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { JsonSchema } from '../../../src/core/contract/json-schema.js';
import type { UpstreamLink } from '../../../src/engine/ports/effects/upstream.js';
import { listDefinitions } from '../../../src/features/upstreams/tool-definitions.js';
import { isConformingValue } from '../../../src/features/upstreams/tool-result.js';
import { weakenSchema } from '../../../src/runtime/effects/weaken-schema.js';

const times = <T>(count: number, one: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => one(i));
const listOf = (items: JsonObject): JsonSchema => {
  const schema = weakenSchema({ type: 'object', properties: { x: { type: 'array', items } } });
  if ('problem' in schema) throw new Error(String(schema['problem']));
  return schema;
};

test('each page of a tool list is checked on arrival, so a definition that is too large is not kept', async () => {
  const first = { name: 'act', inputSchema: { type: 'object' }, more: 'x'.repeat(100_000) };
  const link = {
    listTools: (cursor: string | null) => {
      if (cursor === null) return Promise.resolve({ tools: [first], nextCursor: '1' });
      first.more = '';
      return Promise.resolve({ tools: [] });
    },
  } as unknown as UpstreamLink;
  const { definitions, unusable } = await listDefinitions(link, new AbortController().signal);
  expect(definitions).toEqual([]);
  expect(unusable).toMatchObject([{ tool: 'act', why: expect.stringContaining('more than 65536 bytes') }]);
});

test.each([
  ['an enum', { enum: times(1_000, (i) => `value-${i}-xxxxxxxxxxxxxxxxxx`) }],
  ['a description', { type: 'string', description: 'x'.repeat(8_000) }],
  ['member names', { type: 'object', properties: { ['x'.repeat(20_000)]: {} } }],
])('a thousand references to %s count a thousand times', (_what, shared) => {
  const properties = Object.fromEntries(times(900, (i) => [`p${i}`, { $ref: '#/$defs/e' }]));
  const schema = { type: 'object', properties, $defs: { e: shared } } as unknown as JsonObject;
  expect(JSON.stringify(schema).length).toBeLessThan(65_536);
  expect(weakenSchema(schema)).toMatchObject({ problem: expect.stringContaining('more than 131072 characters') });
});

describe('a value is validated against a schema', () => {
  test.each([
    ['parts that must all hold', { allOf: times(900, () => ({ minimum: 0 })) }, 7],
    ['parts of which one must hold', { anyOf: times(900, (i) => ({ const: i })) }, 899],
    ['constants that are objects', { enum: times(900, (i) => ({ a: i })) }, { a: 899 }],
    ['many members', { properties: Object.fromEntries(times(1_900, (i) => [`p${i}`, {}])) }, { a: 1 }],
  ])('only if that takes bounded time: %s', (_what, items, item) => {
    const schema = listOf(items);
    expect(isConformingValue(schema, { x: times(20, () => item) })).toBe(true);
    const begin = process.cpuUsage();
    expect(isConformingValue(schema, { x: times(20_000, () => item) })).toBe(false);
    expect(process.cpuUsage(begin).user / 1_000).toBeLessThan(5_000);
  });

  test('also a large value, if the schema is small', () => {
    const schema = listOf({ type: 'object', properties: { id: { type: 'integer' }, kind: { enum: ['a', 'b'] } } });
    expect(isConformingValue(schema, { x: times(20_000, (id) => ({ id, kind: 'a' })) })).toBe(true);
    expect(isConformingValue(schema, { x: [{ id: 'no' }] })).toBe(false);
  });
});
