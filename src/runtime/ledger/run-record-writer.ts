// Writes the records of runs whose tree has ended (S4-08, S4-43), as derived data next to the log.
//
//   R1. Only `close` waits for it, and not for long. It starts some time after a tree has ended. After some entries it
//       pauses many times as long as it took to read them. So it uses a small part of the time, less in a busy process,
//       and falls behind if very many trees end.
//   R2. The store knows which trees are to be recorded; nothing is remembered here. So it also finds what a crash left
//       unwritten, and the trees of a home from before there were run records.
//   R3. Each tree is read once. Only some of its records stay in memory: those of ended runs are written on the way,
//       and loaded again if a later entry changes such a run.
//   R4. A failure is logged, and repeated with the next tree that ends or the next opening. A tree that cannot be
//       folded is set aside, so that it does not block others.

import { parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { RunRecord } from '../../core/contract/run/run-record.js';
import { isTerminal } from '../../core/contract/run/run-context.js';
import { isConforming } from '../../core/contract/validators.js';
import { BackgroundJob } from '../../engine/background-job.js';
import { waitAtMost } from '../../engine/timers.js';
import { InvariantError, LedgerError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import type { EndedTree, RecordBatch, WrittenRecord } from '../../engine/ports/ledger/run-record-table.js';
import { RunRecords } from './run-records.js';
import { parseStoredEntry, isRunEntry } from './stored-entry.js';

/** Milliseconds between the end of a tree and its records, and at least between two stretches of work. */
export const PAUSE_MS = 100;
/** Pause between two stretches, as a multiple of the duration of the first; at most a second. */
const PAUSE_FACTOR = 30;
export const PAUSE_MS_MAX = 1_000;
/** Entries between two pauses, which take some 3 ms: those of a few dozen small trees. */
export const ENTRIES_PER_STRETCH = 256;
/** Entries before other work runs, regardless of the store. */
const ENTRIES_PER_TURN = 128;
/** Timeout of `close`, in milliseconds. */
export const CLOSE_MS = 1_000;
/** Rows per write. */
const ROWS_PER_SAVE = 64;
/** Limit of records of a tree in memory, besides those of live runs. */
export const RECORDS_IN_MEMORY_MAX = 256;
/** A transaction that blocks the writing of records ends with the tick that has opened it. */
const SAVE_TRIES = 100;

interface RunRecordWriterOptions {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs a task after the current turn. */
  readonly defer: (task: () => void) => void;
}

/** Records to be written together. */
interface PendingRecords extends RecordBatch {
  records: WrittenRecord[];
  readonly trees: RecordBatch['trees'][number][];
}

export class RunRecordWriter {
  readonly #options: RunRecordWriterOptions;
  readonly #job: BackgroundJob;
  #entriesRead = 0;
  /** When the current stretch started. */
  #stretchStart = 0;

  constructor(options: RunRecordWriterOptions) {
    this.#options = options;
    this.#job = new BackgroundJob({
      clock: options.clock,
      run: () => this.#recordAll(),
      onFailed: (error) => {
        options.log.warn('run records could not be written now; they can be derived at any time', { error });
        return null;
      },
    });
  }

  /** Starts with the trees that earlier processes left. This process must hold the writer lock of the store. */
  open(): void {
    this.#job.start(0);
  }

  /** Reports that a tree has ended and that its end is committed. */
  onTreeEnded(): void {
    this.#job.request(PAUSE_MS);
  }

  /** Stops at once: nothing can be written any more. Work in flight stops at its next step. */
  stop(): void {
    this.#job.stop();
  }

  /** Resumes after `stop` with the trees that are not recorded yet. Does nothing after `close`. */
  restart(): void {
    this.#job.restart(0);
  }

  /** Writes remaining records without pauses, until a timeout; the next opening writes the rest. */
  async close(): Promise<void> {
    if (this.#job.isActive) await waitAtMost(this.#options.clock, CLOSE_MS, this.#job.finish());
    this.#job.close();
  }

  /** Writes all remaining records, however long it takes. */
  finish(): Promise<void> {
    return this.#job.finish();
  }

  /** Finds everything that ended before it, also what a failed run has left. */
  async #recordAll(): Promise<null> {
    const pending: PendingRecords = { records: [], trees: [] };
    this.#stretchStart = this.#options.clock.now();
    for await (const tree of this.#options.store.runRecords.unrecorded()) {
      await this.#recordTree(tree, pending);
      if (this.#job.isStopped) return null;
      if (pending.records.length + pending.trees.length >= ROWS_PER_SAVE) await this.#save(pending);
    }
    await this.#save(pending);
    return null;
  }

  async #recordTree({ tree_id, place }: EndedTree, pending: PendingRecords): Promise<void> {
    try {
      const seq = await this.#fold(tree_id, pending);
      if (seq !== null) pending.trees.push({ tree_id, place, seq });
    } catch (error) {
      if (error instanceof LedgerError && error.code !== 'LEDGER_TAMPERED') throw error;
      this.#options.log.error('the records of a run tree cannot be derived', { tree_id, error });
      pending.records = pending.records.filter((record) => record.tree_id !== tree_id);
      pending.trees.push({ tree_id, place, seq: 0 });
    }
  }

  /** @returns the number of entries of the tree, or null if this was stopped */
  async #fold(tree_id: string, pending: PendingRecords): Promise<number | null> {
    const records = new RunRecords();
    let seq = 0;
    let records_max = RECORDS_IN_MEMORY_MAX;
    for await (const stored of this.#options.store.tree(tree_id)) {
      if (this.#job.isStopped) return null;
      seq += 1;
      await this.#pace();
      if (!isRunEntry(stored)) continue;
      const entry = parseStoredEntry(stored);
      // If no record was dropped from memory, an unknown one does not exist.
      if (records_max > RECORDS_IN_MEMORY_MAX) await this.#reloadRecord(records, entry);
      records.fold(entry);
      if (records.size < records_max) continue;
      await this.#flushEnded(records, tree_id);
      records_max = records.size + RECORDS_IN_MEMORY_MAX;
    }
    const running = records.all().find(({ status }) => !isTerminal(status));
    if (running !== undefined) throw new InvariantError(`${running.run_id} has not ended, and its tree has`);
    pending.records.push(...records.all().map((record) => toWrittenRecord(tree_id, record)));
    return seq;
  }

  async #reloadRecord(records: RunRecords, entry: Entry): Promise<void> {
    if (entry.type !== 'audit_event' || records.statusOf(entry.body.run_id) !== null) return;
    const text = await this.#options.store.runRecords.load(entry.tree_id, entry.body.run_id);
    if (text !== null) records.resume(parseOwnJson(text) as RunRecord);
  }

  async #flushEnded(records: RunRecords, tree_id: string): Promise<void> {
    const ended = records.all().filter(({ status }) => isTerminal(status));
    await this.#save({ records: ended.map((record) => toWrittenRecord(tree_id, record)), trees: [] });
    for (const { run_id } of ended) records.release(run_id);
  }

  /** Writes the pending records and removes them from the list. @throws LedgerError */
  async #save({ records, trees }: PendingRecords): Promise<void> {
    if (records.length + trees.length === 0) return;
    const batch = { records: records.splice(0), trees: trees.splice(0) };
    for (let tries = 1; !(await this.#options.store.runRecords.save(batch)); tries += 1) {
      if (tries === SAVE_TRIES) throw new InvariantError('a transaction of the ledger does not end');
      await this.#yieldTurn();
    }
  }

  /** Yields to other work after some entries, and pauses after some more. */
  async #pace(): Promise<void> {
    this.#entriesRead += 1;
    if (this.#entriesRead % ENTRIES_PER_TURN === 0) await this.#yieldTurn();
    if (this.#entriesRead % ENTRIES_PER_STRETCH !== 0) return;
    const { clock } = this.#options;
    const pause_ms = Math.min(PAUSE_FACTOR * (clock.now() - this.#stretchStart), PAUSE_MS_MAX);
    await this.#job.rest(Math.max(pause_ms, PAUSE_MS));
    this.#stretchStart = clock.now();
  }

  #yieldTurn(): Promise<void> {
    return new Promise((resolve) => this.#options.defer(resolve));
  }
}

/** @throws InvariantError for an invalid record, which tampered entries can produce */
function toWrittenRecord(tree_id: string, record: RunRecord): WrittenRecord {
  if (!isConforming(RunRecord, record))
    throw new InvariantError(`the record of ${record.run_id} does not match its schema`);
  return { tree_id, run_id: record.run_id, text: canonicalJson(record) };
}
