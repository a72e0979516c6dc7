// The indexes by tree and by mark follow the commits. A stretch of some thousand rows is taken together, so that rows
// which lie side by side in an index are written together; and it is written slice by slice, so that no commit waits
// long. It belongs to the index when all of it is there: until then it is found in the tail.

import type { Connection, Statement } from './sqlite-database.js';
import type { Reach, SqliteTail, Stretch } from './sqlite-tail.js';

/** So many rows are put in order together: more means fewer pages written twice, and more to hold and look through. */
export const STRETCH_ROWS = 8_192;
/** Rows that are written at once; more only where a commit is larger itself. */
export const SLICE_ROWS = 256;
/** Rows that are written for each new one, so that a stretch is done before the next one is there. */
const PACE = 2;

type IndexRow = readonly [statement: Statement, id: string, key: number | string, place: number];

export class SqliteCatchUp {
  readonly #tail: SqliteTail;
  readonly #insertBlock: Statement;
  readonly #insertMark: Statement;
  readonly #setIndexed: Statement;
  #work: { readonly rows: Iterator<IndexRow, undefined>; readonly end: Reach } | null = null;
  #owed = 0;

  constructor(db: Connection, tail: SqliteTail) {
    this.#tail = tail;
    // What a writer that died had begun is there already.
    this.#insertBlock = db.prepare('INSERT OR IGNORE INTO tree_index VALUES (?, ?, ?)');
    this.#insertMark = db.prepare('INSERT OR IGNORE INTO mark_index VALUES (?, ?, ?)');
    this.#setIndexed = db.prepare('UPDATE meta SET blocks_indexed = ?, marks_indexed = ?');
  }

  /**
   * Goes on within the transaction that is open, which brings `written` new rows.
   * @returns how far the indexes go when it commits, if that is further than before
   */
  follow(written: number): Reach | null {
    this.#owed += PACE * written;
    if (this.#owed < SLICE_ROWS) return null;
    const rows = this.#owed;
    this.#owed = 0;
    if (this.#work === null && this.#tail.fresh.size < STRETCH_ROWS) return null;
    return this.#write(rows);
  }

  /** Begins anew within the transaction that is open, with all that there is if it is much. @returns as `follow` */
  begin(): Reach | null {
    this.#work = null;
    return this.#tail.fresh.size < STRETCH_ROWS ? null : this.#write(Infinity);
  }

  #write(rows_max: number): Reach | null {
    this.#work ??= this.#freeze();
    const { rows, end } = this.#work;
    for (let count = 0; count < rows_max; count += 1) {
      const { value } = rows.next();
      if (value === undefined) {
        this.#setIndexed.run(end.log_index, end.mark_no);
        this.#work = null;
        return end;
      }
      const [statement, id, key, place] = value;
      statement.run(id, key, place);
    }
    return null;
  }

  #freeze(): { readonly rows: Iterator<IndexRow, undefined>; readonly end: Reach } {
    const { stretch, end } = this.#tail.freeze();
    return { rows: this.#rowsOf(stretch), end };
  }

  /** In the order of the indexes; what one tree has is put in order when its turn has come. */
  *#rowsOf({ blocks, marks }: Stretch): Generator<IndexRow, undefined> {
    for (const tree_id of [...blocks.keys()].sort()) {
      for (const { seq, log_index } of blocks.get(tree_id) ?? []) yield [this.#insertBlock, tree_id, seq, log_index];
    }
    for (const scope of [...marks.keys()].sort()) {
      const names = [...(marks.get(scope) ?? [])].sort(([one], [other]) => (one < other ? -1 : 1));
      for (const [name, mark_no] of names) yield [this.#insertMark, scope, name, mark_no];
    }
    return undefined;
  }
}
