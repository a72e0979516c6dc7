// The indexes by tree and by mark follow the commits. A stretch of some thousand rows is taken together, so that rows
// which lie side by side in an index are written together; and it is written slice by slice, so that no commit waits
// long. It belongs to the index when all of it is there: until then it is found in the tail.

import type { Connection, Statement } from './sqlite-database.js';
import type { Reach, SqliteTail, Stretch } from './sqlite-tail.js';

/** So many rows are put in order together: more means fewer pages written twice, and more to hold and look through. */
export const STRETCH_ROWS = 8_192;
/** A stretch is written in so many slices, or fewer where a commit is larger than a slice. */
export const SLICES = 32;
/** Rows that are written for each new one, so that a stretch is done before the next one is there. */
const PACE = 2;

/** So many rows share a statement where there are so many: each one copies the pages it changes, to be undone. */
const STATEMENT_ROWS = 32;

type IndexRow = readonly [table: Inserts, id: string, key: number | string, place: number];

export class SqliteCatchUp {
  readonly #tail: SqliteTail;
  readonly #blocks: Inserts;
  readonly #marks: Inserts;
  readonly #setIndexed: Statement;
  #work: { readonly rows: Iterator<IndexRow, undefined>; readonly end: Reach } | null = null;
  readonly #stretchRows: number;
  #owed = 0;

  constructor(db: Connection, tail: SqliteTail, stretchRows: number) {
    this.#tail = tail;
    this.#stretchRows = stretchRows;
    this.#blocks = new Inserts(db, 'tree_index');
    this.#marks = new Inserts(db, 'mark_index');
    this.#setIndexed = db.prepare('UPDATE meta SET blocks_indexed = ?, marks_indexed = ?');
  }

  /**
   * Goes on within the transaction that is open, which brings `written` new rows.
   * @returns how far the indexes go when it commits, if that is further than before
   */
  follow(written: number): Reach | null {
    this.#owed += PACE * written;
    if (this.#owed < this.#stretchRows / SLICES) return null;
    const rows = this.#owed;
    this.#owed = 0;
    if (this.#work === null && this.#tail.fresh.size < this.#stretchRows) return null;
    return this.#write(rows);
  }

  /** Begins anew within the transaction that is open, with all that there is if it is much. @returns as `follow` */
  begin(): Reach | null {
    this.#work = null;
    return this.#tail.fresh.size < this.#stretchRows ? null : this.#write(Infinity);
  }

  #write(rows_max: number): Reach | null {
    this.#work ??= this.#freeze();
    const { rows, end } = this.#work;
    let done = false;
    for (let count = 0; count < rows_max && !done; count += 1) {
      const { value } = rows.next();
      if (value === undefined) done = true;
      else {
        const [table, id, key, place] = value;
        table.add(id, key, place);
      }
    }
    this.#blocks.flush();
    this.#marks.flush();
    if (!done) return null;
    this.#setIndexed.run(end.log_index, end.mark_no);
    this.#work = null;
    return end;
  }

  #freeze(): { readonly rows: Iterator<IndexRow, undefined>; readonly end: Reach } {
    const { stretch, end } = this.#tail.freeze();
    return { rows: this.#rowsOf(stretch), end };
  }

  /** In the order of the indexes; what one tree has is put in order when its turn has come. */
  *#rowsOf({ blocks, marks }: Stretch): Generator<IndexRow, undefined> {
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

/** Rows on their way into an index, some to a statement. */
class Inserts {
  readonly #one: Statement;
  readonly #many: Statement;
  #values: (string | number)[] = [];

  constructor(db: Connection, table: 'tree_index' | 'mark_index') {
    // What a writer that died had begun is there already.
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
