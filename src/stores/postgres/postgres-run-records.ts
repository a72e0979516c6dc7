import type { RecordedTree } from '../../core/ledger/readable-ledger.js';
import type { EndedTree, RecordBatch, RunRecordTable } from '../../engine/ports/ledger/run-record-table.js';
import type { ReaderPool } from './postgres-connection.js';
import { idParameter, integerOf, textOf, type Row } from './postgres-values.js';
import type { PostgresWriter } from './postgres-writer.js';

const PAGE_TREES = 1_024;

const UNRECORDED = `SELECT place, tree_id FROM unrecorded_trees WHERE place > $1 ORDER BY place LIMIT ${PAGE_TREES}`;
const RECORDED = `SELECT recorded AS place, tree_id, seq FROM recorded_trees
  WHERE recorded > $1 ORDER BY recorded LIMIT ${PAGE_TREES}`;

/** Run records, and which trees have them. */
export class PostgresRunRecords implements RunRecordTable {
  readonly #pool: ReaderPool;
  readonly #writer: () => PostgresWriter;

  constructor(pool: ReaderPool, writer: () => PostgresWriter) {
    this.#pool = pool;
    this.#writer = writer;
  }

  async save(batch: RecordBatch): Promise<boolean> {
    return this.#writer().saveRecords(batch);
  }

  unrecorded(): AsyncIterable<EndedTree> {
    return this.#pages(UNRECORDED, (row, place) => ({ tree_id: textOf(row, 'tree_id', 'an ended tree'), place }));
  }

  trees(): AsyncIterable<RecordedTree> {
    const what = 'a recorded tree';
    return this.#pages(RECORDED, (row) => ({
      tree_id: textOf(row, 'tree_id', what),
      seq: integerOf(row, 'seq', what),
    }));
  }

  /** @param sql has the last place of the page before as $1 */
  async *#pages<Tree>(sql: string, treeOf: (row: Row, place: number) => Tree): AsyncGenerator<Tree> {
    for (let after = -1; ;) {
      const rows = await this.#pool.read(sql, [after]);
      for (const row of rows) {
        after = integerOf(row, 'place', 'an ended tree');
        yield treeOf(row, after);
      }
      if (rows.length < PAGE_TREES) return;
    }
  }

  async recorded(tree_id: string): Promise<number | null> {
    const [row] = await this.#pool.read('SELECT seq FROM recorded_trees WHERE tree_id = $1', [idParameter(tree_id)]);
    return row === undefined ? null : integerOf(row, 'seq', `the row of ${tree_id}`);
  }

  async load(tree_id: string, run_id: string): Promise<string | null> {
    const text = 'SELECT record FROM run_records WHERE tree_id = $1 AND run_id = $2';
    const [row] = await this.#pool.read(text, [idParameter(tree_id), idParameter(run_id)]);
    return row?.['record'] ?? null;
  }

  async count(tree_id: string): Promise<number> {
    const text = 'SELECT count(*) AS count FROM run_records WHERE tree_id = $1';
    const [row] = await this.#pool.read(text, [idParameter(tree_id)]);
    return row === undefined ? 0 : integerOf(row, 'count', `the records of ${tree_id}`);
  }
}
