import { expect, test } from '@jest/globals';
import { omitUndefined } from '../../src/core/omit-undefined.js';

test('omits members that are undefined and keeps all others in their order', () => {
  const none: string | undefined = undefined;
  const members: { readonly b: number; readonly a?: string; readonly c: null } = omitUndefined({
    b: 0,
    a: none,
    c: null,
  });
  expect(Object.entries(members)).toEqual([
    ['b', 0],
    ['c', null],
  ]);
});
