import { expect, test } from '@jest/globals';
import { drawToken } from '../../../src/stores/keys/access-token.js';

test('tokens have 43 characters of base64url, differ, and never begin with a hyphen', () => {
  const tokens = Array.from({ length: 4_096 }, drawToken);
  expect(tokens.filter((token) => !/^\w[\w-]{42}$/.test(token))).toEqual([]);
  expect(new Set(tokens).size).toBe(tokens.length);
});
