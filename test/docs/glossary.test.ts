// docs/glossary.md: enough terms and not too many, in order, one plain sentence each.

import { expect, test } from '@jest/globals';
import { tableOf } from './tables.js';

const TERMS = tableOf('docs/glossary.md', 'terms');
const WORDS_MAX = 35;

test('the glossary defines 80 to 140 terms, each once, in alphabetical order', () => {
  const names = TERMS.map(([name = '']) => name);
  expect(names.length).toBeGreaterThanOrEqual(80);
  expect(names.length).toBeLessThanOrEqual(140);
  const inOrder = [...new Set(names)].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  expect(names).toEqual(inOrder);
});

test(`a definition is one sentence of at most ${WORDS_MAX} words`, () => {
  const wrong = TERMS.filter(([, meaning = '']) => {
    return !/^[A-Z][^]*[^.]\.$/.test(meaning) || /\. /.test(meaning) || meaning.split(/\s+/).length > WORDS_MAX;
  });
  expect(wrong).toEqual([]);
});
