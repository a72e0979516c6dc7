// The writing half of the SQLite store, which exists from `acquire` to `close`.
//
//   W1. A batch is one transaction, which integrates it into the log. Its first statement moves the head on, if epoch
//       and size are still those of this writer: so one that was replaced notices before it inserts a row.
//   W2. After a statement or a COMMIT has failed, nothing is committed any more. When an fsync has failed nobody knows
//       what the disk holds, and a retry would only hide it: `reopen` reads it again.
//   W3. The head, row numbers, the ends of trees and what is marked are known from memory, since no other writer adds
//       rows while W1 holds.
//   W4. What is committed is in the tail when `commit` returns, and only then.
//   W5. Rows of records come before their batch: the first of them begins the transaction that the batch completes.
//       Whatever keeps it from being committed takes them back.
//   W6. What is only derived is written in transactions of its own, never in that of a batch, and what goes wrong there
//       is no failure of W2, unless it is the disk's.

import { InvariantError } from '../../errors.js';
import type {
  Batch,
  CommitResult,
  ErasureResult,
  Erasure,
  LogHead,
  StoredSnapshot,
  TreeAppend,
} from '../../ports/ledger/ledger-store.js';
import { checkBatch } from '../ledger/check-batch.js';
import { errorCode } from '../system/error-code.js';
import { integrateBatch, type IntegratedBatch } from '../ledger/integrate-batch.js';
import type { SqliteArtifacts } from './content/sqlite-artifacts.js';
import { BlockText, blocksOf, type Block } from './sqlite-blocks.js';
import { SqliteIndexer, STRETCH_ROWS } from './sqlite-indexer.js';
import { upgradeSchema, type SqliteConnection, type SqliteStatement } from './sqlite-database.js';
import type { SqliteMarkNumbers } from './sqlite-mark-numbers.js';
import { batchMarksOf, marksText, findNewMarks, type MarkIndexKey, type BatchMarks } from './sqlite-marks.js';
import type { SqliteReader } from './sqlite-reader.js';
import { eraseCaseContent } from './content/sqlite-erasure.js';
import type { RecordTransaction } from '../records/sqlite-ledger-records.js';
import { createLruMap, type LruMap } from '../system/lru-map.js';
import { writerReplacedError, unavailableError } from '../ledger/store-errors.js';
import type { IndexPosition, SqliteTail } from './sqlite-tail.js';
import type { SqliteTrees } from './sqlite-trees.js';

/** The ends of so many trees are known without asking the database. */
const TREES_MAX = 10_000;

export interface WriterComponents {
  readonly db: SqliteConnection;
  readonly artifacts: SqliteArtifacts;
  readonly tail: SqliteTail;
  readonly markNumbers: SqliteMarkNumbers;
  readonly reader: SqliteReader;
  readonly trees: SqliteTrees;
}

/** What a transaction wrote, for the tail. */
interface CommittedRows {
  readonly integrated: IntegratedBatch;
  readonly blocks: readonly Block[];
  readonly marks: readonly MarkIndexKey[];
  readonly indexed: IndexPosition | null;
}

/** Commits batches. Its statements are prepared once, so that a commit costs little beyond the flush. */
export class SqliteWriter {
  readonly #parts: WriterComponents;
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
  /** The transaction of the next batch has begun: rows of records wait in it (W5). */
  #hasBegun = false;

  constructor(parts: WriterComponents, stretchRows = STRETCH_ROWS) {
    const { db, tail } = parts;
    this.#parts = parts;
    this.#catchUp = new SqliteIndexer(db, tail, stretchRows);
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#moveHead = db.prepare('UPDATE meta SET size = ?, root = ?, frontier = ? WHERE epoch = ? AND size = ?');
    this.#insertBlock = db.prepare('INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT))');
    this.#insertMarks = db.prepare('INSERT INTO marks VALUES (?, ?)');
    this.#saveSnapshot = db.prepare('INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)');
  }

  /** Starts a new epoch, which ends every other. @returns the epoch */
  beginEpoch(): number {
    const { db, artifacts, tail, markNumbers, reader, trees } = this.#parts;
    this.#discardRecords();
    markNumbers.isOnlyWriter = false;
    const { epoch, indexed } = this.#transact(() => {
      const format = upgradeSchema(db);
      db.prepare('UPDATE meta SET epoch = epoch + 1').run();
      artifacts.startWriting();
      tail.forget();
      tail.refresh();
      trees.fill(format);
      this.#head = reader.head();
      this.#treeLengths = createLruMap(TREES_MAX);
      return { epoch: Number(db.prepare('SELECT epoch FROM meta').pluck().get()), indexed: this.#catchUp.begin() };
    });
    if (indexed !== null) tail.drop(indexed);
    markNumbers.isOnlyWriter = true;
    return epoch;
  }

  /** As the port says. @throws LedgerError LEDGER_CONFLICT, LEDGER_UNAVAILABLE @throws InvariantError */
  commit(batch: Batch): CommitResult {
    const fit = this.#check(batch);
    if (fit !== 'next') {
      this.#discardRecords();
      if (fit === 'other' || this.#isEpochOver(batch.epoch))
        throw writerReplacedError('its epoch is over, or a tree has other entries');
      return presentResult(batch, this.#head, this.#parts.reader);
    }
    const written = this.#transact(() => this.#write(batch));
    if (written !== null) {
      this.#addToTail(written);
      return written.integrated;
    }
    this.#parts.markNumbers.isOnlyWriter = false;
    throw writerReplacedError(`epoch ${batch.epoch} is over, or size ${this.#head.size} is`);
  }

  /** Lets `work` take rows out, in a transaction of its own, and begins anew. @returns the epoch from then on */
  remove(epoch: number, work: () => void): number {
    this.#discardRecords();
    if (this.#transact(() => (this.#isEpochOver(epoch) ? 'over' : work())) === 'over')
      throw writerReplacedError(`epoch ${epoch} is over`);
    return this.beginEpoch();
  }

  /** Goes on with the index by hash, unless records wait. @returns whether there is more that can be done */
  indexArtifacts(): boolean {
    return this.#failure === null && !this.#hasBegun && this.#transact(() => this.#parts.artifacts.indexNext());
  }

  /**
   * Writes what is only derived (W6).
   * @returns false, with nothing done, while records wait
   * @throws what went wrong; nothing of it is kept
   */
  writeDerived(work: () => void): boolean {
    if (this.#failure !== null) throw unavailableError('a write failed before: open the ledger anew', this.#failure);
    if (this.#hasBegun) return false;
    try {
      this.#begin.run();
      work();
      this.#commit.run();
      return true;
    } catch (cause) {
      this.#rollBack();
      // After an error of the disk nobody knows what lies there (W2); nor when the transaction is still open.
      if (errorCode(cause).startsWith('SQLITE_IOERR') || this.#parts.db.inTransaction) this.#fail(cause);
      throw cause;
    }
  }

  /** As the port says. */
  erase(erasure: Erasure): ErasureResult {
    return eraseCaseContent(this.#parts, erasure, (work) => this.writeDerived(work));
  }

  /** For the records of the ledger's own database. */
  readonly records: RecordTransaction = {
    isBroken: () => this.#failure !== null,
    runAlone: (work) => {
      if (this.#hasBegun) throw new InvariantError('tables of records cannot be made while rows of some wait');
      this.#transact(work);
    },
    isBegun: () => this.#hasBegun,
    begin: () => {
      if (this.#hasBegun) return false;
      this.#begin.run();
      this.#hasBegun = true;
      return true;
    },
    rollBack: () => {
      this.#discardRecords();
    },
    fail: (cause) => {
      this.#fail(cause);
    },
  };

  /** @returns how the batch fits the ledger @throws InvariantError, LedgerError; then rows of records are taken back */
  #check(batch: Batch): BatchFit {
    try {
      checkBatch(batch);
      if (this.#failure !== null) return 'next';
      return batchFitOf(batch, (tree_id) => this.#treeLength(tree_id), this.#parts.reader);
    } catch (error) {
      this.#discardRecords();
      throw error;
    }
  }

  #isEpochOver(epoch: number): boolean {
    return this.#parts.db.prepare('SELECT epoch FROM meta').pluck().get() !== epoch;
  }

  /** @returns what `work` does, or null with nothing kept if it says so */
  #transact<T>(work: () => T): T {
    if (this.#failure !== null) throw unavailableError('a write failed before: open the ledger anew', this.#failure);
    try {
      if (!this.#hasBegun) this.#begin.run();
      const result = work();
      if (result === null && this.#hasBegun) this.#rollback.run();
      else this.#commit.run();
      this.#hasBegun = false;
      return result;
    } catch (cause) {
      this.#fail(cause);
      throw unavailableError('the ledger could not be written: nothing of this was acknowledged', cause);
    }
  }

  #fail(cause: unknown): void {
    this.#failure = cause;
    this.#rollBack();
    this.#parts.tail.forget();
    this.#parts.markNumbers.isOnlyWriter = false;
  }

  #discardRecords(): void {
    if (!this.#hasBegun) return;
    try {
      this.#rollback.run();
      this.#hasBegun = false;
    } catch (cause) {
      this.#fail(cause);
    }
  }

  #rollBack(): void {
    this.#hasBegun = false;
    try {
      // SQLite has rolled back by itself after some errors.
      if (this.#parts.db.inTransaction) this.#rollback.run();
    } catch {
      // What matters is told already, and nothing is committed on this connection any more.
    }
  }

  /** @returns null, with nothing written, if another writer has moved the ledger on */
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
      this.#parts.trees.write(append, begin);
      if (append.snapshot !== null) this.#writeSnapshot(append.snapshot);
    }
    const marks = batchMarksOf(batch);
    const keys = marks === null ? [] : this.#writeMarks(marks);
    return { integrated, blocks, marks: keys, indexed: this.#catchUp.advance(blocks.length + keys.length) };
  }

  #writeSnapshot({ tree_id, seq, sha256, text }: StoredSnapshot): void {
    this.#saveSnapshot.run(tree_id, seq, sha256, text);
  }

  #treeLength(tree_id: string): number {
    return this.#treeLengths.get(tree_id) ?? this.#parts.reader.treeEnd(tree_id);
  }

  #writeMarks(marks: BatchMarks): readonly MarkIndexKey[] {
    const { markNumbers, tail } = this.#parts;
    const { first, keys } = findNewMarks(marks, (key) => markNumbers.find(key) !== null);
    if (keys.length > 0) this.#insertMarks.run(tail.nextMark, marksText(first));
    return keys;
  }

  #addToTail({ integrated: { head }, blocks, marks, indexed }: CommittedRows): void {
    this.#head = head;
    const { tail, markNumbers } = this.#parts;
    for (const { tree_id, log_index, seq } of blocks) tail.addBlock(tree_id, { log_index, seq });
    for (const key of marks) {
      tail.addMark(key, tail.nextMark);
      markNumbers.add(key, tail.nextMark);
    }
    tail.advanceTo({ log_index: head.size, mark_no: tail.nextMark + Math.min(marks.length, 1) });
    if (indexed !== null) tail.drop(indexed);
  }
}

const toBlob = (hex: string): Buffer => Buffer.from(hex, 'hex');

/** Whether a batch is what comes next, was committed before, or is neither. */
type BatchFit = 'next' | 'present' | 'other';

/** @param endOf says how many entries a tree has */
function batchFitOf({ trees }: Batch, endOf: (tree_id: string) => number, reader: SqliteReader): BatchFit {
  if (trees.every(({ tree_id, from }) => from === endOf(tree_id))) return 'next';
  return trees.every((append) => hasAppend(append, endOf, reader)) ? 'present' : 'other';
}

/** Whether its last entry is there: the hash of that covers all before it. */
function hasAppend(
  { tree_id, from, entries }: TreeAppend,
  endOf: (id: string) => number,
  reader: SqliteReader,
): boolean {
  const end = from + entries.length;
  if (endOf(tree_id) < end) return false;
  return reader.entryOf(tree_id, end - 1)?.leaf_hash === entries.at(-1)?.leaf_hash;
}

/** What became of a batch that was committed before. */
function presentResult({ trees }: Batch, head: LogHead, reader: SqliteReader): CommitResult {
  return { head, first_log_indexes: trees.map(({ tree_id, from }) => reader.entryOf(tree_id, from)?.log_index ?? 0) };
}
