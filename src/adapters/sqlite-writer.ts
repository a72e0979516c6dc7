// The writing half of the SQLite store, which exists from `acquire` to `close`.
//
//   W1. A batch is one transaction. Its first statement moves the head on, if epoch and size are still those of the
//       batch: so a writer that was replaced notices before it inserts a row.
//   W2. After a statement or a COMMIT has failed, nothing is committed any more. When an fsync has failed nobody knows
//       what lies on the disk, and trying again would only hide it: opening the ledger anew finds out.
//   W3. Row numbers are counted in memory, since nobody else adds rows while W1 holds.

import { LedgerError } from '../errors.js';
import type { Batch } from '../ports/ledger-store.js';
import { checkBatch, uuidBytes } from './check-batch.js';
import type { SqliteArtifacts } from './sqlite-artifacts.js';
import type { Connection, Statement } from './sqlite-database.js';
import type { SqliteNumbers } from './sqlite-numbers.js';

/** What a writer writes with. */
export interface WriterParts {
  readonly db: Connection;
  readonly artifacts: SqliteArtifacts;
  readonly trees: SqliteNumbers;
  readonly roots: SqliteNumbers;
}

/** Commits batches. Its statements are prepared once, so that a commit costs little beyond the flush. */
export class SqliteWriter {
  readonly #parts: WriterParts;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;
  readonly #moveHead: Statement;
  readonly #insertEntry: Statement;
  readonly #insertArtifact: Statement;
  readonly #insertProposal: Statement;
  readonly #insertInput: Statement;
  readonly #endTree: Statement;
  #failure: unknown = null;

  constructor(parts: WriterParts) {
    const { db } = parts;
    this.#parts = parts;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#moveHead = db.prepare('UPDATE meta SET size = ?, root = ?, frontier = ? WHERE epoch = ? AND size = ?');
    this.#insertEntry = db.prepare('INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)');
    this.#insertArtifact = db.prepare('INSERT INTO entry_artifacts VALUES (?, ?, ?)');
    this.#insertProposal = db.prepare('INSERT INTO proposals VALUES (?, ?, ?, ?, ?, ?)');
    this.#insertInput = db.prepare('INSERT INTO inputs VALUES (?, ?, ?)');
    this.#endTree = db.prepare('INSERT OR IGNORE INTO trees_ended VALUES (?)');
  }

  /** Starts a new epoch, which ends every other. @returns the epoch */
  beginEpoch(): number {
    const { db, artifacts, trees, roots } = this.#parts;
    return this.#transact(() => {
      db.prepare('UPDATE meta SET epoch = epoch + 1').run();
      for (const rows of [artifacts, trees, roots]) rows.startWriting();
      return Number(db.prepare('SELECT epoch FROM meta').pluck().get());
    });
  }

  /** As the port says. @throws LedgerError LEDGER_CONFLICT, LEDGER_UNAVAILABLE @throws InvariantError */
  commit(batch: Batch): void {
    checkBatch(batch);
    if (this.#transact(() => this.#write(batch))) return;
    const message = `another writer has moved the ledger on: epoch ${batch.epoch} is over, or size ${batch.from} is`;
    throw new LedgerError({ code: 'LEDGER_CONFLICT', message });
  }

  /** Goes on with the index by hash. @returns whether there is more that can be done */
  indexArtifacts(): boolean {
    return this.#failure === null && this.#transact(() => this.#parts.artifacts.index());
  }

  #transact<T>(work: () => T): T {
    if (this.#failure !== null) throw unavailable('a write failed before: open the ledger anew', this.#failure);
    try {
      this.#begin.run();
      const result = work();
      this.#commit.run();
      return result;
    } catch (cause) {
      this.#failure = cause;
      this.#rollBack();
      throw unavailable('the ledger could not be written: nothing of this was acknowledged', cause);
    }
  }

  #rollBack(): void {
    try {
      // SQLite has rolled back by itself after some errors.
      if (this.#parts.db.inTransaction) this.#rollback.run();
    } catch {
      // What matters is told already, and nothing is committed on this connection any more.
    }
  }

  /** @returns false, with nothing written, if the batch does not go on from where the ledger is */
  #write({ epoch, from, entries, artifacts, proposals, inputs, trees, head }: Batch): boolean {
    const moved = this.#moveHead.run(head.size, blob(head.root), blob(head.frontier.join('')), epoch, from);
    if (moved.changes !== 1) return false;
    const { trees: treeNumbers, roots } = this.#parts;
    let log_index = from;
    for (const { entry, text, leaf_hash } of entries) {
      this.#insertEntry.run(log_index++, treeNumbers.give(entry.tree_id), entry.seq, entry.type, text, blob(leaf_hash));
    }
    if (artifacts.length > 0) this.#writeArtifacts(from, artifacts);
    for (const { root_run_id, proposal_id, run_id, step_index, payload_sha256, seq } of proposals) {
      const root_no = roots.give(root_run_id);
      this.#insertProposal.run(root_no, uuidBytes(proposal_id), run_id, step_index, blob(payload_sha256), seq);
    }
    for (const { tree_id, input_id, seq } of inputs) this.#insertInput.run(treeNumbers.need(tree_id), input_id, seq);
    for (const { tree_id, state } of trees) {
      const tree_no = treeNumbers.need(tree_id);
      if (state === 'ended') this.#endTree.run(tree_no);
    }
    return true;
  }

  #writeArtifacts(from: number, artifacts: Batch['artifacts']): void {
    // The sort is stable, so the contents of one entry stay in their order.
    const inOrder = artifacts.length === 1 ? artifacts : [...artifacts].sort((a, b) => a.entry - b.entry);
    let [last, ordinal] = [-1, 0];
    for (const { entry, artifact } of inOrder) {
      ordinal = entry === last ? ordinal + 1 : 0;
      last = entry;
      this.#insertArtifact.run(from + entry, ordinal, this.#parts.artifacts.store(artifact));
    }
  }
}

const blob = (hex: string): Buffer => Buffer.from(hex, 'hex');

const unavailable = (message: string, cause: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message, cause });
