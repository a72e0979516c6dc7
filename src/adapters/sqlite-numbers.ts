import { InvariantError } from '../errors.js';
import type { Connection, Statement } from './sqlite-database.js';
import { recent } from './sqlite-recent.js';

/** So many live trees or root runs are known without asking the database. */
const RECENT_MAX = 10_000;

/** Short row numbers for long ids: of trees, and of root runs. A number never changes and is never given twice. */
export class SqliteNumbers {
  readonly #recent = recent<number>(RECENT_MAX);
  readonly #select: Statement;
  readonly #last: Statement;
  readonly #insert: Statement;
  #next = 0;

  constructor(
    db: Connection,
    { table, number, id }: { readonly table: string; readonly number: string; readonly id: string },
  ) {
    this.#select = db.prepare(`SELECT ${number} FROM ${table} WHERE ${id} = ?`).pluck();
    this.#last = db.prepare(`SELECT ifnull(max(${number}) + 1, 0) FROM ${table}`).pluck();
    this.#insert = db.prepare(`INSERT INTO ${table} VALUES (?, ?)`);
  }

  /** Makes ready for `give`: from now on nobody else adds rows. */
  startWriting(): void {
    this.#next = Number(this.#last.get());
  }

  /** @returns null for an id that has no number */
  of(id: string): number | null {
    const known = this.#recent.get(id);
    if (known !== undefined) return known;
    const found = this.#select.get(id);
    if (typeof found !== 'number') return null;
    this.#recent.set(id, found);
    return found;
  }

  /** The number of an id that must have one. @throws InvariantError */
  need(id: string): number {
    const known = this.of(id);
    if (known === null) throw new InvariantError(`a mark of ${id}, which has no entries`);
    return known;
  }

  /** The number of an id, within the transaction that is open; it gets one if it has none. */
  give(id: string): number {
    const known = this.of(id);
    if (known !== null) return known;
    const number = this.#next++;
    this.#insert.run(number, id);
    this.#recent.set(id, number);
    return number;
  }
}
