// docs/glossary.md: a term has one definition.

import { expect, test } from '@jest/globals';
import { tableOf } from './tables.js';

test('the glossary defines each term once', () => {
  const names = tableOf('docs/glossary.md', 'terms').map(([name = '']) => name.toLowerCase());
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});
