// A window that reaches into archived entries has no value: a limit must not be opened by an archive.

import { expect, test } from '@jest/globals';
import { CounterBook } from '../../../../src/features/conditions/counters/counter-book.js';
import type { CounterQuery } from '../../../../src/core/contract/run/counter-fact.js';

const hour: CounterQuery = { name: 'a', key: 'case:c', window: { sliding: '1h' }, adds: 1 };
const always: CounterQuery = { name: 'a', key: 'case:c', adds: 1 };
const usedAt = (book: CounterBook, time: string) => book.read([hour, always], time).map(({ used }) => used);

test('a whole ledger has values of all windows', () => {
  expect(usedAt(new CounterBook(true), '2026-01-05T12:00:00.000Z')).toEqual([0, 0]);
});

test('a ledger of which everything was archived has no values', () => {
  expect(usedAt(new CounterBook(false), '2026-01-05T12:00:00.000Z')).toEqual([null, null]);
});

test('windows have values again when they begin after the first entry that was not archived', () => {
  const book = new CounterBook(false);
  book.noteTime('2026-01-05T12:00:00.000Z');
  book.noteTime('2026-01-05T12:30:00.000Z');
  expect(usedAt(book, '2026-01-05T12:59:59.998Z')).toEqual([null, null]);
  expect(usedAt(book, '2026-01-05T12:59:59.999Z')).toEqual([0, null]);
});
