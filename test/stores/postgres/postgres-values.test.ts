// Array parameters are what the driver itself would send.

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRequire } from 'node:module';
import { arrayLiteral, toParameters } from '../../../src/stores/postgres/postgres-values.js';
import { InvariantError } from '../../../src/core/errors.js';

const ITEM = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('NULL', '{}', '"', '\\', ',', '', ' a ', '\\"'),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
);

const driver = createRequire(import.meta.url)('pg/lib/utils.js') as { prepareValue: (value: unknown) => string };

test('an array has the text of the driver, except for quotes that numbers and booleans do not need', () => {
  fc.assert(
    fc.property(fc.array(ITEM), (items) => {
      const quoted = items.map((item) => (typeof item === 'number' || typeof item === 'boolean' ? String(item) : item));
      expect(arrayLiteral(quoted)).toBe(driver.prepareValue(items));
    }),
    { seed: 1 },
  );
  expect(arrayLiteral([1, -2, true, null, undefined, 'a'])).toBe('{1,-2,true,NULL,NULL,"a"}');
});

test('only arrays change, and an object in one is refused', () => {
  const bytes = Buffer.from('x');
  expect(toParameters([1, 'a', null, bytes, ['b']])).toEqual([1, 'a', null, bytes, '{"b"}']);
  expect(() => arrayLiteral([bytes])).toThrow(InvariantError);
});
