// The writing half of the store. It exists from `acquire` to `close`.
//
//   P1. A batch is one call of commit_batch: one statement, one transaction, one round trip.
//   P2. If the answer is lost, the outcome is unknown: the caller sends the same batch again, on a restored session.
//       The former session has ended by then (S1), so the function sees whether it has committed.
//   P3. If the server answers with an error, nothing was committed. Except after errors that can be repeated at once,
//       nothing more is committed then before `reopen`.

import { LedgerError } from '../../core/errors.js';
import type {
  Batch,
  CommitResult,
  Erasure,
  ErasureResult,
  Integration,
  TreeAppend,
} from '../../engine/ports/ledger/ledger-store.js';
import type { AppendStatus, SharedBatch } from '../../engine/ports/ledger/shared-store.js';
import type { RecordBatch } from '../../engine/ports/ledger/run-record-table.js';
import { checkBatch } from '../ledger/check-batch.js';
import { unavailableError, writerReplacedError } from '../ledger/store-errors.js';
import type { QueryConfig } from 'pg';
import type { ProcessIdentity } from '../../system/process-identity.js';
import { createLruMap } from '../../system/lru-map.js';
import {
  commitParameters,
  commitQuery,
  integrateAppends,
  sharedCommitQuery,
  type CommitParameters,
} from './postgres-batch.js';
import { eraseCase } from './postgres-case-keys.js';
import {
  asLedgerError,
  inTransaction,
  isServerAnswer,
  isTransient,
  type ReaderPool,
  type SendStatement,
} from './postgres-connection.js';
import {
  bindKeyFolder,
  proveCaseKeys,
  type CaseContents,
  type PostgresContents,
  type SealedSnapshot,
} from './postgres-contents.js';
import type { PostgresReader } from './postgres-reader.js';
import { integersOf, type Row } from './postgres-values.js';
import type { LockMode, WriterSession } from './writer-session.js';

/** The cases of this many trees are cached. */
const TREES_MAX = 10_000;
/** How often a commit is sent that the server could not execute now. */
const ATTEMPTS_MAX = 3;
/** A worker that stops while it holds the locks loses them after this time, in ms. */
const LOCKED_IDLE_MS = '3000';
const LOCK_TREES = `SELECT set_config('idle_in_transaction_session_timeout', $1, true), count(*)
  FROM (SELECT FROM trees WHERE tree_id = ANY ($2::text[]) ORDER BY tree_id FOR UPDATE) AS locked`;
const LOCK_CASES = `SELECT FROM cases WHERE case_id IN (SELECT case_id FROM trees WHERE tree_id = ANY ($1::text[]))
  ORDER BY case_id FOR UPDATE`;
const SAVE_RECORDS = `SELECT save_run_records(p_epoch => $1, p_shared => $2, p_trees => $3, p_runs => $4, p_records => $5,
  p_recorded => $6, p_seqs => $7) AS saved`;

/** A batch as parameters of its commit. */
interface PreparedBatch {
  readonly batch: Batch;
  readonly contents: CaseContents;
  readonly parameters: CommitParameters;
}

export interface WriterParts {
  readonly pool: ReaderPool;
  readonly reader: PostgresReader;
  readonly contents: PostgresContents;
}

export class PostgresWriter {
  readonly #parts: WriterParts;
  readonly #session: WriterSession;
  readonly #cases = createLruMap<{ readonly case_id: string | null }>(TREES_MAX);
  #failure: unknown = null;
  /** Null after `reopen`, until the next epoch begins. */
  #epoch: number | null = null;
  #workerId: number | null = null;
  /** The answer of a commit was lost, and no later commit was answered. */
  #isUnsure = false;

  constructor(parts: WriterParts, session: WriterSession) {
    this.#parts = parts;
    this.#session = session;
  }

  /** Starts a new epoch, which ends the epoch of every other writer. @returns the new epoch */
  beginEpoch(): Promise<number> {
    return this.#begin(async () => (this.#epoch = await this.#session.beginEpoch()));
  }

  /** Joins as one of several workers. @returns the number of the new worker */
  join(identity: ProcessIdentity): Promise<number> {
    return this.#begin(async () => {
      const { worker_id, epoch } = await this.#session.joinAsWorker(identity);
      this.#epoch = epoch;
      return (this.#workerId = worker_id);
    });
  }

  async #begin(work: () => Promise<number>): Promise<number> {
    this.#refuseFailed();
    this.#parts.contents.keys.finishErasures();
    this.#parts.contents.forget();
    return attempt('the ledger cannot be written', work);
  }

  /** Whether it is the only writer, or one of several workers. */
  get mode(): LockMode {
    return this.#session.mode;
  }

  /** The epoch that it writes in; null before it has one. */
  get epoch(): number | null {
    return this.#epoch;
  }

  /** The number of the worker; null before `join`. */
  get worker_id(): number | null {
    return this.#epoch === null ? null : this.#workerId;
  }

  /** Runs statements on the session: they fail if another worker has declared this one over. */
  exclusively<T>(work: (send: SendStatement) => Promise<T>): Promise<T> {
    return attempt('the ledger cannot be written', () => this.#session.exclusively(work));
  }

  /** See `SharedLedgerStore.lead`. */
  lead(): Promise<boolean> {
    return attempt('the ledger cannot be written', () => this.#session.lead());
  }

  /** Clears a failure, once the session works. Nothing is committed before the next epoch. */
  async reopen(): Promise<void> {
    this.#session.leaveAsWorker();
    await attempt('the ledger cannot be opened again', () => this.#session.check());
    this.#epoch = null;
    this.#failure = null;
    this.#isUnsure = false;
  }

  /** See `LedgerStore.commit`. */
  async commit(batch: Batch): Promise<CommitResult> {
    const prepared = await this.#prepare(batch);
    const rows = await this.#call(commitQuery(batch.epoch, prepared.parameters));
    const statuses = this.#finish(prepared, rows);
    if (statuses.includes('conflict')) throw writerReplacedError('a tree has other entries');
    if (!statuses.includes('present')) return { head: null, first_log_indexes: null };
    // The batch was sent again: it may be integrated by now.
    const first_log_indexes = await this.#parts.reader.logIndexes(batch.trees.map(firstPlace));
    if (first_log_indexes === null) return { head: null, first_log_indexes };
    return { head: await this.#parts.reader.head(), first_log_indexes };
  }

  /** See `SharedLedgerStore.commitTrees`. */
  async commitTrees(batch: SharedBatch): Promise<readonly AppendStatus[]> {
    const prepared = await this.#prepare({ epoch: batch.worker_id, trees: batch.trees });
    return this.#finish(prepared, await this.#call(sharedCommitQuery(batch, prepared.parameters)));
  }

  /** See `SharedLedgerStore.commitLocked`. */
  async commitLocked<Made extends SharedBatch>(tree_ids: readonly string[], decide: () => Promise<Made>) {
    const made: Made[] = [];
    try {
      const { batch, prepared, rows } = await this.#session.exclusively((send) =>
        inTransaction(send, async () => {
          this.#refuseFailed();
          await send({ text: LOCK_TREES, values: [LOCKED_IDLE_MS, [...tree_ids]] });
          await send({ text: LOCK_CASES, values: [[...tree_ids]] });
          const batch = await decide();
          made.push(batch);
          if (batch.trees.length === 0) return { batch, prepared: null, rows: [] };
          const prepared = await this.#prepare({ epoch: batch.worker_id, trees: batch.trees });
          return { batch, prepared, rows: await send(sharedCommitQuery(batch, prepared.parameters)) };
        }),
      );
      // After the end of the transaction: a rollback must not leave contents remembered that are not stored.
      return { batch, statuses: prepared === null ? [] : this.#finish(prepared, rows) };
    } catch (cause) {
      if (made.length > 0 && isTransient(cause)) throw sendAgainError(cause);
      // Before the batch was made, no outcome can be unknown.
      if (made.length > 0 || cause instanceof LedgerError) throw this.#commitError(cause);
      this.#failure ??= cause;
      throw asLedgerError(cause, 'the trees could not be locked: nothing was committed');
    }
  }

  async #prepare(batch: Batch): Promise<PreparedBatch> {
    checkBatch(batch);
    this.#refuseFailed();
    if (this.#epoch === null) throw writerReplacedError('the ledger was reopened: acquire it again');
    await proveCaseKeys(this.#parts.pool, this.#parts.contents, batch.trees);
    const contents = this.#parts.contents.collect(batch.trees);
    const snapshots: SealedSnapshot[] = [];
    for (const [at, append] of batch.trees.entries()) {
      if (append.snapshot === null) continue;
      const case_id = append.opened === null ? await this.#caseOf(append.tree_id) : append.opened.case_id;
      snapshots.push(this.#parts.contents.sealSnapshot(at, append.snapshot, case_id, contents));
    }
    return { batch, contents, parameters: commitParameters(batch, contents, snapshots) };
  }

  #finish({ batch, contents }: PreparedBatch, [row = {}]: readonly Row[]): readonly AppendStatus[] {
    if (row['epoch_over'] !== 'f') throw writerReplacedError(`epoch ${batch.epoch} is over`);
    const numbers = { numbers: (row['content_nos'] ?? '{}').replaceAll('NULL', '0') };
    this.#parts.contents.remember(contents, integersOf(numbers, 'numbers', 'the answer to a commit'));
    for (const { tree_id, opened } of batch.trees) if (opened !== null) this.#cases.set(tree_id, opened);
    const statuses = statusesOf(row, batch.trees.length);
    if (statuses.includes('conflict')) this.#forgetContents();
    return statuses;
  }

  async #call(query: QueryConfig): Promise<readonly Row[]> {
    try {
      const rows = await this.#session.exclusively(async (send) => {
        // A commit that waited for a failed one is not sent: it may build on it.
        this.#refuseFailed();
        for (let attempts = 1; ; attempts += 1) {
          try {
            return await send(query);
          } catch (error) {
            if (attempts === ATTEMPTS_MAX || !isTransient(error)) throw error;
          }
        }
      });
      this.#isUnsure = false;
      return rows;
    } catch (cause) {
      throw this.#commitError(cause);
    }
  }

  #commitError(cause: unknown): unknown {
    if (cause instanceof LedgerError && cause.code !== 'LEDGER_UNAVAILABLE') return cause;
    if (isServerAnswer(cause)) {
      this.#failure ??= cause;
      this.#isUnsure = false;
      return asLedgerError(cause, 'the ledger could not be written: nothing of this was committed');
    }
    if (cause instanceof LedgerError && !this.#isUnsure) {
      // The session could not be restored: nothing was sent.
      this.#failure ??= cause;
      return cause;
    }
    this.#isUnsure = true;
    const message = 'the connection broke before the server answered whether it committed';
    return new LedgerError({ code: 'LEDGER_COMMIT_UNKNOWN', message, cause });
  }

  /** See `LogStore.integrate`. The compare-and-set on the size of the log needs no session of its own. */
  integrate(integration: Integration): Promise<boolean> {
    return integrateAppends(this.#parts.pool, integration);
  }

  /** See `RunRecordTable.save`. */
  async saveRecords({ records, trees }: RecordBatch): Promise<boolean> {
    this.#refuseFailed();
    const latest = new Map(records.map((record) => [JSON.stringify([record.tree_id, record.run_id]), record]));
    const rows = [...latest.values()];
    const values = [
      this.#epoch,
      this.mode === 'shared',
      rows.map(({ tree_id }) => tree_id),
      rows.map(({ run_id }) => run_id),
      rows.map(({ text }) => text),
      trees.map(({ tree_id }) => tree_id),
      trees.map(({ seq }) => seq),
    ];
    const [row] = await attempt('the run records were not written', () =>
      this.#session.exclusively((send) => send({ text: SAVE_RECORDS, values })),
    );
    if (row?.['saved'] === 't') return true;
    throw writerReplacedError(`epoch ${String(this.#epoch)} is over`);
  }

  /** See `LedgerStore.erase`. */
  async erase(erasure: Erasure): Promise<ErasureResult> {
    this.#refuseFailed();
    // The key that is destroyed may be the only one by which an unnamed folder is recognized.
    await bindKeyFolder(this.#parts.pool, this.#parts.contents, false);
    return attempt('the case was not erased: try again', () =>
      this.#session.exclusively((send) => eraseCase(send, this.#parts.contents, erasure, this.#epoch)),
    );
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  async #caseOf(tree_id: string): Promise<string | null> {
    const known = this.#cases.get(tree_id);
    if (known !== undefined) return known.case_id;
    const case_id = await this.#parts.reader.caseOf(tree_id);
    this.#cases.set(tree_id, { case_id });
    return case_id;
  }

  /** A key that another worker has destroyed is a conflict too: the next attempt needs the next key. */
  #forgetContents(): void {
    this.#parts.contents.keys.forget();
    this.#parts.contents.forget();
  }

  #refuseFailed(): void {
    if (this.#failure === null) return;
    throw unavailableError('a write failed before: reopen the ledger', this.#failure);
  }
}

/** @throws the error of `work`, as an error of the ledger */
async function attempt<T>(message: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw asLedgerError(cause, message);
  }
}

/** A deadlock, or a lock that was not released in time. The server has rolled back; the same batch may still fit. */
const sendAgainError = (cause: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_COMMIT_UNKNOWN', message: 'the server could not lock what the commit needs', cause });

const firstPlace = ({ tree_id, from }: TreeAppend) => ({ tree_id, seq: from });

const STATUSES: readonly AppendStatus[] = ['committed', 'present', 'conflict'];

function statusesOf(row: Row, count: number): readonly AppendStatus[] {
  const texts = (row['statuses'] ?? '{}').slice(1, -1).split(',');
  const statuses = count > 0 ? texts.map((text) => STATUSES.find((one) => one === text)) : [];
  if (statuses.length === count && !statuses.includes(undefined)) return statuses as AppendStatus[];
  throw unavailableError(`the server answered a commit with ${JSON.stringify(row['statuses'])}`);
}
