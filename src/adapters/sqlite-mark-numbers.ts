// Where marks are: in which row, by scope and name.
//
// A proposal brings an id that nobody has used, and that must be known: nearly all of what is asked here is not there.
// So the writer holds all names of the scopes that it was asked for lately, and says of a new one that it is new
// without asking the database.
//
//   N1. Names are held only while this store is the only writer, and what it has committed is added to them. A writer
//       that was replaced (its lock was lost while it was stopped, say) does not notice here, and need not: a mark that
//       it finds never changes, and what follows from one that it does not find is a batch, which W1 refuses. From then
//       on it holds nothing, and looks at what others have written like every reader.
//   N2. A scope is held whole or not at all.
//   N3. What the tail takes up from others, or forgets, is the end of all that is held.

import type { Connection, Statement } from './sqlite-database.js';
import type { MarkKey } from './sqlite-marks.js';
import type { SqliteTail } from './sqlite-tail.js';

/** How much is held. */
export interface HeldMax {
  /** A scope with more names is not held. */
  readonly scope: number;
  /** Of all scopes together, with one more for each scope. */
  readonly names: number;
}
/** To hold the largest scope takes some 10 ms, once; all of it is some 8 MB. */
const HELD_MAX: HeldMax = { scope: 16_384, names: 65_536 };

type Names = Map<string, number>;

export class SqliteMarkNumbers {
  readonly #tail: SqliteTail;
  readonly #max: HeldMax;
  readonly #one: Statement;
  readonly #ofScope: Statement;
  /** By scope, the one that was asked for first in front. Null for one that is too large. */
  readonly #held = new Map<string, Names | null>();
  #size = 0;
  #alone = false;
  /** Of the tail, when the first of what is held was. */
  #turn = 0;

  constructor(db: Connection, tail: SqliteTail, max = HELD_MAX) {
    this.#tail = tail;
    this.#max = max;
    this.#one = db.prepare('SELECT mark_no FROM mark_index WHERE scope = ? AND name = ?').pluck();
    this.#ofScope = db.prepare(`SELECT name, mark_no FROM mark_index WHERE scope = ? LIMIT ${max.scope + 1}`).raw();
  }

  /** Says whether nobody else writes from now on. */
  set alone(alone: boolean) {
    this.#alone = alone;
    this.#clear();
  }

  /** What others have written counts from now on. @throws LedgerError LEDGER_TAMPERED */
  refresh(): void {
    if (!this.#alone) this.#tail.refresh();
  }

  /** @returns the number of the row of marks that has it, or null; what others wrote meanwhile is not looked for */
  of(key: MarkKey): number | null {
    const names = this.#alone ? this.#namesOf(key.scope) : null;
    if (names !== null) return names.get(key.name) ?? null;
    return this.#tail.mark(key) ?? (this.#one.get(key.scope, key.name) as number | undefined) ?? null;
  }

  /** Says that a mark was committed. */
  add({ scope, name }: MarkKey, mark_no: number): void {
    const names = this.#held.get(scope);
    if (names === undefined || names === null) return;
    names.set(name, mark_no);
    this.#size += 1;
    if (names.size > this.#max.scope) this.#hold(scope, null);
    this.#shrink();
  }

  #namesOf(scope: string): Names | null {
    if (this.#turn !== this.#tail.turn) this.#clear();
    const held = this.#held.get(scope);
    if (held !== undefined) return held;
    const names = this.#read(scope);
    this.#hold(scope, names);
    this.#shrink();
    return names;
  }

  #read(scope: string): Names | null {
    const names: Names = new Map(this.#ofScope.all(scope) as [string, number][]);
    for (const [name, mark_no] of this.#tail.marksOf(scope)) names.set(name, mark_no);
    return names.size > this.#max.scope ? null : names;
  }

  #hold(scope: string, names: Names | null): void {
    this.#drop(scope);
    this.#held.set(scope, names);
    this.#size += 1 + (names?.size ?? 0);
  }

  #drop(scope: string): void {
    const names = this.#held.get(scope);
    if (names === undefined) return;
    this.#held.delete(scope);
    this.#size -= 1 + (names?.size ?? 0);
  }

  #shrink(): void {
    if (this.#size <= this.#max.names) return;
    for (const scope of this.#held.keys()) {
      this.#drop(scope);
      if (this.#size <= this.#max.names) return;
    }
  }

  #clear(): void {
    this.#held.clear();
    this.#size = 0;
    this.#turn = this.#tail.turn;
  }
}
