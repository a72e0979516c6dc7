import { expect, test } from '@jest/globals';
import { drawToken } from '../../../src/adapters/keys/access-token.js';

test('a token has 256 bits and can be the argument of a command', () => {
  const tokens = Array.from({ length: 4096 }, drawToken);
  expect(tokens.filter((token) => !/^[\w][\w-]{42}$/.test(token))).toEqual([]);
  expect(new Set(tokens).size).toBe(tokens.length);
});
