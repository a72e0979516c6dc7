// Loads the rows: first the newest, so that the page shows something, then the earlier ones, then new ones.

import type { RowPage } from '../../../../core/contract/inspection/inspection.js';
import type { Feed } from '../data/feed.js';
import type { Rows } from './rows/rows.js';

const FIRST_ROWS = 2_000;
const PAGE_ROWS = 10_000;
const DRAW_MS = 40;

type RowFeed = Pick<Feed, 'rows'>;

/** The newest rows of a ledger that has entries `begin` to `end - 1`. */
export async function loadNewest(feed: RowFeed, rows: Rows, end: number): Promise<void> {
  let from = Math.max(rows.begin, end - FIRST_ROWS);
  while (from < end) {
    const page = await feed.rows(from, end);
    if (page.rows.length === 0) return;
    rows.addPage(page);
    from += page.rows.length;
  }
}

/** The earlier rows, from the newest page to the oldest. Draws before each page, and calls `onPage` after it. */
export async function fetchEarlierRows(feed: RowFeed, rows: Rows, onPage: () => void): Promise<void> {
  while (rows.first > rows.begin) {
    await new Promise((resolve) => setTimeout(resolve, DRAW_MS));
    const from = Math.max(rows.begin, rows.first - PAGE_ROWS);
    const pages: RowPage[] = [];
    for (let next = from; next < rows.first;) {
      const page = await feed.rows(next, rows.first);
      if (page.rows.length === 0) return;
      pages.push(page);
      next += page.rows.length;
    }
    for (const page of pages.reverse()) rows.addPage(page);
    onPage();
  }
}

/** Adds a page of the stream. It fetches missing rows first, and skips rows that are present already. */
export async function applyLivePage(feed: RowFeed, rows: Pick<Rows, 'end' | 'addPage'>, page: RowPage): Promise<void> {
  while (rows.end < page.from) {
    const missing = await feed.rows(rows.end, Math.min(page.from, rows.end + PAGE_ROWS));
    if (!rows.addPage(missing)) throw new Error(`entries from ${rows.end} on are unavailable`);
  }
  rows.addPage(page);
}

/**
 * Rows that have arrived and are not shown yet. All panels show one revision of the ledger: rows are shown once
 * everything that is drawn with them is here.
 */
export class ReceivedRows {
  readonly #rows: Rows;
  #pages: RowPage[] = [];
  #end = -1;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** One past the last received row, shown or not. */
  get end(): number {
    return Math.max(this.#end, this.#rows.end);
  }

  /** Adds a page that continues after the last row. @returns whether a row is new */
  addPage(page: RowPage): boolean {
    const to = page.from + page.rows.length;
    if (page.from > this.end || to <= this.end) return false;
    this.#pages.push(page);
    this.#end = to;
    return true;
  }

  /** The last received row of a tree that is not shown yet; -1 without one. */
  lastOf(tree_id: string): number {
    let last = -1;
    for (const { from, texts, rows } of this.#pages) {
      const tree = texts.indexOf(tree_id);
      if (tree >= 0) last = Math.max(last, from + rows.findLastIndex((row) => row[1] === tree));
    }
    return last;
  }

  /** Shows the pages that end at or before an entry. */
  show(end: number): void {
    const isShown = ({ from, rows }: RowPage): boolean => from + rows.length <= end;
    for (const page of this.#pages) if (isShown(page)) this.#rows.addPage(page);
    this.#pages = this.#pages.filter((page) => !isShown(page));
  }
}
