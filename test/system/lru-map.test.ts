import { expect, test } from '@jest/globals';
import { createLruMap } from '../../src/system/lru-map.js';

test('at its limit it evicts only the least recently used entry', () => {
  const map = createLruMap<number>(3);
  for (const [key, value] of [
    ['a', 1],
    ['b', 2],
    ['c', 3],
  ] as const)
    map.set(key, value);
  expect(['a', 'b', 'c'].map((key) => map.get(key))).toEqual([1, 2, 3]);
  map.get('a');
  map.set('d', 4);
  expect(['a', 'b', 'c', 'd'].map((key) => map.get(key))).toEqual([1, undefined, 3, 4]);
});

test('a deleted entry is absent, and leaves room for another one', () => {
  const map = createLruMap<number>(2);
  for (const key of ['a', 'b']) map.set(key, 1);
  map.delete('b');
  map.set('c', 2);
  expect(['a', 'b', 'c'].map((key) => map.get(key))).toEqual([1, undefined, 2]);
});
