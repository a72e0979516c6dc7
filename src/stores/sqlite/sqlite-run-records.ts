// The records of runs whose tree has ended. The marks contain the ended trees, in the order of their ends. The recorded
// tree that was written last shows where to continue.

import type { RecordedTree } from '../../core/ledger/readable-ledger.js';
import type { EndedTree, RecordBatch } from '../../engine/ports/ledger/run-record-table.js';
import type { SqliteConnection } from './sqlite-binding.js';
import { readMarks } from './sqlite-rows.js';
import type { QueryPage } from './sqlite-reader.js';

/** Rows of marks that are scanned at once: 1 to 2 ms. */
const PAGE_MARKS = 1_024;
const PAGE_TREES = 1_024;

/** The tables of run records on one connection. */
export class SqliteRunRecords {
  readonly #db: SqliteConnection;
  #prepared: ReturnType<typeof prepareRunRecordStatements> | null = null;

  constructor(db: SqliteConnection) {
    this.#db = db;
  }

  /** Prepared by the first use: a ledger whose derived tables are damaged can still be read and verified. */
  get #statements(): ReturnType<typeof prepareRunRecordStatements> {
    return (this.#prepared ??= prepareRunRecordStatements(this.#db));
  }

  /** The first row of marks that may end a tree without records. */
  firstUnrecorded(): number {
    return Number(this.#statements.last.get() ?? 0);
  }

  /** The trees that the next rows of marks end, except recorded ones. @throws LedgerError LEDGER_TAMPERED */
  unrecorded(from: number): QueryPage<EndedTree> {
    const statements = this.#statements;
    const to = from + PAGE_MARKS;
    const marks = statements.ended.all(from, to) as { readonly mark_no: number; readonly marks: string }[];
    const ends = marks.flatMap(({ mark_no, marks: text }) =>
      readMarks(mark_no, text).ended.map((tree_id) => ({ tree_id, place: mark_no })),
    );
    const rows = ends.filter(({ tree_id }) => statements.recorded.get(tree_id) === undefined);
    return { rows, next: to <= Number(statements.lastMark.get() ?? 0) ? to : null };
  }

  /** Writes within the open transaction. */
  save({ records, trees }: RecordBatch): void {
    const { addRecord, addTree } = this.#statements;
    for (const { tree_id, run_id, text } of records) addRecord.run(tree_id, run_id, text);
    for (const { tree_id, place, seq } of trees) addTree.run(tree_id, place, seq);
  }

  trees(from: number): QueryPage<RecordedTree> {
    const rows = this.#statements.trees.all(from) as (RecordedTree & { readonly row: number })[];
    const last = rows.at(-1)?.row;
    return {
      rows: rows.map(({ tree_id, seq }) => ({ tree_id, seq })),
      next: last === undefined ? null : last + 1,
    };
  }

  recorded(tree_id: string): number | null {
    return (this.#statements.recorded.get(tree_id) as number | undefined) ?? null;
  }

  load(tree_id: string, run_id: string): string | null {
    return (this.#statements.load.get(tree_id, run_id) as string | undefined) ?? null;
  }

  count(tree_id: string): number {
    return Number(this.#statements.count.get(tree_id));
  }
}

const prepareRunRecordStatements = (db: SqliteConnection) => ({
  last: db.prepare('SELECT mark_no FROM recorded_trees ORDER BY rowid DESC LIMIT 1').pluck(),
  // The ended trees are the last member of a row: see `marksText`.
  ended: db.prepare(
    `SELECT mark_no, marks FROM marks
     WHERE mark_no >= ? AND mark_no < ? AND substr(marks, -3) = '"]]' ORDER BY mark_no`,
  ),
  lastMark: db.prepare('SELECT max(mark_no) FROM marks').pluck(),
  recorded: db.prepare('SELECT seq FROM recorded_trees WHERE tree_id = ?').pluck(),
  trees: db.prepare(
    `SELECT rowid AS row, tree_id, seq FROM recorded_trees WHERE rowid >= ? ORDER BY rowid LIMIT ${PAGE_TREES}`,
  ),
  load: db.prepare('SELECT record FROM run_records WHERE tree_id = ? AND run_id = ?').pluck(),
  count: db.prepare('SELECT count(*) FROM run_records WHERE tree_id = ?').pluck(),
  addRecord: db.prepare(
    `INSERT INTO run_records VALUES (?, ?, ?)
     ON CONFLICT (tree_id, run_id) DO UPDATE SET record = excluded.record`,
  ),
  addTree: db.prepare('INSERT INTO recorded_trees VALUES (?, ?, ?)'),
});
