// The table of trees: the case of each, and whether it has ended. A row is written when a tree opens, when it ends, and
// when a batch has a recovery hint for it. A ledger of an older format has no such table: its first writer fills it,
// and a reader reads the first entry of every tree instead.

import { parseOwnJson } from '../../core/contract/json/own-json.js';
import { isJsonObject } from '../../core/contract/json.js';
import type { OpenTree, TreeAppend, TreeSummary } from '../../engine/ports/ledger/ledger-store.js';
import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';
import type { QueryPage, SqliteReader } from './sqlite-reader.js';

const PAGE_TREES = 256;
/** The first format with this table. */
const FORMAT_TREES = 5;

interface TreeStateRow {
  readonly log_index: number;
  readonly tree_id: string;
  readonly case_id: string | null;
  readonly ended: number;
  readonly unfinished: number;
  readonly wake_at: string | null;
}

interface TreeReadStatements {
  readonly ofCase: SqliteStatement;
  readonly open: SqliteStatement;
}

interface TreeWriteStatements {
  readonly insert: SqliteStatement;
  readonly end: SqliteStatement;
  readonly recovery: SqliteStatement;
}

export class SqliteTrees {
  readonly #db: SqliteConnection;
  readonly #reader: SqliteReader;
  readonly #isThere: SqliteStatement;
  #reads: TreeReadStatements | null = null;
  #writes: TreeWriteStatements | null = null;

  constructor(db: SqliteConnection, reader: SqliteReader) {
    this.#db = db;
    this.#reader = reader;
    this.#isThere = db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'trees'`);
  }

  ofCase(case_id: string): readonly TreeSummary[] {
    const reads = this.#prepared();
    const rows = reads === null ? [...this.#readRowsFromEntries()] : (reads.ofCase.all(case_id) as TreeStateRow[]);
    return rows
      .filter((row) => row.case_id === case_id)
      .map(({ tree_id, ended, log_index }) => ({ tree_id, ended: ended === 1, log_index }));
  }

  openTrees(from: number): QueryPage<OpenTree> {
    const reads = this.#prepared();
    if (reads === null) return { rows: [...this.#readRowsFromEntries()].filter(isOpen).map(toOpenTree), next: null };
    const rows = reads.open.all(from) as TreeStateRow[];
    const last = rows.at(-1)?.log_index;
    return { rows: rows.map(toOpenTree), next: last === undefined ? null : last + 1 };
  }

  /** Fills the table of a ledger with an older format, within the open transaction. */
  fill(format: number): void {
    if (format >= FORMAT_TREES) return;
    const { insert } = this.#prepareWrites();
    for (const row of this.#readRowsFromEntries()) insert.run(row);
  }

  /**
   * Writes what an append changes for its tree, within the open transaction.
   * @param log_index the log index of the first entry of the append
   */
  write({ tree_id, opened, ended, rest: recovery }: TreeAppend, log_index: number): void {
    if (opened !== null) {
      const { unfinished, wake_at } = recovery ?? { unfinished: true, wake_at: null };
      const { case_id } = opened;
      const row = { log_index, tree_id, case_id, ended: Number(ended), unfinished: Number(unfinished), wake_at };
      this.#prepareWrites().insert.run(row);
      return;
    }
    if (!ended && recovery === null) return;
    const { end, recovery: update } = this.#prepareWrites();
    const first = this.#reader.firstIndex(tree_id);
    if (ended) end.run(first);
    else if (recovery !== null) update.run(Number(recovery.unfinished), recovery.wake_at, first);
  }

  *#readRowsFromEntries(): Generator<TreeStateRow> {
    for (let from: number | null = 0; from !== null;) {
      const { rows, next }: QueryPage<TreeSummary & { readonly log_index: number }> = this.#reader.listTrees(from);
      for (const { tree_id, ended, log_index } of rows) {
        const case_id = readCaseId(this.#reader.firstText(log_index));
        yield { log_index, tree_id, case_id, ended: Number(ended), unfinished: Number(!ended), wake_at: null };
      }
      from = next;
    }
  }

  /** @returns null if the table does not exist yet */
  #prepared(): TreeReadStatements | null {
    if (this.#reads === null && this.#isThere.get() !== undefined) {
      const columns = 'log_index, tree_id, case_id, ended, unfinished, wake_at';
      this.#reads = {
        ofCase: this.#db.prepare(`SELECT ${columns} FROM trees WHERE case_id = ? ORDER BY log_index`),
        open: this.#db.prepare(
          `SELECT ${columns} FROM trees WHERE ended = 0 AND log_index >= ? ORDER BY log_index LIMIT ${PAGE_TREES}`,
        ),
      };
    }
    return this.#reads;
  }

  #prepareWrites(): TreeWriteStatements {
    this.#writes ??= {
      insert: this.#db.prepare(
        'INSERT INTO trees VALUES (@log_index, @tree_id, @case_id, @ended, @unfinished, @wake_at)',
      ),
      end: this.#db.prepare(
        'UPDATE trees SET ended = 1, unfinished = 0, wake_at = NULL WHERE log_index = ? AND ended = 0',
      ),
      recovery: this.#db.prepare('UPDATE trees SET unfinished = ?, wake_at = ? WHERE log_index = ? AND ended = 0'),
    };
    return this.#writes;
  }
}

const isOpen = ({ ended }: TreeStateRow): boolean => ended === 0;

const toOpenTree = ({ tree_id, unfinished, wake_at }: TreeStateRow): OpenTree => ({
  tree_id,
  unfinished: unfinished === 1,
  wake_at,
});

/** The case that the first entry of a tree names. `ledger verify` reports a changed entry; here it reads as null. */
function readCaseId(text: string): string | null {
  try {
    const entry: unknown = parseOwnJson(text);
    const body = isJsonObject(entry) ? entry['body'] : null;
    const case_id = isJsonObject(body) ? body['case_id'] : null;
    return typeof case_id === 'string' ? case_id : null;
  } catch {
    return null;
  }
}
