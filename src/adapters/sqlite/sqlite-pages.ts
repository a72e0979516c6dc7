// Reading page by page, because an open cursor would keep the connection from writing and the log from being cut.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CursorOptions } from '../../ports/ledger/ledger-store.js';
import type { QueryPage } from './sqlite-reader.js';

/** How many rows one read takes from the database. */
const PAGE_BLOCKS = 32;

/** Reads rows `from` on, at most `count` of them. */
export type PageReader<Row> = (from: number, count: number) => QueryPage<Row>;

/** The first page is a single block: many readers want one entry. */
export async function* readPages<Row>(
  start: number,
  read: (from: number, count: number) => Promise<QueryPage<Row>>,
  { signal }: CursorOptions = {},
): AsyncGenerator<Row> {
  for (let [from, count] = [start, 1]; ; count = PAGE_BLOCKS) {
    signal?.throwIfAborted();
    const { rows, next } = await read(from, count);
    yield* rows;
    if (next === null) return;
    from = next;
    if (count > 1) await nextTurn();
  }
}
