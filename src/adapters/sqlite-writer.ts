// The writing half of the SQLite store, which exists from `acquire` to `close`.
//
//   W1. A batch is one transaction. Its first statement moves the head on, if epoch and size are still those of the
//       batch: so a writer that was replaced notices before it inserts a row.
//   W2. After a statement or a COMMIT has failed, nothing is committed any more. When an fsync has failed nobody knows
//       what lies on the disk, and trying again would only hide it: opening the ledger anew finds out (`reopen`).
//   W3. Row numbers, the ends of trees and what is marked are known from memory, since nobody else adds rows while W1
//       holds.
//   W4. What is committed is in the tail when `commit` returns, and only then.
//   W5. Rows of records come before their batch: the first of them begins the transaction that the batch completes.
//       Whatever keeps it from being committed takes them back.
//   W6. What is only derived is written in transactions of its own, never in that of a batch, and what goes wrong there
//       is no failure of W2, unless it is the disk's.

import { InvariantError } from '../errors.js';
import type { Batch, Erased, Erasure, StoredSnapshot } from '../ports/ledger-store.js';
import { checkBatch } from './check-batch.js';
import { errorCode } from './error-code.js';
import type { SqliteArtifacts } from './sqlite-artifacts.js';
import { BlockText, blocksOf, type Block } from './sqlite-blocks.js';
import { SqliteCatchUp } from './sqlite-catch-up.js';
import { upgradeSchema, type Connection, type Statement } from './sqlite-database.js';
import type { SqliteMarkNumbers } from './sqlite-mark-numbers.js';
import { copyOf, ENDED, keysOf, marksOf, marksText, type MarkKey, type Marks } from './sqlite-marks.js';
import type { SqliteReader } from './sqlite-reader.js';
import { eraseCase } from './sqlite-erasure.js';
import type { RecordTransaction } from './sqlite-own-records.js';
import { recent, type Recent } from './sqlite-recent.js';
import { markedAlready, replaced, unavailable } from './sqlite-refusals.js';
import type { Reach, SqliteTail } from './sqlite-tail.js';

/** The ends of so many trees are known without asking the database. */
const TREES_MAX = 10_000;

export interface WriterParts {
  readonly db: Connection;
  readonly artifacts: SqliteArtifacts;
  readonly tail: SqliteTail;
  readonly markNumbers: SqliteMarkNumbers;
  readonly reader: SqliteReader;
}

/** What a transaction wrote, for the tail. */
interface Written {
  readonly blocks: readonly Block[];
  readonly marks: readonly MarkKey[];
  readonly indexed: Reach | null;
}

/** Commits batches. Its statements are prepared once, so that a commit costs little beyond the flush. */
export class SqliteWriter {
  readonly #parts: WriterParts;
  readonly #catchUp: SqliteCatchUp;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;
  readonly #moveHead: Statement;
  readonly #insertBlock: Statement;
  readonly #insertMarks: Statement;
  readonly #saveSnapshot: Statement;
  readonly #blockText = new BlockText();
  #ends: Recent<number> = recent(TREES_MAX);
  #failure: unknown = null;
  /** The transaction of the next batch has begun: rows of records wait in it (W5). */
  #begun = false;

  constructor(parts: WriterParts) {
    const { db, tail } = parts;
    this.#parts = parts;
    this.#catchUp = new SqliteCatchUp(db, tail);
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
    const { db, artifacts, tail, markNumbers } = this.#parts;
    this.#abandon();
    markNumbers.alone = false;
    const { epoch, indexed } = this.#transact(() => {
      upgradeSchema(db);
      db.prepare('UPDATE meta SET epoch = epoch + 1').run();
      artifacts.startWriting();
      tail.forget();
      tail.refresh();
      this.#ends = recent(TREES_MAX);
      return { epoch: Number(db.prepare('SELECT epoch FROM meta').pluck().get()), indexed: this.#catchUp.begin() };
    });
    if (indexed !== null) tail.drop(indexed);
    markNumbers.alone = true;
    return epoch;
  }

  /** As the port says. @throws LedgerError LEDGER_CONFLICT, LEDGER_UNAVAILABLE @throws InvariantError */
  commit(batch: Batch): void {
    this.#check(batch);
    const written = this.#transact(() => this.#write(batch));
    if (written !== null) {
      this.#remember(written, batch.head.size);
      return;
    }
    this.#parts.markNumbers.alone = false;
    throw replaced(`epoch ${batch.epoch} is over, or size ${batch.from} is`);
  }

  /** Lets `work` take rows out, in a transaction of its own, and begins anew. @returns the epoch from then on */
  remove(epoch: number, work: () => void): number {
    this.#abandon();
    const isOver = () => this.#parts.db.prepare('SELECT epoch FROM meta').pluck().get() !== epoch;
    if (this.#transact(() => (isOver() ? 'over' : work())) === 'over') throw replaced(`epoch ${epoch} is over`);
    return this.beginEpoch();
  }

  /** Not while records wait: a snapshot is a cache, and must not be what makes their rows durable. */
  saveSnapshot({ tree_id, seq, sha256, text }: StoredSnapshot): void {
    if (this.#begun) return;
    this.#transact(() => this.#saveSnapshot.run(tree_id, seq, sha256, text));
  }

  /** Goes on with the index by hash, unless records wait. @returns whether there is more that can be done */
  indexArtifacts(): boolean {
    return this.#failure === null && !this.#begun && this.#transact(() => this.#parts.artifacts.index());
  }

  /**
   * Writes what is only derived (W6).
   * @returns false, with nothing done, while records wait
   * @throws what went wrong; nothing of it is kept
   */
  derive(work: () => void): boolean {
    if (this.#failure !== null) throw unavailable('a write failed before: open the ledger anew', this.#failure);
    if (this.#begun) return false;
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
  erase(erasure: Erasure): Erased {
    return eraseCase(this.#parts, erasure, (work) => this.derive(work));
  }

  /** For the records of the ledger's own database. */
  readonly records: RecordTransaction = {
    isBroken: () => this.#failure !== null,
    alone: (work) => {
      if (this.#begun) throw new InvariantError('tables of records cannot be made while rows of some wait');
      this.#transact(work);
    },
    isBegun: () => this.#begun,
    begin: () => {
      if (this.#begun) return false;
      this.#begin.run();
      this.#begun = true;
      return true;
    },
    abandon: () => {
      this.#abandon();
    },
    fail: (cause) => {
      this.#fail(cause);
    },
  };

  #check(batch: Batch): void {
    try {
      checkBatch(batch);
    } catch (error) {
      this.#abandon();
      throw error;
    }
  }

  /** @returns what `work` does, or null with nothing kept if it says so */
  #transact<T>(work: () => T): T {
    if (this.#failure !== null) throw unavailable('a write failed before: open the ledger anew', this.#failure);
    try {
      if (!this.#begun) this.#begin.run();
      const result = work();
      if (result === null && this.#begun) this.#rollback.run();
      else this.#commit.run();
      this.#begun = false;
      return result;
    } catch (cause) {
      this.#fail(cause);
      throw unavailable('the ledger could not be written: nothing of this was acknowledged', cause);
    }
  }

  #fail(cause: unknown): void {
    this.#failure = cause;
    this.#rollBack();
    this.#parts.tail.forget();
    this.#parts.markNumbers.alone = false;
  }

  #abandon(): void {
    if (!this.#begun) return;
    try {
      this.#rollback.run();
      this.#begun = false;
    } catch (cause) {
      this.#fail(cause);
    }
  }

  #rollBack(): void {
    this.#begun = false;
    try {
      // SQLite has rolled back by itself after some errors.
      if (this.#parts.db.inTransaction) this.#rollback.run();
    } catch {
      // What matters is told already, and nothing is committed on this connection any more.
    }
  }

  /** @returns null, with nothing written, if the batch does not go on from where the ledger is */
  #write(batch: Batch): Written | null {
    const { epoch, from, head } = batch;
    const moved = this.#moveHead.run(head.size, blob(head.root), blob(head.frontier.join('')), epoch, from);
    if (moved.changes !== 1) return null;
    const blocks = blocksOf(batch, this.#writeArtifacts(batch));
    for (const block of blocks) this.#writeBlock(block);
    for (const { tree_id } of [...batch.inputs, ...batch.trees]) {
      if (this.#endOf(tree_id) === 0) throw new InvariantError(`a mark of ${tree_id}, which has no entries`);
    }
    const marks = marksOf(batch);
    const keys = marks === null ? [] : this.#writeMarks(marks);
    return { blocks, marks: keys, indexed: this.#catchUp.follow(blocks.length + keys.length) };
  }

  /** @returns the numbers of the artifacts that entries brought, by the position of the entry */
  #writeArtifacts({ artifacts }: Batch): ReadonlyMap<number, readonly number[]> {
    const brought = new Map<number, number[]>();
    for (const { entry, artifact, sha256 } of artifacts) {
      const artifact_no = this.#parts.artifacts.store(artifact, sha256);
      const numbers = brought.get(entry);
      if (numbers === undefined) brought.set(entry, [artifact_no]);
      else numbers.push(artifact_no);
    }
    this.#parts.artifacts.flush();
    return brought;
  }

  #writeBlock(block: Block): void {
    const { log_index, tree_id, seq, count, artifacts, types, leaf_hashes } = block;
    const end = this.#endOf(tree_id);
    if (seq !== end) throw new InvariantError(`after ${end} entries of ${tree_id} seq ${seq} cannot follow`);
    this.#insertBlock.run(log_index, tree_id, seq, artifacts, types, leaf_hashes, this.#blockText.of(block));
    this.#ends.set(tree_id, seq + count);
  }

  #endOf(tree_id: string): number {
    return this.#ends.get(tree_id) ?? this.#parts.reader.treeEnd(tree_id);
  }

  #writeMarks(marks: Marks): readonly MarkKey[] {
    const { markNumbers, tail } = this.#parts;
    const { proposals, inputs } = marks;
    const ended = marks.ended.filter((scope) => markNumbers.of({ scope, name: ENDED }) === null);
    const first = { proposals, inputs, ended };
    const keys: MarkKey[] = [];
    const given = new Set<string>();
    for (const { scope, name } of keysOf(first)) {
      const key = { scope, name: copyOf(name) };
      if (markNumbers.of(key) !== null) throw markedAlready();
      keys.push(key);
      given.add(`${scope}\n${name}`);
    }
    if (given.size < keys.length) throw markedAlready();
    if (keys.length > 0) this.#insertMarks.run(tail.nextMark, marksText(first));
    return keys;
  }

  #remember({ blocks, marks, indexed }: Written, size: number): void {
    const { tail, markNumbers } = this.#parts;
    for (const { tree_id, log_index, seq } of blocks) tail.addBlock(tree_id, { log_index, seq });
    for (const key of marks) {
      tail.addMark(key, tail.nextMark);
      markNumbers.add(key, tail.nextMark);
    }
    tail.reach({ log_index: size, mark_no: tail.nextMark + Math.min(marks.length, 1) });
    if (indexed !== null) tail.drop(indexed);
  }
}

const blob = (hex: string): Buffer => Buffer.from(hex, 'hex');
