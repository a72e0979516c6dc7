// The table of trees: the case of each, and whether it has ended. A row is written when a tree opens, when it ends, and
// when a batch has a recovery hint for it.

import type { OpenTree, TreeAppend, TreeSummary } from '../../engine/ports/ledger/ledger-store.js';
import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';
import type { QueryPage, SqliteReader } from './sqlite-reader.js';

const PAGE_TREES = 256;

interface TreeStateRow {
  readonly log_index: number;
  readonly tree_id: string;
  readonly case_id: string | null;
  readonly ended: number;
  readonly unfinished: number;
  readonly wake_at: string | null;
}

export class SqliteTrees {
  readonly #reader: SqliteReader;
  readonly #ofCase: SqliteStatement;
  readonly #open: SqliteStatement;
  readonly #insert: SqliteStatement;
  readonly #end: SqliteStatement;
  readonly #setRecovery: SqliteStatement;

  constructor(db: SqliteConnection, reader: SqliteReader) {
    this.#reader = reader;
    const columns = 'log_index, tree_id, case_id, ended, unfinished, wake_at';
    this.#ofCase = db.prepare(`SELECT ${columns} FROM trees WHERE case_id = ? ORDER BY log_index`);
    this.#open = db.prepare(
      `SELECT ${columns} FROM trees WHERE ended = 0 AND log_index >= ? ORDER BY log_index LIMIT ${PAGE_TREES}`,
    );
    this.#insert = db.prepare(
      'INSERT INTO trees VALUES (@log_index, @tree_id, @case_id, @ended, @unfinished, @wake_at)',
    );
    this.#end = db.prepare(
      'UPDATE trees SET ended = 1, unfinished = 0, wake_at = NULL WHERE log_index = ? AND ended = 0',
    );
    this.#setRecovery = db.prepare('UPDATE trees SET unfinished = ?, wake_at = ? WHERE log_index = ? AND ended = 0');
  }

  ofCase(case_id: string): readonly TreeSummary[] {
    const rows = this.#ofCase.all(case_id) as TreeStateRow[];
    return rows.map(({ tree_id, ended, log_index }) => ({ tree_id, ended: ended === 1, log_index }));
  }

  openTrees(from: number): QueryPage<OpenTree> {
    const rows = this.#open.all(from) as TreeStateRow[];
    const last = rows.at(-1)?.log_index;
    return { rows: rows.map(toOpenTree), next: last === undefined ? null : last + 1 };
  }

  /**
   * Writes what an append changes for its tree, within the open transaction.
   * @param log_index the log index of the first entry of the append
   */
  write({ tree_id, opened, ended, recoveryHint: recovery }: TreeAppend, log_index: number): void {
    if (opened !== null) {
      const { unfinished, wake_at } = recovery ?? { unfinished: true, wake_at: null };
      const { case_id } = opened;
      const row = { log_index, tree_id, case_id, ended: Number(ended), unfinished: Number(unfinished), wake_at };
      this.#insert.run(row);
      return;
    }
    if (!ended && recovery === null) return;
    const first = this.#reader.firstIndex(tree_id);
    if (ended) this.#end.run(first);
    else if (recovery !== null) this.#setRecovery.run(Number(recovery.unfinished), recovery.wake_at, first);
  }
}

const toOpenTree = ({ tree_id, unfinished, wake_at }: TreeStateRow): OpenTree => ({
  tree_id,
  unfinished: unfinished === 1,
  wake_at,
});
