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

import type { SqliteConnection, SqliteStatement } from './sqlite-database.js';
import type { MarkIndexKey } from './sqlite-marks.js';
import type { SqliteTail } from './sqlite-tail.js';

/** How much is held. */
export interface MarkCacheLimits {
  /** A scope that has more names when it is asked for first is not read. */
  readonly read: number;
  /** A scope that grows beyond this is put out. */
  readonly scope: number;
  /** Of all scopes together, with one more for each scope. */
  readonly names: number;
}
/** To read a scope takes some 0.2 ms at most; all that is held is some 16 MB. */
const MARK_CACHE_LIMITS: MarkCacheLimits = { read: 256, scope: 16_384, names: 131_072 };

type NumbersByName = Map<string, number>;

export class SqliteMarkNumbers {
  readonly #tail: SqliteTail;
  readonly #max: MarkCacheLimits;
  readonly #one: SqliteStatement;
  readonly #ofScope: SqliteStatement;
  /** By scope, the one that was asked for first in front. Null for one that is not to be read. */
  readonly #cached = new Map<string, NumbersByName | null>();
  #size = 0;
  #isOnlyWriter = false;
  /** Of the tail, when the first of what is held was. */
  #tailVersion = 0;

  constructor(db: SqliteConnection, tail: SqliteTail, max = MARK_CACHE_LIMITS) {
    this.#tail = tail;
    this.#max = max;
    this.#one = db.prepare('SELECT mark_no FROM mark_index WHERE scope = ? AND name = ?').pluck();
    this.#ofScope = db.prepare(`SELECT name, mark_no FROM mark_index WHERE scope = ? LIMIT ${max.read + 1}`).raw();
  }

  /** Says whether nobody else writes from now on. */
  set isOnlyWriter(isOnlyWriter: boolean) {
    this.#isOnlyWriter = isOnlyWriter;
    this.#clear();
  }

  /** What others have written counts from now on. @throws LedgerError LEDGER_TAMPERED */
  refresh(): void {
    if (!this.#isOnlyWriter) this.#tail.refresh();
  }

  /** @returns the number of the row of marks that has it, or null; what others wrote meanwhile is not looked for */
  find(key: MarkIndexKey): number | null {
    const names = this.#isOnlyWriter ? this.#namesOf(key.scope) : null;
    if (names !== null) return names.get(key.name) ?? null;
    return this.#tail.mark(key) ?? (this.#one.get(key.scope, key.name) as number | undefined) ?? null;
  }

  /** Says that a mark was committed. */
  add({ scope, name }: MarkIndexKey, mark_no: number): void {
    const names = this.#cached.get(scope);
    if (names === undefined || names === null) return;
    names.set(name, mark_no);
    this.#size += 1;
    if (names.size > this.#max.scope) this.#cache(scope, null);
    this.#shrink();
  }

  #namesOf(scope: string): NumbersByName | null {
    if (this.#tailVersion !== this.#tail.version) this.#clear();
    const cached = this.#cached.get(scope);
    if (cached !== undefined) return cached;
    const names = this.#read(scope);
    this.#cache(scope, names);
    this.#shrink();
    return names;
  }

  #read(scope: string): NumbersByName | null {
    const names: NumbersByName = new Map(this.#ofScope.all(scope) as [string, number][]);
    for (const [name, mark_no] of this.#tail.marksOf(scope)) names.set(name, mark_no);
    return names.size > this.#max.read ? null : names;
  }

  #cache(scope: string, names: NumbersByName | null): void {
    this.#size += sizeOf(names) - (this.#cached.has(scope) ? sizeOf(this.#cached.get(scope) ?? null) : 0);
    this.#cached.set(scope, names);
  }

  /** First what is held of the oldest is let go, and then, that it is not to be read. */
  #shrink(): void {
    if (this.#size <= this.#max.names) return;
    for (const [scope, names] of this.#cached) {
      if (names !== null && names.size > 0) this.#cache(scope, null);
      else {
        this.#cached.delete(scope);
        this.#size -= 1;
      }
      if (this.#size <= this.#max.names) return;
    }
  }

  #clear(): void {
    this.#cached.clear();
    this.#size = 0;
    this.#tailVersion = this.#tail.version;
  }
}

const sizeOf = (names: NumbersByName | null): number => 1 + (names?.size ?? 0);
