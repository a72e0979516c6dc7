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
//   N2. A scope is held whole or not at all. One that is put out, or too large to be read, is not read again: what does
//       not fit is asked of the database each time, and never made to fit.
//   N3. What the tail takes up from others, or forgets, is the end of all that is held.

import type { Connection, Statement } from './sqlite-database.js';
import type { MarkKey } from './sqlite-marks.js';
import type { SqliteTail } from './sqlite-tail.js';

/** How much is held. */
export interface HeldMax {
  /** A scope that has more names when it is asked for first is not read. */
  readonly read: number;
  /** A scope that grows beyond this is put out. */
  readonly scope: number;
  /** Of all scopes together, with one more for each scope. */
  readonly names: number;
}
/** To read a scope takes some 0.2 ms at most; all that is held is some 16 MB. */
const HELD_MAX: HeldMax = { read: 256, scope: 16_384, names: 131_072 };

type Names = Map<string, number>;

export class SqliteMarkNumbers {
  readonly #tail: SqliteTail;
  readonly #max: HeldMax;
  readonly #one: Statement;
  readonly #ofScope: Statement;
  /** By scope, the one that was asked for first in front. Null for one that is not to be read. */
  readonly #held = new Map<string, Names | null>();
  #size = 0;
  #alone = false;
  /** Of the tail, when the first of what is held was. */
  #turn = 0;

  constructor(db: Connection, tail: SqliteTail, max = HELD_MAX) {
    this.#tail = tail;
    this.#max = max;
    this.#one = db.prepare('SELECT mark_no FROM mark_index WHERE scope = ? AND name = ?').pluck();
    this.#ofScope = db.prepare(`SELECT name, mark_no FROM mark_index WHERE scope = ? LIMIT ${max.read + 1}`).raw();
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
    return names.size > this.#max.read ? null : names;
  }

  #hold(scope: string, names: Names | null): void {
    this.#size += sizeOf(names) - (this.#held.has(scope) ? sizeOf(this.#held.get(scope) ?? null) : 0);
    this.#held.set(scope, names);
  }

  /** First what is held of the oldest is let go, and then, that it is not to be read. */
  #shrink(): void {
    if (this.#size <= this.#max.names) return;
    for (const [scope, names] of this.#held) {
      if (names !== null && names.size > 0) this.#hold(scope, null);
      else {
        this.#held.delete(scope);
        this.#size -= 1;
      }
      if (this.#size <= this.#max.names) return;
    }
  }

  #clear(): void {
    this.#held.clear();
    this.#size = 0;
    this.#turn = this.#tail.turn;
  }
}

const sizeOf = (names: Names | null): number => 1 + (names?.size ?? 0);
