// Finds the rows of a tree and of a mark. A commit writes to no index: the newest rows are found in the tail, which is
// in memory, and the index tables follow in large, ordered steps (`SqliteIndexer`). A writer adds what it commits to
// the tail; every other connection scans the rows that are new since its last read.

import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';
import { inputKey, keysOf, markIn, proposalKey, readMarks, RowInserts, type MarkIndexKey } from './sqlite-rows.js';
import type { InputMark, MarkKey, ProposalMark } from '../../engine/ports/ledger/ledger-store.js';
import { checkProposalId } from '../ledger/check-batch.js';
import { tamperedError } from '../ledger/store-errors.js';

/** The position of a block in the log and in its tree. */
interface BlockPlace {
  readonly log_index: number;
  readonly seq: number;
}

/** A position up to which something is complete, exclusive: a log index, and a row number of `marks`. */
export interface IndexPosition {
  readonly log_index: number;
  readonly mark_no: number;
}

/** A part of the tail: blocks by tree, in order, and row numbers of marks by scope and name. */
class TailStretch {
  readonly blocks = new Map<string, BlockPlace[]>();
  readonly marks = new Map<string, Map<string, number>>();
  /** Number of blocks and marks together. */
  size = 0;

  addBlock(tree_id: string, place: BlockPlace): void {
    const known = this.blocks.get(tree_id);
    if (known === undefined) this.blocks.set(tree_id, [place]);
    else known.push(place);
    this.size += 1;
  }

  addMark({ scope, name }: MarkIndexKey, mark_no: number): void {
    const known = this.marks.get(scope);
    const names = known ?? new Map<string, number>();
    if (known === undefined) this.marks.set(scope, names);
    names.set(name, mark_no);
    this.size += 1;
  }
}

/** All blocks and marks from `start` on. */
export class SqliteTail {
  readonly #dataVersion: SqliteStatement;
  readonly #indexed: SqliteStatement;
  readonly #blocks: SqliteStatement;
  readonly #marks: SqliteStatement;
  /** SQLite's data_version, which changes when another connection has written. */
  #seenVersion: unknown = null;
  #start: IndexPosition = { log_index: 0, mark_no: 0 };
  #end: IndexPosition = this.#start;
  /** The stretch that is being indexed; `fresh` follows it. */
  #frozen: TailStretch | null = null;
  #fresh = new TailStretch();
  #version = 0;

  constructor(db: SqliteConnection) {
    this.#dataVersion = db.prepare('PRAGMA data_version').pluck();
    this.#indexed = db.prepare('SELECT blocks_indexed AS log_index, marks_indexed AS mark_no FROM meta');
    this.#blocks = db.prepare('SELECT log_index, seq, tree_id FROM blocks WHERE log_index >= ? ORDER BY log_index');
    this.#marks = db.prepare('SELECT mark_no, marks FROM marks WHERE mark_no >= ? ORDER BY mark_no');
  }

  /** Everything below this position is indexed. The indexes may contain rows beyond it, which are ignored. */
  get start(): IndexPosition {
    return this.#start;
  }

  /** The number of the next row of `marks`. */
  get nextMark(): number {
    return this.#end.mark_no;
  }

  get fresh(): TailStretch {
    return this.#fresh;
  }

  /** Increases whenever anything but `addMark` may have changed which marks exist. */
  get version(): number {
    return this.#version;
  }

  /** Loads what other connections have written. @throws LedgerError LEDGER_TAMPERED */
  refresh(): void {
    const version = this.#dataVersion.get();
    if (version === this.#seenVersion) return;
    this.#version += 1;
    // Read first, so that the indexes are at least this complete when they are queried.
    const indexed = this.#indexed.get() as IndexPosition | undefined;
    if (indexed === undefined) throw tamperedError('the ledger has lost its head');
    if (indexed.log_index !== this.#start.log_index || indexed.mark_no !== this.#start.mark_no) this.#restart(indexed);
    let { log_index, mark_no } = this.#end;
    for (const row of this.#blocks.iterate(log_index) as Iterable<BlockPlace & { readonly tree_id: string }>) {
      this.#fresh.addBlock(row.tree_id, { log_index: row.log_index, seq: row.seq });
      log_index = row.log_index + 1;
    }
    for (const row of this.#marks.iterate(mark_no) as Iterable<{ readonly mark_no: number; readonly marks: string }>) {
      for (const key of keysOf(readMarks(row.mark_no, row.marks))) this.#fresh.addMark(key, row.mark_no);
      mark_no = row.mark_no + 1;
    }
    this.#end = { log_index, mark_no };
    this.#seenVersion = version;
  }

  /** Drops the cached rows, because they may differ from the file: the next `refresh` scans all of the tail. */
  forget(): void {
    this.#restart(this.#start);
    this.#seenVersion = null;
  }

  #restart(start: IndexPosition): void {
    this.#version += 1;
    this.#start = start;
    this.#end = start;
    this.#frozen = null;
    this.#fresh = new TailStretch();
  }

  addBlock(tree_id: string, place: BlockPlace): void {
    this.#fresh.addBlock(tree_id, place);
  }

  /** @param key its name must not be a slice of a larger string: see `copyName` */
  addMark(key: MarkIndexKey, mark_no: number): void {
    this.#fresh.addMark(key, mark_no);
  }

  /** Sets the end of the tail, after rows were added. */
  advanceTo(end: IndexPosition): void {
    this.#end = end;
  }

  /** Freezes the fresh stretch, to be indexed. @returns the stretch and its end */
  freeze(): { readonly stretch: TailStretch; readonly end: IndexPosition } {
    this.#frozen = this.#fresh;
    this.#fresh = new TailStretch();
    return { stretch: this.#frozen, end: this.#end };
  }

  /** Removes the frozen stretch, after the indexes cover it. */
  drop(end: IndexPosition): void {
    this.#frozen = null;
    this.#start = end;
  }

  /** The blocks of a tree from `start` on, in order. */
  blocks(tree_id: string): readonly BlockPlace[] {
    const frozen = this.#frozen?.blocks.get(tree_id);
    const fresh = this.#fresh.blocks.get(tree_id) ?? [];
    return frozen === undefined ? fresh : [...frozen, ...fresh];
  }

  /** @returns the row number of the mark, or undefined */
  mark({ scope, name }: MarkIndexKey): number | undefined {
    return this.#fresh.marks.get(scope)?.get(name) ?? this.#frozen?.marks.get(scope)?.get(name);
  }

  /** All marks of a scope from `start` on. */
  *marksOf(scope: string): Generator<readonly [name: string, mark_no: number], void> {
    yield* this.#frozen?.marks.get(scope) ?? [];
    yield* this.#fresh.marks.get(scope) ?? [];
  }
}

// Marks are found by scope and name. The id of a proposal must be unique, so it is looked up before it is used; nearly
// all these lookups find nothing. So the writer caches all names of the scopes that were queried recently, and answers
// for a new name without a query.
//
//   N1. Names are cached only while this store is the only writer; it adds what it commits. A writer that was replaced
//       (for example, it lost its lock while it was stopped) does not notice here, and need not. A mark that it finds
//       never changes; one that it does not find leads to a batch, which W1 of sqlite-writer.ts rejects. From then on
//       it caches nothing and reads what others have written, like every reader.
//   N2. A scope is cached completely or not at all. A scope that was evicted or is too large is not loaded again; it is
//       queried in the database each time.
//   N3. When the tail loads rows of other writers, or drops its own, the whole cache is cleared.

/** Limits of the cache. */
interface MarkCacheLimits {
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

export class SqliteMarkIndex {
  readonly #tail: SqliteTail;
  readonly #max: MarkCacheLimits;
  readonly #one: SqliteStatement;
  readonly #ofScope: SqliteStatement;
  readonly #row: SqliteStatement;
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
    this.#row = db.prepare('SELECT marks FROM marks WHERE mark_no = ?').pluck();
  }

  /** Sets whether this store is the only writer from now on. */
  set isOnlyWriter(isOnlyWriter: boolean) {
    this.#isOnlyWriter = isOnlyWriter;
    this.#clear();
  }

  /** @returns for each key its mark, or null @throws LedgerError LEDGER_TAMPERED */
  marks(keys: readonly MarkKey[]): readonly (InputMark | ProposalMark | null)[] {
    for (const key of keys) if ('proposal_id' in key) checkProposalId(key.proposal_id);
    // Loads what other connections have written.
    if (!this.#isOnlyWriter) this.#tail.refresh();
    return keys.map((key) => this.#mark(key));
  }

  #mark(requested: MarkKey): InputMark | ProposalMark | null {
    const key = 'input_id' in requested ? inputKey(requested) : proposalKey(requested);
    const mark_no = this.find(key);
    if (mark_no === null) return null;
    const text: unknown = this.#row.get(mark_no);
    const mark = typeof text === 'string' ? markIn(readMarks(mark_no, text), requested) : undefined;
    if (mark !== undefined) return mark;
    throw tamperedError(`a mark of ${key.scope} is not in row ${mark_no} of the marks, where it was`);
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

// The indexes by tree and by mark follow the commits. A stretch of several thousand rows is sorted together, so that
// neighbouring rows of an index are written together. It is written slice by slice, so that no commit waits long. A
// stretch counts as indexed only when all of it is written; until then its rows are found in the tail.

/** Rows sorted together. More means fewer pages written twice, but more memory and longer scans of the tail. */
export const STRETCH_ROWS = 8_192;
/** Number of slices of a stretch; fewer if a commit is larger than a slice. */
export const SLICES = 32;
/** Index rows written for each new row, so that a stretch is finished before the next one is full. */
const ROWS_PER_NEW_ROW = 2;

/** Rows in one INSERT statement. */
const STATEMENT_ROWS = 32;

type IndexRow = readonly [table: RowInserts, id: string, key: number | string, place: number];

export class SqliteIndexer {
  readonly #tail: SqliteTail;
  readonly #blocks: RowInserts;
  readonly #marks: RowInserts;
  readonly #setIndexed: SqliteStatement;
  #unfinished: { readonly rows: Iterator<IndexRow, undefined>; readonly end: IndexPosition } | null = null;
  readonly #stretchRows: number;
  #rowsDue = 0;

  constructor(db: SqliteConnection, tail: SqliteTail, stretchRows: number) {
    this.#tail = tail;
    this.#stretchRows = stretchRows;
    // IGNORE: an earlier writer may have inserted a part of the stretch before it died.
    this.#blocks = new RowInserts(db, 'INSERT OR IGNORE INTO tree_index', 3, STATEMENT_ROWS);
    this.#marks = new RowInserts(db, 'INSERT OR IGNORE INTO mark_index', 3, STATEMENT_ROWS);
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
