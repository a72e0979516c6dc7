import { describe, expect, test } from '@jest/globals';
import { domainOf, domainsOf, domainShapeOf } from '../../../src/features/conditions/domain-shape.js';

describe('the domain of a text', () => {
  test.each([
    ['x@customer.example', 'customer.example'],
    ['X.y+z@CUSTOMER.example', 'customer.example'],
    ["o'neil@a-b.example", 'a-b.example'],
  ])('%s', (text, domain) => {
    expect(domainOf(text)).toBe(domain);
  });

  test.each([
    'x@evil.example, y@customer.example',
    'x@evil.example,y@customer.example',
    'x@evil.example;y@customer.example',
    'x@evil.example y@customer.example',
    'x@evil.example\ny@customer.example',
    'x@evil.example\r\nBcc: y@customer.example',
    'x@evil.example\u0000@customer.example',
    '"x@evil.example"@customer.example',
    '<x@evil.example>y@customer.example',
    'x@evil.example@customer.example',
    'x@customer.example.',
    'x@.customer.example',
    'x@customer..example',
    'x@customer.ex\u0430mple',
    'x@\uff43ustomer.example',
    'x@customer.example\u200b',
    'x@[127.0.0.1]',
    'x@localhost',
    '@customer.example',
    'customer.example',
    `${'x'.repeat(320)}@customer.example`,
    '',
  ])('%j is not one plain address', (text) => {
    expect(domainOf(text)).toBeNull();
  });
});

test('lists and records have domains if each address has one', () => {
  const email = { type: 'string', format: 'email' };
  const shape = domainShapeOf({
    type: 'object',
    properties: {
      to: { type: 'array', items: email },
      from: { type: 'object', properties: { address: email, name: { type: 'string' } } },
      subject: { type: 'string' },
    },
  });
  expect(shape.attributes.map(({ name, required }) => [name, required])).toEqual([
    ['to', false],
    ['from', false],
  ]);
  const value = {
    to: ['a@x.example', 'b@Y.example'],
    from: { address: 'c@z.example', name: 'C' },
    subject: 'a@b.example',
  };
  expect(domainsOf(shape, value)).toEqual({ to: ['x.example', 'y.example'], from: { address: 'z.example' } });
  expect(domainsOf(shape, { ...value, to: ['a@x.example', 'b@y.example, c@z.example'] })).toEqual({
    from: { address: 'z.example' },
  });
});
