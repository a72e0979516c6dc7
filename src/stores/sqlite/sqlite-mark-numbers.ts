// Finds the row of a mark by scope and name.
//
// The id of a proposal must be unique, so it is looked up before it is used; nearly all these lookups find nothing. So
// the writer caches all names of the scopes that were queried recently, and answers for a new name without a query.
//
//   N1. Names are cached only while this store is the only writer; it adds what it commits. A writer that was replaced
//       (for example, it lost its lock while it was stopped) does not notice here, and need not. A mark that it finds
//       never changes; one that it does not find leads to a batch, which W1 of sqlite-writer.ts rejects. From then on
//       it caches nothing and reads what others have written, like every reader.
//   N2. A scope is cached completely or not at all. A scope that was evicted or is too large is not loaded again; it is
//       queried in the database each time.
//   N3. When the tail loads rows of other writers, or drops its own, the whole cache is cleared.

import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';
import type { MarkIndexKey } from './sqlite-marks.js';
import type { SqliteTail } from './sqlite-tail.js';

/** Limits of the cache. */
export interface MarkCacheLimits {
  /** A scope with more names at its first lookup is not loaded. */
  readonly read: number;
  /** A scope that grows beyond this is evicted. */
  readonly scope: number;
  /** Maximum of all cached names, plus one for each scope. */
  readonly names: number;
}
/** Loading a scope takes at most about 0.2 ms; the whole cache takes about 16 MB. */
const MARK_CACHE_LIMITS: MarkCacheLimits = { read: 256, scope: 16_384, names: 131_072 };

type NumbersByName = Map<string, number>;

export class SqliteMarkNumbers {
  readonly #tail: SqliteTail;
  readonly #max: MarkCacheLimits;
  readonly #one: SqliteStatement;
  readonly #ofScope: SqliteStatement;
  /** By scope, in the order of the first lookup. Null: the scope is not to be loaded. */
  readonly #cached = new Map<string, NumbersByName | null>();
  #size = 0;
  #isOnlyWriter = false;
  /** Version of the tail when the cache was last cleared. */
  #tailVersion = 0;

  constructor(db: SqliteConnection, tail: SqliteTail, max = MARK_CACHE_LIMITS) {
    this.#tail = tail;
    this.#max = max;
    this.#one = db.prepare('SELECT mark_no FROM mark_index WHERE scope = ? AND name = ?').pluck();
    this.#ofScope = db.prepare(`SELECT name, mark_no FROM mark_index WHERE scope = ? LIMIT ${max.read + 1}`).raw();
  }

  /** Sets whether this store is the only writer from now on. */
  set isOnlyWriter(isOnlyWriter: boolean) {
    this.#isOnlyWriter = isOnlyWriter;
    this.#clear();
  }

  /** Loads what other connections have written. @throws LedgerError LEDGER_TAMPERED */
  refresh(): void {
    if (!this.#isOnlyWriter) this.#tail.refresh();
  }

  /** @returns the number of the row of the mark, or null; does not look for rows that others wrote in the meantime */
  find(key: MarkIndexKey): number | null {
    const names = this.#isOnlyWriter ? this.#namesOf(key.scope) : null;
    if (names !== null) return names.get(key.name) ?? null;
    return this.#tail.mark(key) ?? (this.#one.get(key.scope, key.name) as number | undefined) ?? null;
  }

  /** Adds a committed mark to the cache. */
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

  /** Evicts the names of the oldest scopes first, then the notes that a scope is not to be loaded. */
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
