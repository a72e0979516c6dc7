// Rows that have arrived and are not shown yet. All panels show one revision of the ledger: rows are shown once
// everything that is drawn with them is here.

import type { RowPage } from '../../../../core/contract/inspection/inspection.js';
import type { Rows } from './rows/rows.js';

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
