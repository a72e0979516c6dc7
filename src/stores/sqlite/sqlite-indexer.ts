// The indexes by tree and by mark follow the commits. A stretch of several thousand rows is sorted together, so that
// neighbouring rows of an index are written together. It is written slice by slice, so that no commit waits long. A
// stretch counts as indexed only when all of it is written; until then its rows are found in the tail.

import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';
import type { IndexPosition, SqliteTail, TailStretch } from './sqlite-tail.js';

/** Rows sorted together. More means fewer pages written twice, but more memory and longer scans of the tail. */
export const STRETCH_ROWS = 8_192;
/** Number of slices of a stretch; fewer if a commit is larger than a slice. */
export const SLICES = 32;
/** Index rows written for each new row, so that a stretch is finished before the next one is full. */
const ROWS_PER_NEW_ROW = 2;

/** Rows in one INSERT statement: for its rollback, each statement copies the pages that it changes. */
const STATEMENT_ROWS = 32;

type IndexRow = readonly [table: IndexInserts, id: string, key: number | string, place: number];

export class SqliteIndexer {
  readonly #tail: SqliteTail;
  readonly #blocks: IndexInserts;
  readonly #marks: IndexInserts;
  readonly #setIndexed: SqliteStatement;
  #unfinished: { readonly rows: Iterator<IndexRow, undefined>; readonly end: IndexPosition } | null = null;
  readonly #stretchRows: number;
  #rowsDue = 0;

  constructor(db: SqliteConnection, tail: SqliteTail, stretchRows: number) {
    this.#tail = tail;
    this.#stretchRows = stretchRows;
    this.#blocks = new IndexInserts(db, 'tree_index');
    this.#marks = new IndexInserts(db, 'mark_index');
    this.#setIndexed = db.prepare('UPDATE meta SET blocks_indexed = ?, marks_indexed = ?');
  }

  /**
   * Continues indexing within the open transaction, which adds `written` new rows.
   * @returns how far the indexes reach after its commit, if they reach further than before; else null
   */
  advance(written: number): IndexPosition | null {
    this.#rowsDue += ROWS_PER_NEW_ROW * written;
    if (this.#rowsDue < this.#stretchRows / SLICES) return null;
    const rows = this.#rowsDue;
    this.#rowsDue = 0;
    if (this.#unfinished === null && this.#tail.fresh.size < this.#stretchRows) return null;
    return this.#write(rows);
  }

  /** Restarts indexing within the open transaction; indexes a full stretch at once. @returns as `advance` */
  begin(): IndexPosition | null {
    this.#unfinished = null;
    return this.#tail.fresh.size < this.#stretchRows ? null : this.#write(Infinity);
  }

  #write(rows_max: number): IndexPosition | null {
    this.#unfinished ??= this.#freeze();
    const { rows, end } = this.#unfinished;
    let isDone = false;
    for (let count = 0; count < rows_max && !isDone; count += 1) {
      const { value } = rows.next();
      if (value === undefined) isDone = true;
      else {
        const [table, id, key, place] = value;
        table.add(id, key, place);
      }
    }
    this.#blocks.flush();
    this.#marks.flush();
    if (!isDone) return null;
    this.#setIndexed.run(end.log_index, end.mark_no);
    this.#unfinished = null;
    return end;
  }

  #freeze(): { readonly rows: Iterator<IndexRow, undefined>; readonly end: IndexPosition } {
    const { stretch, end } = this.#tail.freeze();
    return { rows: this.#rowsOf(stretch), end };
  }

  /** In index order. The names of one scope are sorted only when the iteration reaches it. */
  *#rowsOf({ blocks, marks }: TailStretch): Generator<IndexRow, undefined> {
    for (const tree_id of [...blocks.keys()].sort()) {
      for (const { seq, log_index } of blocks.get(tree_id) ?? []) yield [this.#blocks, tree_id, seq, log_index];
    }
    for (const scope of [...marks.keys()].sort()) {
      const names = [...(marks.get(scope) ?? [])].sort(([one], [other]) => (one < other ? -1 : 1));
      for (const [name, mark_no] of names) yield [this.#marks, scope, name, mark_no];
    }
    return undefined;
  }
}

/** Collects rows for an index and inserts several in one statement. */
class IndexInserts {
  readonly #one: SqliteStatement;
  readonly #many: SqliteStatement;
  #values: (string | number)[] = [];

  constructor(db: SqliteConnection, table: 'tree_index' | 'mark_index') {
    // IGNORE: an earlier writer may have inserted a part of the stretch before it died.
    const insert = `INSERT OR IGNORE INTO ${table} VALUES (?, ?, ?)`;
    this.#one = db.prepare(insert);
    this.#many = db.prepare(insert + ', (?, ?, ?)'.repeat(STATEMENT_ROWS - 1));
  }

  add(id: string, key: number | string, place: number): void {
    this.#values.push(id, key, place);
    if (this.#values.length < 3 * STATEMENT_ROWS) return;
    this.#many.run(this.#values);
    this.#values = [];
  }

  flush(): void {
    for (let at = 0; at < this.#values.length; at += 3) this.#one.run(this.#values.slice(at, at + 3));
    this.#values = [];
  }
}
