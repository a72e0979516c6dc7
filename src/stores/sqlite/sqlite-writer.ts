// The writing half of the SQLite store. It exists from `acquire` to `close`.
//
//   W1. A batch is one transaction, which also integrates the batch into the log. Its first statement advances the
//       head only if epoch and size are still those of this writer. So a replaced writer fails before it inserts a row.
//   W2. After a statement or a COMMIT has failed, this writer commits nothing more. After a failed fsync the content of
//       the disk is unknown, and a retry would only hide the loss. `reopen` reads the state from the disk again.
//   W3. The head, row numbers, tree lengths and marks are cached in memory. That is safe because no other writer adds
//       rows while W1 holds.
//   W4. Committed rows are in the tail when `commit` returns, and not before.
//   W5. Rows of records are written before their batch: the first one begins the transaction that the batch commits.
//       If the batch is not committed, for any reason, they are rolled back.
//   W6. Derived data is written in its own transactions, never in that of a batch. A failure there is not a failure in
//       the sense of W2, unless the disk reported it.

import { InvariantError } from '../../core/errors.js';
import type {
  Batch,
  CommitResult,
  ErasureResult,
  Erasure,
  LogHead,
  TreeAppend,
} from '../../engine/ports/ledger/ledger-store.js';
import { checkBatch, integrateBatch, type IntegratedBatch } from '../ledger/check-batch.js';
import { errorCode } from '../../system/error-code.js';
import { bindKeyFolder, eraseCaseContent, proveCaseKeys, type ContentStorage } from './content/sqlite-artifacts.js';
import type { CaseKeyTable } from '../../engine/ports/ledger/case-key-table.js';
import {
  BlockText,
  blocksOf,
  type Block,
  batchMarksOf,
  marksText,
  findNewMarks,
  type MarkIndexKey,
  type BatchMarks,
} from './sqlite-rows.js';
import { type IndexPosition, SqliteIndexer, STRETCH_ROWS } from './sqlite-index.js';
import type { LedgerRecords } from '../../engine/ports/effects/records.js';
import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';
import { requireFormat } from './sqlite-database.js';
import { MIGRATIONS, type SqliteMigration } from './sqlite-schema.js';
import type { SqliteReader } from './sqlite-reader.js';
import type { SqliteComponents } from './sqlite-medium.js';
import { createLruMap, type LruMap } from '../../system/lru-map.js';
import { writerReplacedError, unavailableError } from '../ledger/store-errors.js';

/** Opens the table of the keys of cases, with which they can be replaced. */
export type OpenCaseKeyTable = (parts: {
  readonly storage: ContentStorage;
  readonly writer: () => SqliteWriter;
  /** Runs the work, and translates its errors. */
  readonly attempt: <T>(work: () => T) => Promise<T>;
}) => CaseKeyTable;

/**
 * Opens the records in the ledger's own database.
 * @param connection returns the open connection
 * @param writer returns the writer, or null while the store is not the writer
 */
export type OpenLedgerRecords = (
  connection: () => SqliteConnection,
  writer: () => SqliteWriter | null,
) => LedgerRecords;

/** The lengths of this many trees are cached. */
const TREES_MAX = 10_000;

type WriterComponents = Omit<SqliteComponents, 'isCurrent' | 'archives' | 'runRecords'>;

/** The rows that a transaction wrote, for the tail. */
interface CommittedRows {
  readonly integrated: IntegratedBatch;
  readonly blocks: readonly Block[];
  readonly marks: readonly MarkIndexKey[];
  readonly indexed: IndexPosition | null;
}

/** Commits batches. Statements are prepared once, so that a commit costs little more than its flush. */
export class SqliteWriter {
  readonly #parts: WriterComponents;
  readonly #migrations: readonly SqliteMigration[];
  readonly #catchUp: SqliteIndexer;
  readonly #begin: SqliteStatement;
  readonly #commit: SqliteStatement;
  readonly #rollback: SqliteStatement;
  readonly #moveHead: SqliteStatement;
  readonly #insertBlock: SqliteStatement;
  readonly #insertMarks: SqliteStatement;
  readonly #saveSnapshot: SqliteStatement;
  readonly #blockText = new BlockText();
  #treeLengths: LruMap<number> = createLruMap(TREES_MAX);
  #head: LogHead = { size: 0, root: '', frontier: [] };
  #failure: unknown = null;
  /** True while the transaction of the next batch is open and holds rows of records (W5). */
  #hasBegun = false;

  constructor(parts: WriterComponents, stretchRows = STRETCH_ROWS, migrations = MIGRATIONS) {
    const { db, tail } = parts;
    this.#parts = parts;
    this.#migrations = migrations;
    this.#catchUp = new SqliteIndexer(db, tail, stretchRows);
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#moveHead = db.prepare('UPDATE meta SET size = ?, root = ?, frontier = ? WHERE epoch = ? AND size = ?');
    this.#insertBlock = db.prepare('INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT))');
    this.#insertMarks = db.prepare('INSERT INTO marks VALUES (?, ?)');
    this.#saveSnapshot = db.prepare('INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)');
  }

  /**
   * Starts a new epoch, which ends the epoch of every other writer.
   * @returns the new epoch
   * @throws LedgerError LEDGER_UNSUPPORTED if another version has migrated the file meanwhile
   */
  beginEpoch(): number {
    const { db, artifacts, tail, markIndex, reader } = this.#parts;
    this.discardRecords();
    markIndex.isOnlyWriter = false;
    // Outside of the transaction, for its own error. A migration needs the writer lock, which this process has.
    requireFormat(db, this.#migrations);
    const { epoch, indexed } = this.#transact(() => {
      db.prepare('UPDATE meta SET epoch = epoch + 1').run();
      artifacts.startWriting();
      tail.forget();
      tail.refresh();
      this.#head = reader.head();
      this.#treeLengths = createLruMap(TREES_MAX);
      return { epoch: Number(db.prepare('SELECT epoch FROM meta').pluck().get()), indexed: this.#catchUp.begin() };
    });
    if (indexed !== null) tail.drop(indexed);
    bindKeyFolder(this.#parts);
    markIndex.isOnlyWriter = true;
    return epoch;
  }

  /** See `LedgerStore.commit`. @throws LedgerError LEDGER_CONFLICT, LEDGER_UNAVAILABLE @throws InvariantError */
  commit(batch: Batch): CommitResult {
    const fit = this.#check(batch);
    if (fit !== 'next') {
      this.discardRecords();
      if (fit === 'other' || this.#isEpochOver(batch.epoch))
        throw writerReplacedError('its epoch is over, or a tree has other entries');
      return presentResult(batch, this.#head, this.#parts.reader);
    }
    const written = this.#transact(() => this.#write(batch));
    if (written !== null) {
      this.#addToTail(written);
      return written.integrated;
    }
    this.#parts.markIndex.isOnlyWriter = false;
    throw writerReplacedError(`epoch ${batch.epoch} is over, or size ${this.#head.size} is`);
  }

  /** Runs `work`, which deletes rows, in its own transaction, and starts a new epoch. @returns the new epoch */
  remove(epoch: number, work: () => void): number {
    this.discardRecords();
    if (this.#transact(() => (this.#isEpochOver(epoch) ? 'over' : work())) === 'over')
      throw writerReplacedError(`epoch ${epoch} is over`);
    return this.beginEpoch();
  }

  /** Extends the index by hash, unless rows of records are pending. @returns whether rows remain to be indexed */
  indexArtifacts(): boolean {
    return this.#failure === null && !this.#hasBegun && this.#transact(() => this.#parts.artifacts.indexNext());
  }

  /**
   * Writes derived data (W6).
   * @returns false, with nothing written, while rows of records are pending
   * @throws the error of `work` or of the database; everything is rolled back
   */
  writeDerived(work: () => void): boolean {
    if (this.#failure !== null) throw unavailableError('a write failed before: reopen the ledger', this.#failure);
    if (this.#hasBegun) return false;
    try {
      this.#begin.run();
      work();
      this.#commit.run();
      return true;
    } catch (cause) {
      this.#rollBack();
      // After a disk error, or with the transaction still open, the content of the disk is unknown (W2).
      if (errorCode(cause).startsWith('SQLITE_IOERR') || this.#parts.db.inTransaction) this.fail(cause);
      throw cause;
    }
  }

  /** See `LedgerStore.erase`. */
  erase(erasure: Erasure): ErasureResult {
    // The key that is destroyed may be the only one by which an unnamed folder is recognized.
    bindKeyFolder(this.#parts);
    return eraseCaseContent(this.#parts, erasure, (work) => this.writeDerived(work));
  }

  /** Runs work on contents, which is given what runs a part of it in its own transaction (`writeDerived`). */
  onContents<T>(work: (parts: WriterComponents, inTransaction: (part: () => void) => boolean) => T): T {
    return work(this.#parts, (part) => this.writeDerived(part));
  }

  // Records in the ledger's own database take part in the transaction of the next batch (W5).

  /** Whether a write failed, so that this writer commits nothing more. */
  get isBroken(): boolean {
    return this.#failure !== null;
  }

  /** Whether the transaction of the next batch is open, with rows of records. */
  get hasRecords(): boolean {
    return this.#hasBegun;
  }

  /**
   * Creates tables of records in a transaction of its own.
   * @throws LedgerError LEDGER_UNAVAILABLE @throws InvariantError while rows are pending
   */
  createTables(work: () => void): void {
    if (this.#hasBegun) throw new InvariantError('tables of records cannot be made while rows of some wait');
    this.#transact(work);
  }

  /** Begins the transaction of the next batch. @returns false if it was open already */
  beginRecords(): boolean {
    if (this.#hasBegun) return false;
    this.#begin.run();
    this.#hasBegun = true;
    return true;
  }

  /** Rolls that transaction back. */
  discardRecords(): void {
    if (!this.#hasBegun) return;
    try {
      this.#rollback.run();
      this.#hasBegun = false;
    } catch (cause) {
      this.fail(cause);
    }
  }

  /** Rolls back, and prevents all further commits. */
  fail(cause: unknown): void {
    this.#failure = cause;
    this.#rollBack();
    this.#parts.tail.forget();
    this.#parts.markIndex.isOnlyWriter = false;
  }

  /** @returns how the batch fits the ledger @throws InvariantError, LedgerError, after rolling back rows of records */
  #check(batch: Batch): BatchFit {
    try {
      checkBatch(batch);
      if (this.#failure !== null) return 'next';
      const fit = batchFitOf(batch, (tree_id) => this.#treeLength(tree_id), this.#parts.reader);
      if (fit === 'next') proveCaseKeys(this.#parts, batch);
      return fit;
    } catch (error) {
      this.discardRecords();
      throw error;
    }
  }

  #isEpochOver(epoch: number): boolean {
    return this.#parts.db.prepare('SELECT epoch FROM meta').pluck().get() !== epoch;
  }

  /** Commits what `work` writes; rolls it back if `work` returns null. @returns the result of `work` */
  #transact<T>(work: () => T): T {
    if (this.#failure !== null) throw unavailableError('a write failed before: reopen the ledger', this.#failure);
    try {
      if (!this.#hasBegun) this.#begin.run();
      const result = work();
      if (result === null && this.#hasBegun) this.#rollback.run();
      else this.#commit.run();
      this.#hasBegun = false;
      return result;
    } catch (cause) {
      this.fail(cause);
      throw unavailableError('the ledger could not be written: nothing of this was acknowledged', cause);
    }
  }

  #rollBack(): void {
    this.#hasBegun = false;
    try {
      // SQLite rolls back by itself after some errors.
      if (this.#parts.db.inTransaction) this.#rollback.run();
    } catch {
      // The original error is reported already, and this connection commits nothing more.
    }
  }

  /** @returns null, with nothing written, if another writer has advanced the log */
  #write(batch: Batch): CommittedRows | null {
    const integrated = integrateBatch(this.#head, batch);
    const { head, first_log_indexes } = integrated;
    const { size } = this.#head;
    const moved = this.#moveHead.run(head.size, toBlob(head.root), toBlob(head.frontier.join('')), batch.epoch, size);
    if (moved.changes !== 1) return null;
    const attached = this.#parts.artifacts.storeAll(batch);
    const blocks: Block[] = [];
    for (const [at, append] of batch.trees.entries()) {
      const begin = first_log_indexes[at] ?? 0;
      for (const block of blocksOf(append, begin, attached[at])) {
        const { log_index, tree_id, seq, artifacts, types, leaf_hashes } = block;
        this.#insertBlock.run(log_index, tree_id, seq, artifacts, types, leaf_hashes, this.#blockText.encode(block));
        blocks.push(block);
      }
      this.#treeLengths.set(append.tree_id, append.from + append.entries.length);
      const { opened, ended, recoveryHint, snapshot } = append;
      if (opened !== null || ended || recoveryHint !== null) this.#parts.trees.write(append, begin);
      if (snapshot !== null) this.#saveSnapshot.run(snapshot.tree_id, snapshot.seq, snapshot.mac, snapshot.text);
    }
    const marks = batchMarksOf(batch);
    const keys = marks === null ? [] : this.#writeMarks(marks);
    return { integrated, blocks, marks: keys, indexed: this.#catchUp.advance(blocks.length + keys.length) };
  }

  #treeLength(tree_id: string): number {
    return this.#treeLengths.get(tree_id) ?? this.#parts.reader.treeEnd(tree_id);
  }

  #writeMarks(marks: BatchMarks): readonly MarkIndexKey[] {
    const { markIndex, tail } = this.#parts;
    const { first, keys } = findNewMarks(marks, (key) => markIndex.find(key) !== null);
    if (keys.length > 0) this.#insertMarks.run(tail.nextMark, marksText(first));
    return keys;
  }

  #addToTail({ integrated: { head }, blocks, marks, indexed }: CommittedRows): void {
    this.#head = head;
    const { tail, markIndex } = this.#parts;
    for (const { tree_id, log_index, seq } of blocks) tail.addBlock(tree_id, { log_index, seq });
    for (const key of marks) {
      tail.addMark(key, tail.nextMark);
      markIndex.add(key, tail.nextMark);
    }
    tail.advanceTo({ log_index: head.size, mark_no: tail.nextMark + Math.min(marks.length, 1) });
    if (indexed !== null) tail.drop(indexed);
  }
}

const toBlob = (hex: string): Buffer => Buffer.from(hex, 'hex');

/** `next`: the batch continues its trees; `present`: it was committed before; `other`: it conflicts with the ledger. */
type BatchFit = 'next' | 'present' | 'other';

/** The same batch may be sent twice, because its first answer was lost. @param endOf returns the length of a tree */
function batchFitOf({ trees }: Batch, endOf: (tree_id: string) => number, reader: SqliteReader): BatchFit {
  if (trees.every(({ tree_id, from }) => from === endOf(tree_id))) return 'next';
  return trees.every((append) => hasAppend(append, endOf, reader)) ? 'present' : 'other';
}

/** Checks the last entry of the append only: its hash covers all entries before it. */
function hasAppend(
  { tree_id, from, entries }: TreeAppend,
  endOf: (id: string) => number,
  reader: SqliteReader,
): boolean {
  const end = from + entries.length;
  if (endOf(tree_id) < end) return false;
  return reader.entryOf(tree_id, end - 1)?.leaf_hash === entries.at(-1)?.leaf_hash;
}

/** The commit result of a batch that was committed before. */
function presentResult({ trees }: Batch, head: LogHead, reader: SqliteReader): CommitResult {
  return { head, first_log_indexes: trees.map(({ tree_id, from }) => reader.entryOf(tree_id, from)?.log_index ?? 0) };
}
