import type { RecordedTree } from '../../core/ledger/readable-ledger.js';
import type { EndedTree } from '../../engine/ports/ledger/run-record-table.js';
import type { ReaderPool } from './postgres-connection.js';
import { idParameter, integerOf, textOf } from './values/postgres-values.js';

const PAGE_TREES = 1_024;

const UNRECORDED = `SELECT place, tree_id FROM unrecorded_trees WHERE place > $1 ORDER BY place LIMIT ${PAGE_TREES}`;
const RECORDED = `SELECT recorded, tree_id, seq FROM recorded_trees
  WHERE recorded > $1 ORDER BY recorded LIMIT ${PAGE_TREES}`;

/** Reads run records, and which trees have them. */
export class PostgresRunRecords {
  readonly #pool: ReaderPool;

  constructor(pool: ReaderPool) {
    this.#pool = pool;
  }

  async *unrecorded(): AsyncGenerator<EndedTree> {
    for (let after = -1; ;) {
      const rows = await this.#pool.read(UNRECORDED, [after]);
      for (const row of rows) {
        after = integerOf(row, 'place', 'an ended tree');
        yield { tree_id: textOf(row, 'tree_id', 'an ended tree'), place: after };
      }
      if (rows.length < PAGE_TREES) return;
    }
  }

  async *trees(): AsyncGenerator<RecordedTree> {
    for (let after = -1; ;) {
      const rows = await this.#pool.read(RECORDED, [after]);
      for (const row of rows) {
        after = integerOf(row, 'recorded', 'a recorded tree');
        yield { tree_id: textOf(row, 'tree_id', 'a recorded tree'), seq: integerOf(row, 'seq', 'a recorded tree') };
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
